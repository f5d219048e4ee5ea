#!/usr/bin/env python3
"""Training steps of the recipe's network in PyTorch on synthetic images: one JSON line.

The counterpart of bench_step: the same network, batch, loss, optimizer and statistics. Several
settings (--settings channels_last+fused,...) take turns step by step in one process, so that a busy
neighbour meets all of them. With --ranks N: N forked processes under DistributedDataParallel and
gloo.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import torch
from torch import nn

IMPORTED_AT = time.monotonic()


def toy_net():
    def conv(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(
        *conv(1, 64), *conv(64, 128), nn.MaxPool2d(2), *conv(128, 256), *conv(256, 512),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8192, 512), nn.BatchNorm1d(512), nn.ReLU(),
        nn.Linear(512, 10))


class Training:
    def __init__(self, setting, args, rank):
        words = setting.split("+")
        unknown = set(words) - {"channels_first", "channels_last", "plain", "fused", "compile"}
        if unknown:
            raise SystemExit(f"step_torch.py: no setting {unknown}")
        torch.manual_seed(args.seed)
        model = toy_net()
        self.images = torch.rand(args.batch, 1, 28, 28, generator=torch.Generator().manual_seed(
            args.seed + 1000003 * rank))
        self.labels = torch.randint(0, 10, (args.batch,))
        if "channels_last" in words:
            model = model.to(memory_format=torch.channels_last)
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        parameters = list(model.parameters())
        if args.ranks > 1:
            model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.model = torch.compile(model) if "compile" in words else model
        self.optimizer = torch.optim.SGD(parameters, 0.01, momentum=0.9, nesterov=True,
                                         fused=True if "fused" in words else None)
        self.seconds = []

    def step(self):
        begin = time.monotonic()
        loss = nn.functional.cross_entropy(self.model(self.images), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss = loss.item()
        self.seconds.append(time.monotonic() - begin)


def peak_resident_mb():
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e6


def run(rank, args, store):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= args.ranks:
        os.sched_setaffinity(0, {cores[rank]})
    torch.set_num_threads(1)
    if args.ranks > 1:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + store, rank=rank, world_size=args.ranks)
    trainings = {s: Training(s, args, rank) for s in args.settings}
    first_step_at = None
    for _ in range(args.warmup + args.steps):
        for training in trainings.values():
            training.step()
            first_step_at = first_step_at or time.monotonic()
    results = []
    for setting, training in trainings.items():
        seconds = torch.tensor(training.seconds, dtype=torch.float64)
        if args.ranks > 1:
            torch.distributed.all_reduce(seconds, op=torch.distributed.ReduceOp.MAX)
        median = statistics.median(seconds.tolist()[args.warmup:])
        results.append({"setting": setting, "step_ms": median * 1e3,
                        "images_per_s": args.ranks * args.batch / median,
                        "steps": args.steps, "warm_up": args.warmup, "last_loss": training.loss})
    if rank == 0:
        print(json.dumps({
            "peer": "PyTorch", "version": torch.__version__, "ranks": args.ranks,
            "batch_per_rank": args.batch, "threads_per_rank": 1, "seed": args.seed,
            "imported_at_monotonic_s": IMPORTED_AT, "first_step_at_monotonic_s": first_step_at,
            "peak_resident_mb": peak_resident_mb(), "results": results}), flush=True)
    if args.ranks > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--settings", default="channels_last+fused")
    args = parser.parse_args()
    args.settings = args.settings.split(",")
    if args.ranks == 1:
        run(0, args, "")
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(
            run, args=(args, os.path.join(folder, "store")), nprocs=args.ranks,
            start_method="fork")


if __name__ == "__main__":
    sys.exit(main())
