"""What the tables of benchmarks share: Markdown, whether a number keeps its bound, the Python that has PyTorch."""

import os

MB = 1e6
TORCH_PYTHON = os.environ.get("SHOAL_TORCH_PYTHON", "/usr/bin/python3")  # else Debian's python3-torch


def at_most(value, bound):
    return f"{'≤' if value <= bound else '> MISSED'} {bound:g}"


def at_least(value, bound):
    return f"{'≥' if value >= bound else '< MISSED'} {bound:g}"


def table(title, columns, rows):
    print(f"| {title} | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
