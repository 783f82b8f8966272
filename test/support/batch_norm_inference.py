#!/usr/bin/env python3
"""Trains and runs test/EndToEnd/batch_norm_inference.mlir on 1 and 2 ranks, against the formulas.

usage: batch_norm_inference.py MODEL.mlir --work FOLDER

Two steps over 9 rows in batches of 6, the second a short one of 3: the running statistics are those of
the real rows. Inference over the same rows is elementwise in them. A file without them is refused.
"""

import math
import os
import sys

import shoal
from golden import Checker
from tensor_files import read_npy, read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser

ROWS, BATCH, FEATURES, MOMENTUM, EPS = 9, 6, 4, 0.1, 1e-3


def running_statistics(x):
    mean, var = [0.25] * FEATURES, [1.5] * FEATURES
    for begin in range(0, ROWS, BATCH):
        rows = x[begin : begin + BATCH]
        for f in range(FEATURES):
            column = [row[f] for row in rows]
            m = sum(column) / len(column)
            v = sum((c - m) ** 2 for c in column) / (len(column) - 1)
            mean[f] = (1 - MOMENTUM) * mean[f] + MOMENTUM * m
            var[f] = (1 - MOMENTUM) * var[f] + MOMENTUM * v
    return mean, var


def main():
    args = WorkParser(__doc__, "model").parse_args()
    flat = [3 + math.sin(0.7 * (i + 1)) for i in range(ROWS * FEATURES)]
    x = [flat[r * FEATURES : (r + 1) * FEATURES] for r in range(ROWS)]
    write_npy(f"{args.work}/x.npy", tensor("f64", (ROWS, FEATURES), flat))

    check = Checker(1e-12)
    for ranks in (1, 2):
        def path(name):
            return os.path.join(args.work, f"{ranks}-{name}")

        data = ("--data", f"x={args.work}/x.npy")
        program = shoal.shoalc(args.model, path("train"), *shoal.mesh_options(ranks), "--lr", "0.1")
        shoal.run(ranks, program, *data, "--epochs", "1", "--dump-params", path("params.safetensors"))
        params = read_safetensors(path("params.safetensors"))
        mean, var = running_statistics(x)
        check.tensor("running mean", params.get("bn.running_mean"), {"values": mean})
        check.tensor("running variance", params.get("bn.running_var"), {"values": var})

        program = shoal.shoalc(args.model, path("infer"), *shoal.mesh_options(ranks), "--mode", "infer")
        shoal.run(ranks, program, *data, "--load", path("params.safetensors"), "--output", f"y={path('y.npy')}")
        g, b = params["g"].data, params["b"].data
        wanted = [(row[f] - mean[f]) / math.sqrt(var[f] + EPS) * g[f] + b[f] for row in x for f in range(FEATURES)]
        check.tensor("output", read_npy(path("y.npy")), {"values": wanted})

        del params["bn.running_var"]
        write_safetensors(path("partial.safetensors"), params)
        said = shoal.run(ranks, program, *data, "--load", path("partial.safetensors"),
                         "--output", f"y={path('none.npy')}", expect=2)
        if "'bn.running_var' is missing, expected shape [4]" not in said:
            check.failures.append(f"a file without a buffer: {said!r}")
    for line in check.failures:
        print(line)
    sys.exit(1 if check.failures else 0)


if __name__ == "__main__":
    main()
