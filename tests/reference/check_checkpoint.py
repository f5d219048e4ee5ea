#!/usr/bin/env python3
"""Loads a run's best weights into a PyTorch Toy_Net and compares its accuracy with the run's own.

    python tests/reference/check_checkpoint.py RUN_FOLDER [MNIST_FOLDER]

RUN_FOLDER is <model_path>/<exp_name>. Without MNIST_FOLDER the run was on the embedded digits, which
are taken from scikit-learn here. Needs torch, safetensors and numpy (and scikit-learn for the digits).
"""
import gzip
import json
import os
import struct
import sys

import numpy as np
import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_models import ToyNet  # noqa: E402


def read_idx(folder, name):
    path = os.path.join(folder, name)
    with (gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")) as file:
        data = file.read()
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def mnist(folder):
    images = read_idx(folder, "t10k-images-idx3-ubyte")
    return images[:, None] / np.float32(255), read_idx(folder, "t10k-labels-idx1-ubyte")


def digits():
    from sklearn.datasets import load_digits
    table = load_digits()
    seen, held_out = [0] * 10, []
    for i, label in enumerate(table.target):
        seen[label] += 1
        if seen[label] % 5 == 0:
            held_out.append(i)
    small = torch.tensor(table.images[held_out], dtype=torch.float64)[:, None]
    large = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear")
    images = torch.floor(large * 255 / 16 + 0.5).float() / 255
    return images.numpy(), table.target[held_out]


def main():
    run = sys.argv[1]
    images, labels = mnist(sys.argv[2]) if len(sys.argv) > 2 else digits()
    net = ToyNet()
    net.load_state_dict(load_file(os.path.join(run, "best.safetensors")))
    net.eval()
    correct = 0
    with torch.no_grad():
        for start in range(0, len(labels), 500):
            logits = net(torch.tensor(images[start:start + 500]))
            wanted = torch.tensor(labels[start:start + 500].astype(np.int64))
            correct += int((logits.argmax(1) == wanted).sum())
    ours = json.load(open(os.path.join(run, "summary.json")))["best_valid_acc"]
    theirs = correct / len(labels)
    print(f"PyTorch {theirs:.6f}  Lockstep {ours:.6f}  on {len(labels)} images")
    return 0 if abs(theirs - ours) < 1.5 / len(labels) else 1


sys.exit(main())
