#!/usr/bin/env python3
"""Writes x.npy and y.npy: 128 samples of 128 normal numbers, and each sample in reverse as its target.

usage: make_data.py FOLDER
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "support"))
from tensor_files import tensor, write_npy  # noqa: E402

SAMPLES, WIDTH = 128, 128


def main():
    folder = sys.argv[1]
    rng = random.Random(0)
    samples = [[rng.gauss(0, 1) for _ in range(WIDTH)] for _ in range(SAMPLES)]
    for name, rows in ("x", samples), ("y", [row[::-1] for row in samples]):
        values = (v for row in rows for v in row)
        write_npy(os.path.join(folder, f"{name}.npy"), tensor("f32", (SAMPLES, WIDTH), values))


if __name__ == "__main__":
    main()
