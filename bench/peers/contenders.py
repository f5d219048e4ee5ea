"""Runs the programs that are compared, each pinned and with a deadline, and reads their results.

Every function returns what the program printed as JSON, or raises Failed with the reason.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    pass


class Contenders:
    def __init__(self, bin_folder, torch_python, cores, deadline_s):
        self.bin = bin_folder
        self.torch = torch_python
        self.cores = cores
        self.deadline_s = deadline_s

    def pinned(self, cores, command):
        if shutil.which("taskset") is None:
            return command
        return ["taskset", "-c", ",".join(str(c) for c in cores)] + command

    def start(self, cores, command):
        environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
        try:
            return subprocess.Popen(self.pinned(cores, command), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment,
                                    start_new_session=True)
        except OSError as error:
            raise Failed(str(error)) from error

    def finish(self, process):
        """Its standard output; ends it and what it started at the deadline."""
        try:
            out, err = process.communicate(timeout=self.deadline_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f"{process.args[-1]} ran past {self.deadline_s} s") from None
        if process.returncode != 0:
            last = (err.strip().splitlines() or ["no message"])[-1]
            raise Failed(f"exit status {process.returncode}: {last}")
        return out

    def run(self, cores, command):
        return self.finish(self.start(cores, command))

    def our(self, program):
        path = os.path.join(self.bin, program)
        if not os.path.exists(path):
            raise Failed(f"{path} is not built")
        return path

    def step_command(self, batch, steps, warm_up, seed):
        return [self.our("bench_step"), "--model", "toy_net", "--batch", str(batch), "--steps",
                str(steps), "--warmup", str(warm_up), "--threads", "1", "--seeds", str(seed),
                "--json", "-"]

    def torch_command(self, batch, steps, warm_up, seed, settings, ranks=1):
        if not self.torch:
            raise Failed("no torch")
        return [self.torch, os.path.join(HERE, "step_torch.py"), "--batch", str(batch), "--steps",
                str(steps), "--warmup", str(warm_up), "--seed", str(seed), "--ranks", str(ranks),
                "--settings", ",".join(settings)]

    def our_step(self, *what):
        return json.loads(self.run(self.cores[:1], self.step_command(*what)))

    def torch_step(self, *what):
        return json.loads(self.run(self.cores[:1], self.torch_command(*what)))

    def our_two_ranks(self, *what):
        return json.loads(self.run(self.cores[:2], [
            self.our("lockstep-run"), "--nproc-per-node", "2"] + self.step_command(*what)))

    def torch_two_ranks(self, *what):
        return json.loads(self.run(self.cores[:2], self.torch_command(*what, ranks=2)))

    def two_singles(self, command):
        """Two ranks that don't know of each other, on a core each, at the same time."""
        processes = []
        try:
            for core in self.cores[:2]:
                processes.append(self.start([core], command))
            return [json.loads(self.finish(p)) for p in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()

    def our_all_reduce(self, size, samples, warm_up):
        text = self.run(self.cores[:2], [
            self.our("all_reduce_perf"), "-b", str(size), "-e", str(size), "-n", str(samples), "-w",
            str(warm_up), "--json", "-"])
        return next(r for r in json.loads(text)["results"] if r["in_place"])

    def gloo_all_reduce(self, sizes, samples, warm_up):
        if not self.torch:
            raise Failed("no torch")
        return self.lines(self.run(self.cores[:2], [
            self.torch, os.path.join(HERE, "all_reduce_gloo.py"), "--iters", str(samples),
            "--warmup", str(warm_up), "--sizes", ",".join(str(s) for s in sizes)]))

    def mpi_all_reduce(self, sizes, samples, warm_up):
        if shutil.which("mpirun") is None:
            raise Failed("no mpirun")
        program = self.our("all_reduce_mpi")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return self.lines(self.run(self.cores[:2], [
            "mpirun", *root, "--bind-to", "core", "-n", "2", program, str(samples),
            str(warm_up)] + [str(s) for s in sizes]))

    @staticmethod
    def lines(text):
        """{bytes: record} of one JSON object per line."""
        records = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {r["bytes"]: r for r in records}

    def our_add(self, repetitions):
        text = self.run(self.cores[:1], [
            self.our("op_bench"), "--benchmark_filter=one_element", "--benchmark_format=json",
            "--benchmark_min_time=0.02", f"--benchmark_repetitions={repetitions}",
            "--benchmark_report_aggregates_only=true"])
        return {b["run_name"]: b["real_time"] for b in json.loads(text)["benchmarks"]
                if b.get("aggregate_name") == "median"}

    def build_torch_add(self):
        """Compiles add_torch.cpp against the PyTorch given, once per version."""
        if not self.torch:
            raise Failed("no torch")
        where, version = self.run(self.cores, [
            self.torch, "-c", "import torch; print(torch.__path__[0]); print(torch.__version__)"
        ]).split()
        program = os.path.join(self.bin, "add_torch-" + version)
        if os.path.exists(program):
            return program
        compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
        new = tempfile.mktemp(prefix="add_torch-", dir=self.bin)
        self.run(self.cores, [
            compiler, "-O2", "-std=c++20", f"-I{where}/include",
            f"-I{where}/include/torch/csrc/api/include", os.path.join(HERE, "add_torch.cpp"), "-o",
            new, f"-L{where}/lib", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10",
            f"-Wl,-rpath,{where}/lib"])
        os.rename(new, program)
        return program

    def torch_add(self, program):
        return json.loads(self.run(self.cores[:1], [program]))

    def import_torch_seconds(self):
        if not self.torch:
            raise Failed("no torch")
        begin = time.monotonic()
        done = self.run(self.cores[:1], [
            self.torch, "-c", "import time, torch; print(time.monotonic())"])
        return float(done) - begin

    def our_first_step_seconds(self):
        command = self.step_command(8, 1, 0, 1)
        begin = time.monotonic()
        return json.loads(self.run(self.cores[:1], command))["first_step_at_monotonic_s"] - begin


def warn(text):
    print(text, file=sys.stderr, flush=True)
