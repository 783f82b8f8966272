#!/usr/bin/env python3
"""Tiles of scores that ranks compute in a step, as a run counts them: equally many in zigzag order, not in a plain ring.

usage: context_balance.py MODEL.mlir --work FOLDER

MODEL has a causal mask, inputs of tokens `ids`, `qs`, `ks` and targets `y`, [2, S] each.
"""

import json
import re
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser


def count_tiles(model, mode, ranks, data, work):
    """Of each rank in a step."""
    program = shoal.shoalc(model, f"{work}/{mode}{ranks}", "--mesh", f"context={ranks}", "--context-parallel", mode,
                           "--optimizer", "sgd")
    shoal.run(ranks, program, *data, "--steps", "2", "--report", f"{work}/report.json")
    with open(f"{work}/report.json") as f:
        return [rank["measured"]["attention_tiles"] for rank in json.load(f)["ranks"]]


def main():
    args = WorkParser(__doc__, "model").parse_args()
    with open(args.model) as f:
        tokens = int(re.search(r'tensor<2x(\d+)xi64> {nn.input = "ids"', f.read())[1])
    data = []
    for name in ("ids", "qs", "ks", "y"):
        write_npy(f"{args.work}/{name}.npy", tensor("i64", (2, tokens), [i % 7 for i in range(2 * tokens)]))
        data += ["--data", f"{name}={args.work}/{name}.npy"]
    failed = False
    for ranks in (2, 4):
        zigzag, ring = (count_tiles(args.model, mode, ranks, data, args.work) for mode in ("zigzag", "ring"))
        print(f"{ranks} ranks, tiles in a step: zigzag {zigzag}, ring {ring}")
        failed |= max(zigzag) - min(zigzag) > 1 or max(ring) < 2 * min(ring) or min(zigzag) == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
