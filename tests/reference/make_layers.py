"""Forward and gradients of whole layers, for tests/nn/test_layers.cpp.

OMP_NUM_THREADS=1 python make_layers.py   writes values/layers.safetensors

Each layer is built after torch.manual_seed(7), fed an input, and its output's gradient is dy:
<name>/x, <name>/y, <name>/dy, <name>/dx, <name>/state/<key> (after the call), <name>/grad/<key>.
"""
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

values = {}


def numbers(*shape):
    """Deterministic values in about [-2, 2], none of them twice."""
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(n, dtype=torch.float64) * 0.6180339887 % 1 * 4 - 2).float().reshape(shape)


def record(name, make, x, eval_mode=False):
    torch.manual_seed(7)
    layer = make()
    layer.train(not eval_mode)
    x = x.clone()
    if x.is_floating_point():
        x.requires_grad_()
    y = layer(x)
    dy = numbers(*y.shape) * 0.5 + 0.1
    values[f"{name}/x"] = x.detach().clone()
    values[f"{name}/y"] = y.detach().clone()
    values[f"{name}/dy"] = dy
    if y.requires_grad:
        y.backward(dy)
    if x.grad is not None:
        values[f"{name}/dx"] = x.grad.clone()
    for key, value in layer.state_dict().items():
        values[f"{name}/state/{key}"] = value.clone()
    for key, parameter in layer.named_parameters():
        values[f"{name}/grad/{key}"] = parameter.grad.clone()


record("linear", lambda: nn.Linear(6, 4), numbers(5, 6))
record("linear_3d", lambda: nn.Linear(6, 4, bias=False), numbers(2, 3, 6))
image = numbers(2, 4, 7, 6)
record("conv", lambda: nn.Conv2d(4, 6, 3), image)
record("conv_all", lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2),
                                     groups=2, bias=False), image)
record("bn1d", lambda: nn.BatchNorm1d(5), numbers(6, 5))
record("bn1d_3d", lambda: nn.BatchNorm1d(5), numbers(3, 5, 4))
record("bn2d", lambda: nn.BatchNorm2d(4, momentum=0.3), image)
record("bn2d_average", lambda: nn.BatchNorm2d(4, momentum=None), image)
record("bn2d_plain", lambda: nn.BatchNorm2d(4, affine=False, track_running_stats=False), image,
       eval_mode=True)
record("bn2d_eval", lambda: nn.BatchNorm2d(4, eps=0.1), image, eval_mode=True)
record("bn2d_relu", lambda: nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()), image)
record("layer_norm", lambda: nn.LayerNorm([3, 4]), numbers(5, 3, 4))
record("layer_norm_no_bias", lambda: nn.LayerNorm(4, eps=1e-3, bias=False), numbers(5, 4))
record("embedding", lambda: nn.Embedding(7, 3, padding_idx=2), torch.tensor([[1, 2, 6], [1, 0, 1]]))
record("max_pool", lambda: nn.MaxPool2d(2), image)
record("max_pool_all", lambda: nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0)), image)
record("avg_pool", lambda: nn.AvgPool2d(2), image)
record("avg_pool_all", lambda: nn.AvgPool2d(3, stride=2, padding=1), image)
record("adaptive_avg_pool", lambda: nn.AdaptiveAvgPool2d((3, 4)), image)
record("adaptive_avg_pool_1", lambda: nn.AdaptiveAvgPool2d(1), image)
record("flatten", lambda: nn.Flatten(), image)
record("flatten_middle", lambda: nn.Flatten(1, 2), image)
record("identity", lambda: nn.Identity(), numbers(3, 2))
for name in ("ReLU", "GELU", "Sigmoid", "Tanh", "SiLU"):
    record(name, getattr(nn, name), numbers(4, 9))
record("GELU_tanh", lambda: nn.GELU(approximate="tanh"), numbers(4, 9))
record("sequential", lambda: nn.Sequential(nn.Conv2d(4, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU(),
                                           nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 5)), image)

logits, labels = numbers(6, 5), torch.tensor([0, 4, 2, 2, -100, 1])
for name, loss, x, target in (
    ("cross_entropy", nn.CrossEntropyLoss(), logits, labels),
    ("cross_entropy_all", nn.CrossEntropyLoss(weight=torch.tensor([1, 2, 0.5, 3, 1]), ignore_index=2,
                                              label_smoothing=0.2), logits, labels.clamp(min=0)),
    ("nll", nn.NLLLoss(), logits, labels),
    ("mse", nn.MSELoss(), logits, numbers(6, 5).flip(0).clone()),
    ("mse_sum", nn.MSELoss(reduction="sum"), logits, numbers(6, 5).flip(0).clone()),
    ("bce", nn.BCEWithLogitsLoss(), logits, (numbers(6, 5) + 2) / 4),
    ("bce_pos", nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1, 2, 3, 4, 5.0])), logits,
     (numbers(6, 5) + 2) / 4),
):
    x = x.clone().requires_grad_()
    y = loss(x, target)
    y.backward()
    values.update({f"{name}/x": x.detach().clone(), f"{name}/target": target.clone(),
                   f"{name}/y": y.detach().clone(), f"{name}/dx": x.grad.clone()})

path = pathlib.Path(__file__).parent / "values" / "layers.safetensors"
save_file({k: v.contiguous() for k, v in values.items()}, str(path))
print(path, path.stat().st_size, "bytes,", len(values), "tensors")
