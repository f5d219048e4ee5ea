"""Initial weights as PyTorch draws them, for tests/nn/test_init.cpp.

OMP_NUM_THREADS=1 python make_init.py   writes values/init.safetensors

Small tensors are stored whole. Of a big one: two sums over its bits (plain, and weighted by
position) and its first and last 64 values.
"""
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

from torch_models import ToyNet

values = {}


def record(name, tensor):
    tensor = tensor.detach().contiguous().clone()
    if tensor.numel() <= 1024 or tensor.dtype != torch.float32:
        values[name] = tensor
        return
    flat = tensor.flatten()
    bits = flat.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    weights = torch.arange(1, bits.numel() + 1) % 65521
    values[name + "#bits"] = torch.tensor([bits.sum(), (bits % 65521 * weights).sum()])
    values[name + "#ends"] = torch.cat([flat[:64], flat[-64:]])


def record_module(name, module):
    for key, tensor in module.state_dict().items():
        record(f"{name}/{key}", tensor)


for seed in (0, 42):
    torch.manual_seed(seed)
    w = torch.empty(6, 4, 3, 2)
    record(f"kaiming_uniform/{seed}", nn.init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu"))
    record(f"kaiming_uniform_leaky/{seed}", nn.init.kaiming_uniform_(w, a=0.2))
    record(f"kaiming_normal/{seed}", nn.init.kaiming_normal_(w, nonlinearity="tanh"))
    record(f"kaiming_normal_out/{seed}", nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="selu"))
    record(f"xavier_uniform/{seed}", nn.init.xavier_uniform_(w, gain=nn.init.calculate_gain("tanh")))
    record(f"xavier_normal/{seed}", nn.init.xavier_normal_(w))
    record(f"normal/{seed}", nn.init.normal_(w, 0.0, 0.02))

    torch.manual_seed(seed)
    record_module(f"linear/{seed}", nn.Linear(20, 30))
    record_module(f"linear_no_bias/{seed}", nn.Linear(7, 5, bias=False))
    record_module(f"conv/{seed}", nn.Conv2d(4, 8, (3, 5), padding=1))
    record_module(f"conv_groups/{seed}", nn.Conv2d(6, 12, 3, groups=3))
    record_module(f"embedding/{seed}", nn.Embedding(11, 6))
    record_module(f"embedding_padding/{seed}", nn.Embedding(5, 9, padding_idx=-2))
    record_module(f"batch_norm/{seed}", nn.BatchNorm2d(5))
    record_module(f"layer_norm/{seed}", nn.LayerNorm((3, 4)))
    record_module(f"linear_f64/{seed}", nn.Linear(9, 4, dtype=torch.float64))

    torch.manual_seed(seed)
    record_module(f"toy_net/{seed}", ToyNet())

gains = [nn.init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu")]
gains += [nn.init.calculate_gain("leaky_relu"), nn.init.calculate_gain("leaky_relu", math.sqrt(5))]
values["gains"] = torch.tensor(gains, dtype=torch.float64)

path = pathlib.Path(__file__).parent / "values" / "init.safetensors"
save_file(values, str(path))
print(path, path.stat().st_size, "bytes,", len(values), "tensors")
