#!/usr/bin/env python3
"""Data whose numbers index nothing are refused by every plan, with the file and the row.

usage: indices.py MODEL.mlir --work FOLDER PLAN...

The model has inputs ids (i32) and y (i64) of [4, 3], a vocabulary of 11 and labels that are ignored where they are -100. A plan
is flags of shoalc.
"""

import os
import subprocess
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

ROWS, TOKENS, VOCAB, IGNORED = 9, 3, 11, -100
TYPES = {"ids": "i32", "y": "i64"}
# Input, row, number: the first past the end, a negative one, and the ignored label where there is none.
WRONG = [("y", 8, VOCAB), ("y", 2, -1), ("ids", 5, VOCAB), ("ids", 0, IGNORED)]


def data(path, name, row=None, number=None):
    values = [(7 * i + 3) % VOCAB for i in range(ROWS * TOKENS)]
    if name == "y":
        values[4] = IGNORED
    if row is not None:
        values[row * TOKENS + 1] = number
    write_npy(path, tensor(TYPES[name], (ROWS, TOKENS), values))
    return f"{name}={path}"


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("plans", nargs="+")
    args = parser.parse_args()
    good = {name: data(os.path.join(args.work, f"{name}.npy"), name) for name in TYPES}
    faults = []
    for plan in args.plans:
        program = shoal.shoalc(args.model, os.path.join(args.work, "program"), *plan.split())
        ranks = shoal.ranks_of(plan.split()[1] if plan else "")

        def command(**replaced):
            words = ["shoal-run", "-n", str(ranks), os.path.abspath(program), "--epochs", "1"]
            for use in ("data", "eval_data"):
                for name in TYPES:
                    words += ["--" + use.replace("_", "-"), {**good, **replaced.get(use, {})}[name]]
            return words

        shoal.call(command(), shoal.RUN_LIMIT)
        for use in ("data", "eval_data"):
            for name, row, number in WRONG:
                path = os.path.join(args.work, "wrong.npy")
                words = command(**{use: {name: data(path, name, row, number)}})
                done = subprocess.run(words, capture_output=True, text=True, timeout=shoal.RUN_LIMIT)
                expected = f"{path}: row {row} holds {number}, but input '{name}' expects 0 to {VOCAB - 1}"
                expected += f", or {IGNORED}" if name == "y" else ""
                errors = [line for line in done.stderr.splitlines() if "error" in line]
                if done.returncode != 2 or len(errors) != 1 or not errors[0].endswith(expected):
                    faults.append(f"{plan or 'one device'}, {use}: exit status {done.returncode}, {done.stderr!r}, "
                                  f"expected 2 and {expected!r}")
    print("\n".join(faults) or "all refused")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
