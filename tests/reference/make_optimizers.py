"""Reference values for the optimizers and for gradient clipping, made with PyTorch.

Run: OMP_NUM_THREADS=1 python make_optimizers.py
Writes values/optimizers.safetensors: param.<i>, grad.<step>.<i>, <case>.<step>.<i>, clip.*
"""

import math
import pathlib

import torch
from safetensors.torch import save_file

SHAPES = [(3, 5), (7,), (1,), (2, 3, 5, 5), (129,), (0, 4), (11, 13)]
STEPS = 20
# Parameter 1 has no gradient in steps 4..7; parameter 2 never has one.
has_grad = lambda step, i: i != 2 and not (i == 1 and 4 <= step < 8)

CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.01)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "sgd_all": (torch.optim.SGD, dict(lr=0.05, momentum=0.8, weight_decay=0.02, nesterov=True, maximize=True)),
    "adam": (torch.optim.Adam, dict(lr=0.01)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.01, betas=(0.8, 0.99), eps=1e-6, amsgrad=True)),
    "adam_all": (torch.optim.Adam, dict(lr=0.02, betas=(0.5, 0.9), weight_decay=0.05, amsgrad=True, maximize=True)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01)),
    "adamw_all": (torch.optim.AdamW, dict(lr=0.02, betas=(0.7, 0.95), weight_decay=0.3, amsgrad=True, maximize=True)),
}


def run(make, options, params, grads, lookahead=None):
    """Parameters after steps 1, 8 and 20; the rate is halved after step 10."""
    params = [p.clone().requires_grad_() for p in params]
    optimizer = make(params, **options, foreach=False)
    slow = [p.detach().clone() for p in params]
    results = {}
    for step in range(STEPS):
        for i, p in enumerate(params):
            p.grad = grads[step][i].to(p.dtype) if has_grad(step, i) else None
        optimizer.step()
        if lookahead:
            k, alpha, first_sync = lookahead
            with torch.no_grad():
                if first_sync and step == 0:
                    slow = [p.detach().clone() for p in params]
                if step % k == 0 if first_sync else (step + 1) % k == 0:
                    for p, s in zip(params, slow):
                        s += alpha * (p - s)
                        p.copy_(s)
        if step == 9:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        if step in (0, 7, 19):
            results[step + 1] = [p.detach().clone() for p in params]
    return results


def main():
    torch.manual_seed(1)
    params = [torch.randn(s) for s in SHAPES]
    grads = [[torch.randn(s) * 10 ** float(torch.randn(())) for s in SHAPES] for _ in range(STEPS)]
    out = {f"param.{i}": p for i, p in enumerate(params)}
    for step in range(STEPS):
        out |= {f"grad.{step}.{i}": g for i, g in enumerate(grads[step]) if has_grad(step, i)}

    def record(name, results):
        for step, values in results.items():
            out.update({f"{name}.{step}.{i}": v for i, v in enumerate(values)})

    for name, (make, options) in CASES.items():
        record(name, run(make, options, params, grads))
    for name in ("sgd_nesterov", "adamw_all"):
        make, options = CASES[name]
        record(name + "_f64", run(make, options, [p.double() for p in params], grads))
    nesterov = dict(lr=0.1, momentum=0.9, nesterov=True)
    record("lookahead", run(torch.optim.SGD, nesterov, params, grads, (5, 0.5, False)))
    record("lookahead_first_sync", run(torch.optim.SGD, nesterov, params, grads, (6, 0.8, True)))

    for norm_type in (2.0, 1.0, 3.0, math.inf):
        for i, g in enumerate(grads[0]):
            # torch has no infinity norm of an empty tensor
            params[i].grad = g.clone() if has_grad(0, i) and g.numel() else None
        norm = torch.nn.utils.clip_grad_norm_(params, 1.5, norm_type)
        out[f"clip.{norm_type:g}.norm"] = norm.double()
        for i, p in enumerate(params):
            if p.grad is not None:
                out[f"clip.{norm_type:g}.{i}"] = p.grad
    for i, g in enumerate(grads[0]):
        params[i].grad = g.clone() if has_grad(0, i) else None
    torch.nn.utils.clip_grad_value_(params, 0.25)
    out |= {f"clip.value.{i}": p.grad for i, p in enumerate(params) if p.grad is not None}

    path = pathlib.Path(__file__).parent / "values" / "optimizers.safetensors"
    path.parent.mkdir(exist_ok=True)
    save_file({k: v.detach().contiguous() for k, v in out.items()}, path)


if __name__ == "__main__":
    main()
