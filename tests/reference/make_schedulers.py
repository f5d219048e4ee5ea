"""Reference values for the learning-rate schedulers, made with PyTorch.

Run: OMP_NUM_THREADS=1 python make_schedulers.py
Writes values/schedulers.safetensors: <case> (100, 2): the rates of two groups, base 0.1 and 0.02,
from step 0 on; <case>.momentum (100,); metrics (100,), the plateau cases' input.
"""

import math
import pathlib
import warnings

import torch
from safetensors.torch import save_file
from torch.optim import lr_scheduler as L

STEPS = 100

CASES = {
    "step": lambda o: L.StepLR(o, 7, 0.6),
    "multi_step": lambda o: L.MultiStepLR(o, [5, 20, 20, 61], 0.3),
    "exponential": lambda o: L.ExponentialLR(o, 0.95),
    "linear": lambda o: L.LinearLR(o),
    "linear_20": lambda o: L.LinearLR(o, 0.1, 0.8, 20),
    "constant": lambda o: L.ConstantLR(o, 0.25, 10),
    "polynomial": lambda o: L.PolynomialLR(o, 50, 2.0),
    "cosine": lambda o: L.CosineAnnealingLR(o, 30, 0.001),
    "cosine_99": lambda o: L.CosineAnnealingLR(o, 99),
    "restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 12, 1, 0.002),
    "restarts_mult": lambda o: L.CosineAnnealingWarmRestarts(o, 5, 2),
    "one_cycle": lambda o: L.OneCycleLR(o, [0.5, 0.2], total_steps=100),
    "one_cycle_linear": lambda o: L.OneCycleLR(o, 0.3, total_steps=100, pct_start=0.45, anneal_strategy="linear",
                                               div_factor=10, final_div_factor=100),
    "one_cycle_three": lambda o: L.OneCycleLR(o, 0.3, epochs=10, steps_per_epoch=10, three_phase=True),
    "lambda": lambda o: L.LambdaLR(o, [lambda e: 0.98**e, lambda e: 1 / (1 + e)]),
    "sequential": lambda o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 10), L.CosineAnnealingLR(o, 60, 0.001), L.ExponentialLR(o, 0.9)], [10, 70]),
    "chained": lambda o: (L.ExponentialLR(o, 0.97), L.StepLR(o, 9, 0.5)),
}
PLATEAUS = {
    "plateau": dict(patience=3),
    "plateau_abs": dict(patience=2, factor=0.5, threshold=0.02, threshold_mode="abs", cooldown=4),
    "plateau_max": dict(mode="max", patience=2, factor=0.3, threshold=0.01),
    "plateau_max_abs": dict(mode="max", patience=1, factor=0.7, threshold=0.03, threshold_mode="abs", cooldown=2,
                            min_lr=[0.01, 0.005]),
    "plateau_eps": dict(patience=0, factor=0.9, eps=1e-3),
}


def optimizer():
    groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.02)]
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9)


def rates(o):
    return [group["lr"] for group in o.param_groups]


def main():
    warnings.simplefilter("ignore")
    out = {}
    for name, make in CASES.items():
        o = optimizer()
        schedulers = make(o)
        schedulers = schedulers if isinstance(schedulers, tuple) else (schedulers,)
        values, momenta = [rates(o)], [o.param_groups[0]["momentum"]]
        for _ in range(STEPS - 1):
            for scheduler in schedulers:
                scheduler.step()
            values.append(rates(o))
            momenta.append(o.param_groups[0]["momentum"])
        out[name] = torch.tensor(values, dtype=torch.float64)
        if name.startswith("one_cycle"):
            out[name + ".momentum"] = torch.tensor(momenta, dtype=torch.float64)

    o = optimizer()
    scheduler = L.CosineAnnealingWarmRestarts(o, 5, 2)
    fractions = []
    for i in range(STEPS):
        scheduler.step(i * 0.37)
        fractions.append(rates(o))
    out["restarts_fraction"] = torch.tensor(fractions, dtype=torch.float64)

    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(STEPS, generator=generator, dtype=torch.float64)
    metrics = 1 + 2 * torch.exp(-torch.arange(STEPS, dtype=torch.float64) / 20) + 0.05 * noise
    metrics[30] = math.nan
    metrics[31] = math.inf
    out["metrics"] = metrics
    for name, options in PLATEAUS.items():
        o = optimizer()
        scheduler = L.ReduceLROnPlateau(o, **options)
        values = []
        for metric in metrics.tolist():
            scheduler.step(-metric if options.get("mode") == "max" and "abs" in name else metric)
            values.append(rates(o))
        out[name] = torch.tensor(values, dtype=torch.float64)

    path = pathlib.Path(__file__).parent / "values" / "schedulers.safetensors"
    path.parent.mkdir(exist_ok=True)
    save_file(out, path)


if __name__ == "__main__":
    main()
