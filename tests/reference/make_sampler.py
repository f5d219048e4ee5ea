"""Index lists of PyTorch's DistributedSampler, for tests/data/test_sampler.cpp.

python make_sampler.py   writes values/sampler.safetensors

Each list is named n/world/epoch/seed/shuffle/drop_last and holds the ranks' lists as rows.
"""
import pathlib

import torch
from safetensors.torch import save_file
from torch.utils.data import DistributedSampler

values = {}
for n in (0, 1, 2, 3, 5, 7, 8, 10, 16, 64, 97, 1000):
    for world in (1, 2, 3, 4, 7, 16):
        for shuffle in (False, True):
            for drop_last in (False, True):
                for epoch, seed in ((0, 0), (1, 0), (3, 42), (12, 2**40 + 5)) if shuffle else ((0, 0),):
                    rows = []
                    for rank in range(world):
                        sampler = DistributedSampler(range(n), world, rank, shuffle, seed, drop_last)
                        sampler.set_epoch(epoch)
                        rows.append(list(sampler))
                        assert len(rows[-1]) == len(sampler)
                    name = f"{n}/{world}/{epoch}/{seed}/{int(shuffle)}/{int(drop_last)}"
                    values[name] = torch.tensor(rows, dtype=torch.int32).reshape(world, -1)
save_file(values, pathlib.Path(__file__).parent / "values" / "sampler.safetensors")
