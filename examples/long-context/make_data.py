#!/usr/bin/env python3
"""Writes input_ids.npy and labels.npy: 16 rows of tokens whose second half is the first once more, so that it is found
by who looks half a sequence back, on another rank.

usage: make_data.py FOLDER SEQUENCE
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "support"))
from tensor_files import tensor, write_npy  # noqa: E402

ROWS, VOCAB = 16, 64


def main():
    folder, length = sys.argv[1], int(sys.argv[2])
    rng = random.Random(0)
    halves = [[min(int(rng.expovariate(0.1)), VOCAB - 1) for _ in range((length + 2) // 2)] for _ in range(ROWS)]
    for name, begin in ("input_ids", 0), ("labels", 1):
        values = (token for half in halves for token in (half + half)[begin:begin + length])
        write_npy(os.path.join(folder, f"{name}.npy"), tensor("i64", (ROWS, length), values))


if __name__ == "__main__":
    main()
