"""Files written by Python's own libraries, for the readers' tests in tests/core.

python make_files.py   writes values/files/*
"""
import gzip
import pathlib
import struct

import numpy
import torch
from safetensors.torch import save, save_file

folder = pathlib.Path(__file__).parent / "values" / "files"
folder.mkdir(exist_ok=True)

save_file(
    {
        "bf16": torch.tensor([[1.0, -2.5, 3.140625], [0.0, float("inf"), 1e-3]], dtype=torch.bfloat16),
        "f16": torch.tensor([1.0, -2.5, 65504.0, 6e-8], dtype=torch.float16),
        "f64": torch.tensor([[[0.1]], [[1e300]]], dtype=torch.float64),
        "f32": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "i64": torch.tensor(-7),
        "i32": torch.tensor([2**31 - 1, -(2**31)], dtype=torch.int32),
        "u8": torch.arange(5, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "empty": torch.zeros(0, 4),
        "größe": torch.ones(1),
    },
    folder / "python.safetensors",
    metadata={"format": "pt", "note": "naïve \"quotes\""},
)
# A dtype that Lockstep has not, and the first data byte moved to an odd offset.
save_file({"x": torch.zeros(3, dtype=torch.int16)}, folder / "i16.safetensors")
save_file({"x": torch.zeros(3, dtype=torch.float8_e4m3fn)}, folder / "f8.safetensors")
header = b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]}}'
header += b" " * ((3 - len(header)) % 4)  # b's bytes start at 2 modulo 4
data = bytes([1, 2, 3]) + struct.pack("<2f", 1.5, -2.25)
assert (8 + len(header) + 3) % 4 == 2
(folder / "odd_offset.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)

x = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4) / 8
numpy.save(folder / "c_order.npy", x)
numpy.save(folder / "fortran_order.npy", numpy.asfortranarray(x))
numpy.save(folder / "big_endian.npy", x.astype(">f4"))
numpy.save(folder / "f64.npy", x.astype(numpy.float64))
numpy.save(folder / "f16.npy", x.astype(numpy.float16))
numpy.save(folder / "i32_big_endian.npy", (x * 8).astype(">i4"))
numpy.save(folder / "i64.npy", (x * 8).astype(numpy.int64))
numpy.save(folder / "u8.npy", (x * 8).astype(numpy.uint8))
numpy.save(folder / "bool.npy", x > 1)
numpy.save(folder / "scalar.npy", numpy.float32(2.5))
numpy.save(folder / "empty.npy", numpy.zeros((0, 3), numpy.float32))
numpy.save(folder / "i16.npy", numpy.zeros(3, numpy.int16))
numpy.save(folder / "structured.npy", numpy.zeros(3, [("a", "<f4"), ("b", "<i4")]))
for version in ((2, 0), (3, 0)):
    with open(folder / f"version_{version[0]}.npy", "wb") as file:
        numpy.lib.format.write_array(file, x, version=version)

idx = bytes([0, 0, 0x0C, 2]) + struct.pack(">2I", 2, 3) + struct.pack(">6i", 0, -1, 2, -3, 4, 2**31 - 1)
(folder / "i32.idx").write_bytes(idx)
(folder / "i32.idx.gz").write_bytes(gzip.compress(idx, mtime=0))
