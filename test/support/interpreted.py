#!/usr/bin/env python3
"""Runs a program without data on one rank: its outputs must be what the reference interpreter says.

usage: interpreted.py MODEL.mlir --work FOLDER --tolerance X [--attention-tiles N]

An output may be wrong by the tolerance, relative to its norm. With --attention-tiles the report must count N a step.
"""

import json
import math
import os
import re
import sys

import shoal
from work_parser import WorkParser


def parse(text):
    """{name: values} of the lines "rank 0 o: [0, 1]"."""
    outputs = {}
    for line in shoal.printed(text):
        name, values = re.fullmatch(r"rank 0 (\w+): \[(.*)\]", line).groups()
        outputs[name] = [float(value) for value in re.sub(r"[\[\]]", "", values).split(", ")]
    return outputs


def error(got, want):
    """The norm of the difference, relative to that of what is wanted; what is infinite must be equal."""
    if len(got) != len(want) or any(a != b for a, b in zip(got, want) if not (math.isfinite(a) and math.isfinite(b))):
        return math.inf
    pairs = [(a, b) for a, b in zip(got, want) if math.isfinite(b)]
    return math.dist(*zip(*pairs)) / math.hypot(*(b for _, b in pairs))


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("--tolerance", type=float, required=True)
    parser.add_argument("--attention-tiles", type=int)
    args = parser.parse_args()
    program, report = os.path.join(args.work, "program"), os.path.join(args.work, "report.json")
    shoal.shoalc(args.model, program, "--mode", "infer")
    got = parse(shoal.run(1, program, "--print", "--report", report))
    want = parse(shoal.call(["shoal-opt", "--interpret=outputs", args.model, "-o", os.devnull], shoal.COMPILE_LIMIT))
    if not want or got.keys() != want.keys():
        sys.exit(f"{args.model}: the program prints {list(got)}, the interpreter {list(want)}")
    for name, values in want.items():
        wrong = error(got[name], values)
        if not wrong <= args.tolerance:
            sys.exit(f"{args.model}: {name} is wrong by {wrong}\n{got[name]}\n{values}")
    if args.attention_tiles is not None:
        with open(report) as file:
            counted = json.load(file)["ranks"][0]["measured"].get("attention_tiles")
        if counted != args.attention_tiles:
            sys.exit(f"{args.model}: {counted} tiles of attention, expected {args.attention_tiles}")


if __name__ == "__main__":
    main()
