#!/usr/bin/env python3
"""Compiles and runs the hand-written local program of test/EndToEnd/local_program.mlir.

usage: local_program.py PROGRAM.mlir --work FOLDER RANKS...

RANKS, LAST (the last rank), SHARD (elements of a padded shard), PART (of 12), FROM and TO (each rank and the next) are filled in. Each output must be
what the definition of its collective gives, and the bytes of the compiler's and the program's
reports must agree.
"""

import os
import sys

import shoal
from tensor_files import read_npy, tensor, write_npy
from work_parser import WorkParser

X = [3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.5]


def expected(ranks):
    shard = -(-len(X) // ranks)
    last = ranks - 1
    twelve = [float(i + 1) for i in range(12)]
    return {
        "owner": [v * (i // shard) for i, v in enumerate(X)],
        "sum": [v * ranks * last / 2 for v in X],
        "most": [max(0.0, v * last) for v in X],
        "scattered": [v * ranks for v in X],
        "root": X,
        "parts": twelve,
        "gathered": [v * (i // (12 // ranks)) for i, v in enumerate(twelve)],
        "moved": X,
        "ring": [v * last for v in X],
        "hops": [v * (-2 % ranks) for v in X],
        "back": X,
        "beside": [v * ranks * last / 2 for v in X],
    }


def main():
    parser = WorkParser(__doc__, "program")
    parser.add_argument("ranks", nargs="+", type=int)
    args = parser.parse_args()
    with open(args.program) as f:
        text = f.read()
    write_npy(f"{args.work}/x.npy", tensor("f64", (len(X),), X))

    failures = 0
    for ranks in args.ranks:
        def path(name):
            return os.path.join(args.work, f"{ranks}-{name}")

        filled = text.replace("RANKS", str(ranks)).replace("LAST", str(ranks - 1))
        with open(path("program.mlir"), "w") as f:
            filled = filled.replace("FROM", ", ".join(str(r) for r in range(ranks)))
            filled = filled.replace("TO", ", ".join(str((r + 1) % ranks) for r in range(ranks)))
            f.write(filled.replace("SHARD", str(-(-len(X) // ranks))).replace("PART", str(12 // ranks)))
        program = shoal.shoalc(path("program.mlir"), path("program"), "--report", path("promise.json"))
        wanted = expected(ranks)
        outputs = [a for name in wanted for a in ("--output", f"{name}={path(name)}.npy")]
        shoal.run(ranks, program, "--data", f"x={args.work}/x.npy", "--report", path("counted.json"), *outputs)
        for name, values in wanted.items():
            got = list(read_npy(f"{path(name)}.npy").data)
            if got != values:
                print(f"{ranks} ranks: {name}: got {got}, expected {values}")
                failures += 1
        promised, count = shoal.ranks_of_report(path("promise.json")), shoal.ranks_of_report(path("counted.json"))
        if promised != count:
            print(f"{ranks} ranks: promised {promised}, counted {count}")
            failures += 1
        print(f"{ranks} ranks: {len(wanted)} outputs compared")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
