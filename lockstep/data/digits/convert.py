"""Converts scikit-learn's copy of the UCI optical digits to digits.inc, which digits.cpp compiles in.

python convert.py [digits.csv.gz]   (default: the file of the installed scikit-learn)

A line of the table is 64 pixels of 0..16, row by row, and the label. A line of digits.inc is a C
string of 65 characters: the label, then the pixels as 0..9, a..g.
"""
import csv
import gzip
import importlib.util
import pathlib
import sys

SYMBOLS = "0123456789abcdefg"


def main():
    if len(sys.argv) > 1:
        table = pathlib.Path(sys.argv[1])
    else:
        package = pathlib.Path(importlib.util.find_spec("sklearn").origin).parent
        table = package / "datasets" / "data" / "digits.csv.gz"
    lines = []
    with gzip.open(table, "rt", newline="") as file:
        for row in csv.reader(file):
            *pixels, label = (int(float(value)) for value in row)
            assert len(pixels) == 64 and 0 <= label <= 9, row
            lines.append('"%d%s",\n' % (label, "".join(SYMBOLS[pixel] for pixel in pixels)))
    assert len(lines) == 1797, len(lines)
    target = pathlib.Path(__file__).parent / "digits.inc"
    target.write_text("// Made by convert.py; source and licence in SOURCE.md.\n" + "".join(lines))


main()
