"""Element-wise operations, reductions and shape operations, forward and backward, with PyTorch.

OMP_NUM_THREADS=1 python make_pointwise.py   writes values/pointwise.safetensors

Each case <name>/<dtype> holds its inputs (x, b), the result y, an upstream gradient dy, and the
inputs' gradients (dx, db).
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(7)
out = {}


def case(name, f, *inputs, dtypes=("f32", "f64", "f16", "bf16")):
    kinds = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
    for d in dtypes:
        leaves = [i.detach().clone().to(kinds[d]).requires_grad_() for i in inputs]
        y = f(*leaves)
        dy = torch.randn(y.shape, dtype=torch.float64).to(y.dtype)
        y.backward(dy)
        key = f"{name}/{d}"
        for label, leaf in zip(("x", "b", "c"), leaves):
            out[f"{key}/{label}"] = leaf.detach().contiguous().clone()
            out[f"{key}/d{label}"] = leaf.grad.contiguous().clone()
        out[f"{key}/y"] = y.detach().contiguous().clone()
        out[f"{key}/dy"] = dy.contiguous().clone()


x = torch.randn(2, 3, 4, dtype=torch.float64) * 2
positive = torch.rand(2, 3, 4, dtype=torch.float64) * 3 + 0.1
b = torch.rand(3, 1, dtype=torch.float64) + 0.5

case("add", lambda x, b: x + b, x, b)
case("sub", lambda x, b: x - b, x, b)
case("rsub", lambda x, b: b - x, x, b)
case("mul", lambda x, b: x * b, x, b)
case("div", lambda x, b: x / b, x, b)
case("numbers", lambda x: 3 - 2.5 * x / 4 + 1, x)
case("pow", lambda x, b: x**b, positive, b)
for p in (2, 3, 0.5, -1, 1.7, 0):
    case(f"pow_{p}", lambda x: x**p, positive)
case("rpow", lambda x: 2.0**x, x)
case("maximum", torch.maximum, x, b)
case("minimum", torch.minimum, x, b)
case("clamp", lambda x: x.clamp(-1, 0.75), x)
for name in ("neg", "abs", "exp", "sin", "cos", "tanh", "sigmoid", "square", "erf"):
    case(name, getattr(torch, name), x)
for name in ("log", "log1p", "sqrt", "rsqrt", "reciprocal"):
    case(name, getattr(torch, name), positive)
case("relu", F.relu, x)
case("silu", F.silu, x)
case("gelu", F.gelu, x)
case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), x)
case("where", lambda x, b: torch.where(torch.arange(4) % 2 == 0, x, b), x, b)

for name, axes in (("all", None), ("0", (0,)), ("02", (0, 2)), ("last", (-1,))):
    kwargs = {} if axes is None else {"dim": axes}
    case(f"sum_{name}", lambda x: x.sum(**kwargs), x)
    case(f"mean_{name}", lambda x: x.mean(**kwargs), x)
    case(f"var_{name}", lambda x: x.var(**kwargs), x)
    case(f"std_{name}", lambda x: x.std(unbiased=False, dim=axes), x)
    case(f"amax_{name}", lambda x: x.amax(**kwargs), x)
    case(f"norm_{name}", lambda x: torch.linalg.vector_norm(x, 2, dim=axes), x)
    case(f"norm1_{name}", lambda x: torch.linalg.vector_norm(x, 1, dim=axes), x)
    case(f"norminf_{name}", lambda x: torch.linalg.vector_norm(x, float("inf"), dim=axes), x)
ties = torch.tensor([1.0, 3, 3, 2, 3], dtype=torch.float64)
case("max_ties", torch.max, ties)
case("max_along", lambda x: x.max(1).values, x)
case("min_along", lambda x: x.min(-1, keepdim=True).values, x)
case("sort", lambda x: x.sort(1, descending=True).values, x)
case("topk", lambda x: x.topk(2, 2).values, x)

case("permute", lambda x: x.permute(2, 0, 1), x)
case("flatten", lambda x: x.flatten(1), x)
case("slice", lambda x: x[:, :, 1:4:2], x)
case("select", lambda x: x[:, -1], x)
case("expand", lambda b: b.expand(2, 3, 4), b)
case("cat", lambda x, b: torch.cat([x, b.expand(2, 3, 1), x], 2), x, b)
case("stack", lambda x, b: torch.stack([x, b.expand(2, 3, 4)], 1), x, b)
case("chunk", lambda x: x.chunk(3, 2)[1], x)
case("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), x)
case("index_select", lambda x: x.index_select(1, torch.tensor([2, 0, 2])), x)
case("gather", lambda x: x.gather(2, torch.tensor([[[3, 3]], [[0, 1]]])), x)

folder = pathlib.Path(__file__).parent / "values"
save_file(out, folder / "pointwise.safetensors")
