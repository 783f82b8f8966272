#!/usr/bin/env python3
"""What a rank keeps under ZeRO does not depend on how many replicas there are: the report's classes say so.

usage: replicas.py MODEL.mlir --work FOLDER
"""

import itertools
import json
import os
import sys

import shoal
from work_parser import WorkParser

CLASSES = ("params", "grads", "optimizer")


def main():
    args = WorkParser(__doc__, "model").parse_args()

    def kept(mesh, zero, parts):
        path = f"{args.work}/report.json"
        shoal.shoalc(args.model, os.devnull, "--emit", "exec", "--mesh", mesh, "--optimizer", "adam", "--zero", str(zero),
                     "--microbatches", str(parts), "--report", path)
        with open(path) as file:
            held = json.load(file)["ranks"][0]["bytes"]
        return {name: held[name] for name in CLASSES}

    faults = []
    for zero, parts in itertools.product((0, 1, 2, 3), (1, 2)):
        one, many = kept("data=2", zero, parts), kept("replica=2,data=2", zero, parts)
        print(f"--zero {zero} --microbatches {parts}: {one}")
        if one != many or not all(one.values()):
            faults.append(f"--zero {zero} --microbatches {parts}: with two replicas {many}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
