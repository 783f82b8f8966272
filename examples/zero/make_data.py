#!/usr/bin/env python3
"""Writes x.npy and y.npy: 1024 samples of normal numbers, and softmax of normal numbers as their targets.

usage: make_data.py [OUTPUT-FOLDER]
"""

import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "test", "support"))
from tensor_files import tensor, write_npy  # noqa: E402

SAMPLES, FEATURES, CLASSES = 1024, 16, 10


def softmax(row):
    exponentials = [math.exp(v) for v in row]
    return [e / sum(exponentials) for e in exponentials]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    rng = random.Random(0)
    x = [rng.gauss(0, 1) for _ in range(SAMPLES * FEATURES)]
    y = [v for _ in range(SAMPLES) for v in softmax([rng.gauss(0, 1) for _ in range(CLASSES)])]
    write_npy(os.path.join(folder, "x.npy"), tensor("f32", (SAMPLES, FEATURES), x))
    write_npy(os.path.join(folder, "y.npy"), tensor("f32", (SAMPLES, CLASSES), y))


if __name__ == "__main__":
    main()
