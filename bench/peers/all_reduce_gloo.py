#!/usr/bin/env python3
"""All-reduce of PyTorch's gloo on this host, in place, f32: one JSON line per size.

Usage: all_reduce_gloo.py [--ranks 2] [--sizes 8,65536,...] [--iters 20] [--warmup 3]
The same sizes, samples and statistics as all_reduce_perf: median of the samples, slowest rank.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def calls_per_sample(size):
    if size <= 4 << 10:
        return 200
    if size <= 1 << 20:
        return 20
    return 4 if size <= 4 << 20 else 1


def run(rank, args, store, results):
    if args.pin:
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= args.ranks:
            os.sched_setaffinity(0, {cores[rank]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=args.ranks)
    for size in args.sizes:
        x = torch.zeros(max(1, size // 4), dtype=torch.float32)
        calls = calls_per_sample(size)
        samples = []
        for _ in range(args.warmup + args.iters):
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(x)
            samples.append((time.perf_counter() - begin) / calls)
        slowest = torch.tensor([statistics.median(samples[args.warmup:])], dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        x.fill_(rank + 1)
        dist.all_reduce(x)
        wrong = int((x != args.ranks * (args.ranks + 1) // 2).sum())
        if rank == 0:
            seconds = slowest.item()
            n = args.ranks
            print(json.dumps({
                "peer": "gloo", "version": torch.__version__, "op": "all_reduce", "dtype": "f32",
                "bytes": x.numel() * 4, "count": x.numel(), "ranks": n, "in_place": True,
                "time_us": seconds * 1e6,
                "busbw_gb_per_s": 2 * (n - 1) / n * x.numel() * 4 / seconds / 1e9 if n > 1 else None,
                "samples": args.iters, "warm_up": args.warmup, "wrong": wrong}), flush=True)
        results[rank] += wrong
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8,65536,1048576,4194304,67108864,268435456")
    parser.add_argument("--iters", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--pin", type=int, default=1)
    args = parser.parse_args()
    args.sizes = [int(s) for s in args.sizes.split(",")]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        results = mp.Array("l", args.ranks)
        mp.start_processes(run, args=(args, os.path.join(folder, "store"), results),
                           nprocs=args.ranks, start_method="fork")
    sys.exit(1 if any(results) else 0)


if __name__ == "__main__":
    main()
