"""Outputs and short trainings of the models of lockstep/models/, for tests/models.

OMP_NUM_THREADS=1 python make_models.py   writes values/models.safetensors

Images of random blobs, ten classes, are stored as bytes, so that both sides train on the same bits;
batches are the images in order. Toy_Net with batch statistics over few images is chaotic: PyTorch's
own f32 and f64 losses part by a percent within ten steps at the rate of 0.05. So the long comparisons
are in f64 and, in f32, at a rate so small that PyTorch's own two stay together.
"""
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from torch_models import MLP, SmallNet, ToyNet

values = {}

torch.manual_seed(5)
prototypes = F.interpolate(torch.rand(10, 1, 7, 7), size=28, mode="bilinear")
labels = torch.arange(160) % 10
noise = torch.rand(160, 1, 28, 28)
images = ((prototypes[labels] * 0.7 + noise * 0.3) * 255).to(torch.uint8)
values["images"], values["labels"] = images, labels


def train(name, make, steps, batch, dtype=torch.float32, crop=28, rate=0.05):
    torch.manual_seed(42)
    model = make().to(dtype)
    x_all = images[:, :, :crop, :crop].to(dtype) / 255
    model.eval()
    with torch.no_grad():
        values[f"{name}/initial"] = model(x_all[:8])
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=True)
    losses = []
    for step in range(steps):
        start = step * batch % len(x_all)
        x, y = x_all[start:start + batch], labels[start:start + batch]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            values[f"{name}/gradient_norms"] = torch.stack(
                [p.grad.double().norm() for p in model.parameters()])
        optimizer.step()
        losses.append(loss.item())
    values[f"{name}/losses"] = torch.tensor(losses, dtype=torch.float64)
    values[f"{name}/parameter_norms"] = torch.stack([p.double().norm() for p in model.parameters()])
    values[f"{name}/buffer_norms"] = torch.stack([b.double().norm() for b in model.buffers()] or
                                                 [torch.tensor(0.0, dtype=torch.float64)])
    model.eval()
    with torch.no_grad():
        values[f"{name}/trained"] = model(x_all[:8])
    print(name, "losses", ["%.4g" % loss for loss in losses[::7]])
    return losses


def deviation(a, b):
    return max(abs(p - q) / q for p, q in zip(a, b))


train("toy_net_f32", ToyNet, steps=4, batch=16)
train("toy_net_f64", lambda: ToyNet(height=16, width=16), steps=20, batch=16, dtype=torch.float64, crop=16)
for name, make, options in (
        ("mlp", lambda: MLP([784, 64, 32, 10]), {}), ("small_net", SmallNet, {}),
        ("toy_net_slow", lambda: ToyNet(height=16, width=16), {"crop": 16, "rate": 1e-5})):
    single = train(name, make, steps=50, batch=16, **options)
    kept = dict(values)
    double = train(name, make, steps=50, batch=16, dtype=torch.float64, **options)
    values.update(kept)
    print(name, "f32 parts from f64 by", deviation(single, double))

path = pathlib.Path(__file__).parent / "values" / "models.safetensors"
save_file({k: v.detach().contiguous() for k, v in values.items()}, str(path))
print(path, path.stat().st_size, "bytes,", len(values), "tensors")
