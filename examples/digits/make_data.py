#!/usr/bin/env python3
"""Writes the digits' .npy files from scikit-learn's digits.csv.gz.

usage: make_data.py digits.csv.gz | scikit_learn-*.whl  [OUTPUT-FOLDER]

Each line of the file holds the 64 pixels of an 8x8 image, 0..16, and its digit.
Pixels are written as f32 divided by 16, which is exact; labels as i64. Every fifth
row (0, 5, 10, ...) is the test set, the others in order are the training set.
"""

import gzip
import io
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "test", "support"))
from tensor_files import tensor, write_npy  # noqa: E402

IN_WHEEL = "sklearn/datasets/data/digits.csv.gz"


def read_rows(path):
    raw = zipfile.ZipFile(path).read(IN_WHEEL) if path.endswith(".whl") else open(path, "rb").read()
    text = gzip.GzipFile(fileobj=io.BytesIO(raw)).read().decode()
    return [[int(v) for v in line.split(",")] for line in text.split()]


def write_set(folder, name, rows):
    pixels = [v / 16 for row in rows for v in row[:64]]
    labels = [row[64] for row in rows]
    write_npy(os.path.join(folder, f"{name}_x.npy"), tensor("f32", (len(rows), 64), pixels))
    write_npy(os.path.join(folder, f"{name}_y.npy"), tensor("i64", (len(rows),), labels))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[2] if len(sys.argv) == 3 else HERE
    rows = read_rows(sys.argv[1])
    if len(rows) != 1797 or any(len(row) != 65 for row in rows):
        sys.exit(f"{sys.argv[1]}: expected 1797 rows of 65 numbers, got: {len(rows)} rows")
    write_set(folder, "test", [row for i, row in enumerate(rows) if i % 5 == 0])
    write_set(folder, "train", [row for i, row in enumerate(rows) if i % 5 != 0])


if __name__ == "__main__":
    main()
