"""Random numbers of PyTorch's CPU generator, for tests/core/test_random.cpp.

OMP_NUM_THREADS=1 python make_random.py   writes values/random.safetensors
"""
import pathlib

import torch
from safetensors.torch import save_file

values = {}


def record(name, tensor):
    values[name] = tensor.contiguous().clone()


for seed in (0, 42, 2**40 + 7):
    torch.manual_seed(seed)
    record(f"uniform_f32/{seed}", torch.empty(37).uniform_(0, 1))
    record(f"uniform_f32_range/{seed}", torch.empty(3, 11).uniform_(-0.3061862, 0.3061862))
    record(f"uniform_f64/{seed}", torch.empty(19, dtype=torch.float64).uniform_(-2, 5))
    record(f"normal_f32/{seed}", torch.empty(64).normal_(0, 1))
    record(f"normal_f32_tail/{seed}", torch.empty(5, 7).normal_(0.5, 0.02))
    record(f"normal_f32_short/{seed}", torch.empty(7).normal_(1, 2))
    record(f"normal_f32_next/{seed}", torch.empty(4).normal_(0, 1))
    record(f"normal_f64/{seed}", torch.empty(33, dtype=torch.float64).normal_(0, 1))
    record(f"uniform_f16/{seed}", torch.empty(21, dtype=torch.float16).uniform_(-1, 1))
    record(f"uniform_bf16/{seed}", torch.empty(21, dtype=torch.bfloat16).uniform_(-1, 1))
    record(f"normal_f16/{seed}", torch.empty(21, dtype=torch.float16).normal_(0, 1))
    record(f"normal_bf16/{seed}", torch.empty(48, dtype=torch.bfloat16).normal_(0, 1))
    record(f"bernoulli/{seed}", torch.empty(40).bernoulli_(0.3))
    record(f"randint_small/{seed}", torch.randint(-5, 100, (20,)))
    record(f"randint_large/{seed}", torch.randint(-(2**40), 2**41, (20,)))
    record(f"randint_border/{seed}", torch.randint(0, 2**28, (10,)))
    for n in (0, 1, 2, 10, 100):
        record(f"randperm_{n}/{seed}", torch.randperm(n))
    record(f"after/{seed}", torch.empty(3).uniform_())  # all of the above drew the same count

torch.manual_seed(1)
# A long draw passes many states of the twister; its sums and ends stand for all of it.
long_uniform = torch.empty(200003).uniform_(-0.125, 0.125)
long_normal = torch.empty(200003).normal_(0, 1)
long_perm = torch.randperm(60000)
for name, tensor in (("uniform", long_uniform), ("normal", long_normal)):
    bits = tensor.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    weights = torch.arange(1, bits.numel() + 1) % 65521
    record(f"long_{name}/bits", torch.tensor([bits.sum(), (bits % 65521 * weights).sum()]))
    record(f"long_{name}/ends", torch.cat([tensor[:64], tensor[-64:]]))
weights = torch.arange(1, long_perm.numel() + 1)
record("long_randperm/bits", torch.tensor([long_perm.sum(), (long_perm * weights).sum()]))
record("long_randperm/ends", torch.cat([long_perm[:64], long_perm[-64:]]))

path = pathlib.Path(__file__).parent / "values" / "random.safetensors"
path.parent.mkdir(exist_ok=True)
save_file(values, str(path))
print(path, path.stat().st_size, "bytes,", len(values), "tensors")
