#!/usr/bin/env python3
"""What can be counted of the CUDA kernels without a GPU, as one table.

kernel_table.py BUILD_FOLDER PTXAS [--json FILE]

Bytes, wavefronts and the width of accesses are counted while the kernels' PTX runs (kernel_traffic);
registers and spills are ptxas's for sm_80; tensor-core instructions and atomics on floats are
counted in the PTX. Exit status 1 where a kernel misses its figure and REASONS does not name it.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

# Figures that are missed, and why.
ONE_BY_ONE = ("elements lie apart on one side of the tile, so each thread moves one; the warp's sectors "
              "are full all the same")
REASONS = {
    "transpose f32: width": ONE_BY_ONE,
    "transpose bf16: width": ONE_BY_ONE,
}

MOST_WAVEFRONTS = 1.05
LEAST_WIDTH = 0.95  # of 16 bytes to a thread's access


def compile_for_gpu(ptxas, ptx):
    """Registers and spilled bytes of each kernel of a PTX file."""
    run = subprocess.run([ptxas, "-v", "-arch=sm_80", str(ptx), "-o", "/dev/null"],
                         capture_output=True, text=True, check=True)
    kernels, name = {}, None
    for line in run.stderr.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'", line):
            name = found[1]
            kernels[name] = {"registers": 0, "spills": 0}
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if name:
                kernels[name]["spills"] += int(found[1]) + int(found[2])
        elif found := re.search(r"Used (\d+) registers", line):
            kernels[name]["registers"] = int(found[1])
    return kernels


def count_in_ptx(ptx):
    """Tensor-core instructions and atomics on floats in each kernel's text."""
    kernels, name = {}, None
    for line in ptx.read_text().splitlines():
        if found := re.search(r"\.entry (\w+)\(", line):
            name = found[1]
            kernels[name] = {"mma": 0, "float_atomics": 0}
        elif name and re.match(r"\s*(@%p\d+ )?mma\.sync", line):
            kernels[name]["mma"] += 1
        elif name and re.match(r"\s*(@%p\d+ )?(atom|red)\.\S*\.(f|bf)\d+", line):
            kernels[name]["float_atomics"] += 1
    return kernels


def all_kernels(folder, ptxas):
    kernels = {}
    files = sorted(folder.glob("*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for compiled in pool.map(lambda ptx: compile_for_gpu(ptxas, ptx), files):
            kernels.update(compiled)
    for ptx in files:
        for name, counts in count_in_ptx(ptx).items():
            kernels[name].update(counts)
    return kernels


def row_of(case, kernels):
    of_case = [kernels[k] for k in case["kernels"]]
    requests = case["requests"]
    return {
        "name": case["name"],
        "launches": case["launches"],
        "bytes over minimum": case["bytes"] / case["minimum"],
        "most bytes": case["most"],
        "bytes per access": case["bytes"] / 32 / max(case["accesses"], 1),
        "width": case["width"],
        "wavefronts over free":
            case["wavefronts"] / requests / case["free_wavefronts"] if requests else 1.0,
        "registers": max(k["registers"] for k in of_case),
        "spills": sum(k["spills"] for k in of_case),
        "mma": sum(k["mma"] for k in of_case),
        "float atomics": sum(k["float_atomics"] for k in of_case),
    }


def misses(row):
    if row["bytes over minimum"] > row["most bytes"]:
        yield "bytes"
    if row["wavefronts over free"] > MOST_WAVEFRONTS:
        yield "wavefronts"
    if row["bytes per access"] < LEAST_WIDTH * row["width"]:
        yield "width"


def print_table(rows):
    columns = ["launches", "bytes over minimum", "bytes per access", "wavefronts over free",
               "registers", "spills", "mma", "float atomics"]
    print("| op, a million elements | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for row in rows:
        cells = [f"{row[c]:.3f}" if isinstance(row[c], float) else str(row[c]) for c in columns]
        print(f"| {row['name']} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("ptxas")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    folder = args.build / "tests/ptx"
    kernels = all_kernels(folder / "files", args.ptxas)
    run = subprocess.run([args.build / "bin/kernel_traffic", folder / "libptx_executor.so",
                          folder / "files"], stdout=subprocess.PIPE, text=True, check=True)
    rows = [row_of(json.loads(line), kernels) for line in run.stdout.splitlines()]
    print_table(rows)

    complaints = []
    for row in rows:
        for what in misses(row):
            key = f"{row['name']}: {what}"
            reason = REASONS.get(key)
            print(f"{key}: {reason or 'MISSED'}")
            if reason is None:
                complaints.append(key)
    spilling = sorted(name for name, k in kernels.items() if k["spills"])
    atomic = sorted(name for name, k in kernels.items() if k["float_atomics"])
    print(f"{len(kernels)} kernels for sm_80: {len(spilling)} spill, "
          f"{len(atomic)} have atomics on floats, "
          f"at most {max(k['registers'] for k in kernels.values())} registers")
    for name in spilling + atomic:
        if name not in REASONS:
            complaints.append(name)
        print(f"  {name}: {kernels[name]}, {REASONS.get(name, 'MISSED')}")
    if args.json:
        args.json.write_text(json.dumps({"ops": rows, "kernels": kernels}, indent=1) + "\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
