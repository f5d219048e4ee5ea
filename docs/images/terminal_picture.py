#!/usr/bin/env python3
"""Draws what a command printed as an SVG of a terminal window.

    scripts/train 2>/dev/null | docs/images/terminal_picture.py '$ scripts/train' > docs/images/run.svg
"""
import html
import sys

CHAR, LINE, PAD, BAR, COLUMNS = 7.8, 18, 16, 30, 132


def main():
    lines = [sys.argv[1]] if len(sys.argv) > 1 else []
    for line in sys.stdin.read().rstrip("\n").split("\n"):
        while len(line) > COLUMNS:
            cut = line.rfind(" ", 0, COLUMNS) + 1 or COLUMNS
            lines.append(line[:cut].rstrip())
            line = "    " + line[cut:]
        lines.append(line)
    width = int(max(len(line) for line in lines) * CHAR + 2 * PAD)
    height = BAR + len(lines) * LINE + 2 * PAD
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
          f'viewBox="0 0 {width} {height}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f27"/>')
    for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        print(f'<circle cx="{20 + 20 * i}" cy="{BAR / 2 + 2}" r="6" fill="{colour}"/>')
    print('<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" '
          'fill="#d7dae0" xml:space="preserve">')
    for i, line in enumerate(lines):
        colour = ' fill="#8fd18f"' if line.startswith(("$ ", "best ")) else ""
        y = BAR + PAD + (i + 0.7) * LINE
        print(f'<text x="{PAD}" y="{y:.1f}"{colour}>'
              f"{html.escape(line).replace(chr(32), chr(160))}</text>")
    print("</g>\n</svg>")


main()
