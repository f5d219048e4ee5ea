"""Convolution, pooling, batch norm and linear in PyTorch: values and gradients for tests/autograd/dense_ops_test.cpp.

    OMP_NUM_THREADS=1 python tests/reference/make_dense_ops.py
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(20240607)
torch.set_num_threads(1)
values = {}


def case(name, f, **inputs):
    """Stores inputs, f's result, a random dy and the gradients of all floating inputs."""
    leaves = {k: v.clone().requires_grad_(True) for k, v in inputs.items()}
    y = f(**leaves)
    dy = torch.randn_like(y)
    y.backward(dy)
    for k, v in inputs.items():
        values[f"{name}.{k}"] = v.contiguous()
        values[f"{name}.d{k}"] = leaves[k].grad.contiguous()
    values[f"{name}.y"] = y.detach().contiguous()
    values[f"{name}.dy"] = dy.contiguous()


def r(*shape):
    return torch.randn(*shape)


case("conv", lambda x, w, b: F.conv2d(x, w, b), x=r(2, 3, 8, 8), w=r(4, 3, 3, 3), b=r(4))
case("conv_odd", lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
     x=r(2, 5, 9, 7), w=r(6, 5, 3, 2), b=r(6))
case("conv_groups", lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2),
     x=r(2, 4, 5, 5), w=r(6, 2, 3, 3), b=r(6))
case("max_pool", lambda x: F.max_pool2d(x, 2), x=r(2, 3, 7, 6))
case("max_pool_overlap", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), x=r(2, 3, 8, 8))
case("avg_pool", lambda x: F.avg_pool2d(x, 3, 2, 1), x=r(2, 3, 7, 7))
case("avg_pool_inside", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), x=r(2, 3, 8, 8))
case("adaptive", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), x=r(2, 3, 7, 9))
case("linear", lambda x, w, b: F.linear(x, w, b), x=r(2, 3, 5), w=r(4, 5), b=r(4))
case("matmul", lambda a, b: torch.matmul(a, b), a=r(3, 1, 2, 4), b=r(2, 4, 5))
case("bmm", lambda a, b: torch.bmm(a, b), a=r(3, 2, 4), b=r(3, 4, 5))
for name, shape in (("norm1d", (5, 3)), ("norm_sequence", (4, 3, 6)), ("norm2d", (4, 3, 5, 6))):
    mean, var = torch.randn(3), torch.rand(3) + 0.5
    values[f"{name}.mean"], values[f"{name}.var"] = mean.clone(), var.clone()
    case(f"{name}.eval", lambda x, w, b: F.batch_norm(x, mean, var, w, b, False), x=r(*shape), w=r(3), b=r(3))
    case(f"{name}.train", lambda x, w, b: F.batch_norm(x, mean, var, w, b, True, 0.2), x=r(*shape), w=r(3), b=r(3))
    values[f"{name}.mean_after"], values[f"{name}.var_after"] = mean, var
    case(f"{name}.relu", lambda x, w, b: F.relu(F.batch_norm(x, None, None, w, b, True)), x=r(*shape), w=r(3), b=r(3))

out = pathlib.Path(__file__).parent / "values" / "dense_ops.safetensors"
save_file({k: v.clone() for k, v in values.items()}, out)
print(out, out.stat().st_size, "bytes")
