"""Softmax, losses, layer norm and embedding as PyTorch computes them, for tests/autograd.

OMP_NUM_THREADS=1 python make_losses.py   writes values/losses.safetensors
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

values = {}
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}


def save(name, tensor):
    values[name] = tensor.detach().contiguous().clone()


def case(name, f, **leaves):
    """Saves the leaves, f of them, a gradient of the result, and the leaves' gradients."""
    for key, leaf in leaves.items():
        save(f"{name}/{key}", leaf)
        leaf.requires_grad_()
    y = f(**leaves)
    dy = torch.randn(y.shape, dtype=torch.float64).to(y.dtype)
    y.backward(dy)
    save(f"{name}/y", y)
    save(f"{name}/dy", dy)
    for key, leaf in leaves.items():
        save(f"{name}/d{key}", leaf.grad)


def randn(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(dtype)


torch.manual_seed(0)
for tag, dtype in DTYPES.items():
    for shape, axis in (((5, 37), 1), ((4, 3, 10), 1), ((2, 8, 3, 5), 1), ((6, 7), 0), ((40,), 0)):
        name = f"{tag}/{'x'.join(map(str, shape))}/{axis}"
        case(f"softmax/{name}", lambda x: F.softmax(x, axis), x=randn(*shape, dtype=dtype, scale=3))
        case(f"log_softmax/{name}", lambda x: F.log_softmax(x, axis),
             x=randn(*shape, dtype=dtype, scale=3))

target = torch.randint(0, 10, (9,))
target[2] = target[7] = -100
save("cross_entropy/target", target)
image_target = torch.randint(0, 4, (3, 2, 5))
image_target[1, 0, 2:] = 2
save("cross_entropy/image_target", image_target)
class_weight = torch.rand(10, dtype=torch.float64) + 0.2
save("cross_entropy/weight", class_weight)
for tag, dtype in DTYPES.items():
    for reduction in ("mean", "sum", "none"):
        for smoothing in (0.0, 0.2):
            for weighted in (False, True):
                w = class_weight.to(dtype) if weighted else None
                case(f"cross_entropy/{tag}/{reduction}/{smoothing}/{int(weighted)}",
                     lambda x: F.cross_entropy(x, target, weight=w, reduction=reduction,
                                               label_smoothing=smoothing),
                     x=randn(9, 10, dtype=dtype, scale=2))
        case(f"cross_entropy_image/{tag}/{reduction}",
             lambda x: F.cross_entropy(x, image_target, ignore_index=2, reduction=reduction,
                                       label_smoothing=0.1),
             x=randn(3, 4, 2, 5, dtype=dtype, scale=2))
        case(f"nll_loss/{tag}/{reduction}",
             lambda x: F.nll_loss(x, target, weight=class_weight.to(dtype), reduction=reduction),
             x=F.log_softmax(randn(9, 10, dtype=dtype, scale=2), 1).detach())
        case(f"mse_loss/{tag}/{reduction}", lambda x, t: F.mse_loss(x, t, reduction=reduction),
             x=randn(6, 11, dtype=dtype), t=randn(6, 11, dtype=dtype))
        case(f"bce/{tag}/{reduction}",
             lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction),
             x=randn(6, 11, dtype=dtype, scale=4), t=torch.rand(6, 11).to(dtype))

# Weights of binary cross-entropy, in f64 where PyTorch's formula has no rounding of its own.
save("bce_weighted/weight", torch.rand(6, 1, dtype=torch.float64))
save("bce_weighted/pos_weight", torch.rand(11, dtype=torch.float64) * 3)
case("bce_weighted",
     lambda x, t: F.binary_cross_entropy_with_logits(x, t, weight=values["bce_weighted/weight"],
                                                     pos_weight=values["bce_weighted/pos_weight"]),
     x=randn(6, 11, dtype=torch.float64, scale=4), t=torch.rand(6, 11, dtype=torch.float64))

for tag, dtype in DTYPES.items():
    case(f"layer_norm/{tag}", lambda x, w, b: F.layer_norm(x, (37,), w, b),
         x=randn(5, 3, 37, dtype=dtype, scale=2) + 1, w=randn(37, dtype=dtype),
         b=randn(37, dtype=dtype))
    case(f"layer_norm_axes/{tag}", lambda x, w, b: F.layer_norm(x, (4, 6), w, b, eps=1e-3),
         x=randn(2, 3, 4, 6, dtype=dtype), w=randn(4, 6, dtype=dtype), b=randn(4, 6, dtype=dtype))
    case(f"layer_norm_plain/{tag}", lambda x: F.layer_norm(x, (20,)), x=randn(7, 20, dtype=dtype))

indices = torch.randint(0, 12, (4, 9))
indices[0, :3] = 5
save("embedding/indices", indices)
for tag, dtype in DTYPES.items():
    case(f"embedding/{tag}", lambda w: F.embedding(indices, w, padding_idx=5),
         w=randn(12, 21, dtype=dtype))

path = pathlib.Path(__file__).parent / "values" / "losses.safetensors"
save_file(values, path)
print(path, path.stat().st_size)
