#!/usr/bin/env python3
"""Runs examples/collectives: what the programs print is what the reference interpreter prints and what the
definitions of the collectives say; what is sent is what the compiler promised.

usage: collectives.py EXAMPLES --work FOLDER RANKS...
"""

import os
import re
import sys

import shoal
from work_parser import WorkParser

CHUNK = 2  # elements of a rank's part, in every example


def before(rank, size):
    """What each example makes of its rank."""
    return [10.0 * rank + i for i in range(size)]


def everyone(values, ranks):
    return [values] * ranks


def summed(ranks, size):
    return [sum(before(r, size)[i] for r in range(ranks)) for i in range(size)]


def gathered(ranks):
    return [v for r in range(ranks) for v in before(r, CHUNK)]


def part(values, rank):
    return values[CHUNK * rank:CHUNK * (rank + 1)]


# Per example the results of all ranks, by the definition of the collective.
EXPECTED = {
    "broadcast": lambda n: {"after": everyone(before(1, 4), n)},
    "broadcast-by-messages": lambda n: {"after": everyone(before(0, 4), n)},
    "all-reduce": lambda n: {"after": everyone(summed(n, CHUNK * n), n)},
    "ring-all-reduce": lambda n: {"after": everyone(summed(n, CHUNK * n), n)},
    "all-gather": lambda n: {"after": everyone(gathered(n), n)},
    "reduce-scatter": lambda n: {"after": [part(summed(n, CHUNK * n), r) for r in range(n)]},
    "scatter-and-gather": lambda n: {
        "part": [part(before(0, CHUNK * n), r) for r in range(n)],
        "after": [[-v for v in before(0, CHUNK * n)] if r == 1 else [0.0] * (CHUNK * n) for r in range(n)]},
    "all-to-all": lambda n: {"after": [[before(k, n)[r] for k in range(n)] for r in range(n)]},
}


def parse(lines):
    """{(rank, name): values} of the lines "rank 0 before: [0, 1]"."""
    results = {}
    for line in lines:
        match = re.fullmatch(r"rank (\d+) (\w+): \[(.*)\]", line)
        if not match:
            sys.exit(f"not a line of an output: {line}")
        results[int(match[1]), match[2]] = [float(v) for v in match[3].split(", ")]
    return results


def check(path, name, ranks, work):
    program = os.path.join(work, f"{name}-{ranks}")
    shoal.shoalc(path, program, "--report", f"{program}.promise.json")
    printed = shoal.printed(shoal.run(ranks, program, "--print", "--report", f"{program}.counted.json"))
    interpreted = shoal.call(["shoal-opt", "--interpret=all-ranks outputs", path, "-o", os.devnull], shoal.COMPILE_LIMIT)
    if printed != interpreted.splitlines():
        sys.exit(f"{path}: the program prints {printed}, the interpreter\n{interpreted}")
    got = parse(printed)
    for result, values in EXPECTED[name](ranks).items():
        for rank in range(ranks):
            if got[rank, result] != values[rank]:
                sys.exit(f"{path}: rank {rank} {result}: {got[rank, result]}, expected {values[rank]}")
    size = len(got[0, "before"])
    for rank in range(ranks):
        if got[rank, "before"] != before(rank, size):
            sys.exit(f"{path}: rank {rank} before: {got[rank, 'before']}")
    promised = shoal.ranks_of_report(f"{program}.promise.json")
    counted = shoal.ranks_of_report(f"{program}.counted.json")
    if promised != counted:
        sys.exit(f"{path}: promised {promised}, counted {counted}")
    return counted


def check_refusal(examples, work):
    """The ring without its groups, under the name that README gives it: the error that README quotes."""
    name = "ring-all-reduce-4.mlir"
    with open(os.path.join(examples, name)) as f:
        text, groups = re.subn(r"( *)%(\w+) = dist\.group \{\n *(dist\.send.*)\n *%message = (dist\.recv.*)\n"
                               r" *dist\.yield.*\n *\} : .*\n", r"\1\3\n\1%\2 = \4\n", f.read())
    path = os.path.join(work, name)
    with open(path, "w") as f:
        f.write(text)
    said = shoal.call(["shoalc", path, "-o", f"{path}.out"], shoal.COMPILE_LIMIT, expect=2).replace(work + os.sep, "")
    with open(os.path.join(examples, "README.md")) as f:
        quoted = [line for line in f.read().splitlines() if line.startswith(f"{name}:")]
    if groups != 2 or quoted != said.splitlines():
        sys.exit(f"README.md quotes {quoted} of the ring without its {groups} groups, shoalc says {said}")


def main():
    parser = WorkParser(__doc__, "examples")
    parser.add_argument("ranks", nargs="+", type=int)
    args = parser.parse_args()
    known = {f"{name}-{ranks}.mlir" for name in EXPECTED for ranks in args.ranks}
    present = {f for f in os.listdir(args.examples) if f.endswith(".mlir")}
    if known != present:
        sys.exit(f"examples without expected values, or the other way round: {sorted(known ^ present)}")
    check_refusal(args.examples, args.work)
    for ranks in args.ranks:
        sent = {name: check(os.path.join(args.examples, f"{name}-{ranks}.mlir"), name, ranks, args.work)
                for name in EXPECTED}
        # Every link is busy in every step: 2 (N - 1) messages of one chunk from each rank to its next, as many
        # bytes as the ring formula gives the library's all-reduce.
        for mine, library in zip(sent["ring-all-reduce"], sent["all-reduce"]):
            steps = 2 * (ranks - 1)
            (messages,), (reduce,) = mine["collectives"], library["collectives"]
            if (messages["count"], messages["bytes"]) != (steps, steps * CHUNK * 4) or \
                    messages["bytes"] != reduce["bytes"]:
                sys.exit(f"ring of {ranks}: rank {mine['rank']} sends {messages}, all-reduce {reduce}")
        print(f"{ranks} ranks: {len(EXPECTED)} examples print what they should")


if __name__ == "__main__":
    main()
