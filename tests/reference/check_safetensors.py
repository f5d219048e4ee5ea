"""Checks by hand that Python's safetensors reads what lockstep writes, and numpy its .npy.

python check_safetensors.py FOLDER   with FOLDER written by
  LOCKSTEP_KEEP_FILES=FOLDER build/<preset>/bin/test_files --gtest_filter='*ForPython*'
"""
import pathlib
import sys

import numpy
import torch
from safetensors import safe_open

folder = pathlib.Path(sys.argv[1])
with safe_open(folder / "lockstep.safetensors", "pt") as file:
    assert file.metadata() == {"written by": "lockstep"}, file.metadata()
    tensors = {name: file.get_tensor(name) for name in file.keys()}
expected = {
    "fc.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "step": torch.tensor(7),
    "bf16": torch.tensor([1.5, -2], dtype=torch.bfloat16),
    "f16": torch.tensor([1.5, -2], dtype=torch.float16),
    "f64": torch.tensor([0.1], dtype=torch.float64),
    "i32": torch.tensor([-1], dtype=torch.int32),
    "u8": torch.tensor([1, 2, 3], dtype=torch.uint8),
    "bool": torch.tensor([True, False]),
    "empty": torch.zeros(0, 3),
    "image": torch.arange(16, dtype=torch.float32).reshape(1, 2, 2, 4),
}
assert tensors.keys() == expected.keys(), tensors.keys()
for name, tensor in expected.items():
    assert tensors[name].dtype == tensor.dtype and torch.equal(tensors[name], tensor), name
array = numpy.load(folder / "lockstep.npy")
assert array.dtype == numpy.float32 and (array == numpy.arange(6).reshape(2, 3)).all()
print("ok:", len(expected), "tensors and one array")
