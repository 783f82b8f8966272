#!/usr/bin/env python3
"""Compiles a model and a local program of the same step, trains both from the same start, and compares their losses.

usage: two_stages.py MODEL.mlir LOCAL.mlir --work FOLDER

The model runs on one rank with the optimizer that the local program writes out, SGD at a rate of 0.1; the local program
on two.
"""

import json
import random
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

STEPS = 6


def losses(path):
    with open(path) as f:
        return [json.loads(line)["loss"] for line in f]


def main():
    args = WorkParser(__doc__, "model", "local").parse_args()
    rng = random.Random(5)
    data = []
    for name in "xy":
        path = f"{args.work}/{name}.npy"
        write_npy(path, tensor("f64", (8, 4), [rng.uniform(-1, 1) for _ in range(32)]))
        data += ["--data", f"{name}={path}"]

    def train(ranks, program):
        metrics = f"{program}.jsonl"
        shoal.run(ranks, program, *data, "--steps", str(STEPS), "--metrics", metrics)
        return losses(metrics)

    one = train(1, shoal.shoalc(args.model, f"{args.work}/one", "--optimizer", "sgd", "--lr", "0.1"))
    two = train(2, shoal.shoalc(args.local, f"{args.work}/two"))
    print("one device:", one)
    print("two stages:", two)
    if len(one) != STEPS or one[-1] > 0.95 * one[0]:
        sys.exit("one device does not learn")
    if any(abs(a - b) > 1e-12 * abs(a) for a, b in zip(one, two, strict=True)):
        sys.exit("two stages do not train as one device")


if __name__ == "__main__":
    main()
