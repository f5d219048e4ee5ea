#!/usr/bin/env python3
"""The virtual GPU's headers against a CUDA toolkit's: every value of every enum and every signature.

check_headers.py <virtual include folder> <toolkit include folder> <compiler>
Exit status 77 where the toolkit lacks a header: nothing was checked of it.
"""
import os
import re
import subprocess
import sys
import tempfile

PAIRS = [  # ours, the toolkit's
    (["vgpu/host_types.h", "vgpu/host_api.h"], "cuda_runtime_api.h"),
    (["library_types.h", "cublasLt.h"], "cublasLt.h"),
    (["cudnn.h"], "cudnn.h"),
    (["nccl.h"], "nccl.h"),
]
# cuBLAS has these in a library of its own.
ELSEWHERE = {"cublasGetStatusName", "cublasGetStatusString"}


def checks(text):
    values = re.findall(r"\b((?:cuda|CUDNN_|CUBLAS|CUDA_R_|nccl)\w+)\s*=\s*(\d+)\s*[,}]", text)
    lines = [f'static_assert(static_cast<int>({n}) == {v}, "{n}");' for n, v in values]
    for block in re.findall(r'extern "C" \{(.*?)\}  // extern', text, re.S):
        for declaration in re.sub(r"//[^\n]*", "", block).split(";"):
            found = re.match(r"(.*?)\b(\w+)\((.*)\)$", " ".join(declaration.split()))
            if found is None or found.group(2) in ELSEWHERE:
                continue
            result, name, arguments = found.groups()
            arguments = re.sub(r" = [^,]+", "", arguments)
            lines.append(f"static_cast<void>(static_cast<{result}(*)({arguments})>(&{name}));")
    return lines


def main():
    ours, theirs, compiler = sys.argv[1:4]
    missing, wrong = [], False
    for headers, real in PAIRS:
        if not os.path.exists(os.path.join(theirs, real)):
            missing.append(real)
            continue
        lines = checks("".join(open(os.path.join(ours, h)).read() for h in headers))
        program = f"#include <{real}>\n#include <cstddef>\n#include <cstdint>\nint main() {{\n"
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(program + "\n".join(lines) + "\n}\n")
            file.flush()
            done = subprocess.run([compiler, "-std=c++20", "-w", "-fsyntax-only", "-I" + theirs,
                                   file.name], capture_output=True, text=True)
        print(f"{real}: {len(lines)} checks, {'as in the toolkit' if done.returncode == 0 else 'WRONG'}")
        if done.returncode != 0:
            print(done.stderr)
            wrong = True
    if missing:
        print("not in the toolkit, not checked: " + ", ".join(missing))
    sys.exit(1 if wrong else 77 if len(missing) == len(PAIRS) else 0)


main()
