#!/usr/bin/env python3
"""What a rank keeps under ZeRO does not depend on how many replicas there are: the report's classes say so.

usage: replicas.py MODEL.mlir --work FOLDER
"""

import argparse
import itertools
import json
import os
import sys

import shoal

CLASSES = ("params", "grads", "optimizer")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--work", required=True)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)

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
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
