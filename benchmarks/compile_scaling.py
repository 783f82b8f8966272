#!/usr/bin/env python3
"""How the compiler's own passes grow with a model, as a Markdown table: time and memory from source to rank program.

usage: compile_scaling.py --work FOLDER [--layers 500,1000,2000]   (tools on PATH, see run.sh)

Chains of tiny layers under Adam over two ranks, in two kinds: matmuls alone (three arguments and three results of the
step per layer, hardly any kernels), and perceptrons with bias and relu, where fusion has most to try. The processor's time is taken, best of three, since a shared machine stretches the wall's. Twice the layers
should take twice as long; the exit status is 1 when they take more than the bound says, which n² would.
"""

import argparse
import os
import subprocess
import sys

from generate_mlp import generate

BATCH, WIDTH = 4, 4
LAYERS = [500, 1000, 2000]
RATIO_BOUND, LIMIT = 2.6, 600


def compile_once(model):
    """Seconds of the processor, and the peak of resident memory in MB, of one run of `shoalc`."""
    command = ["shoalc", model, "-o", f"{model}.exec", "--emit", "exec", "--mesh", "data=2", "--optimizer", "adam"]
    child = subprocess.Popen(["timeout", str(LIMIT), *command])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"exit status {child.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(work, layers, linear):
    """Per number of layers: best seconds and largest memory of three compilations."""
    rows = []
    for count in layers:
        model = f"{work}/{'chain' if linear else 'perceptron'}{count}.mlir"
        with open(model, "w") as f:
            f.write(generate(BATCH, [WIDTH] * (count + 1), linear=linear))
        times, memory = zip(*(compile_once(model) for _ in range(3)))
        rows.append((count, min(times), max(memory)))
    return rows


def print_table(what, rows):
    """Prints the rows, each beside the one before it. Whether the last one keeps the bound."""
    print(f"| source to rank program, {what}, Adam, `--mesh data=2` | s | times the one before | MB |\n"
          "| --- | --- | --- | --- |")
    ratio = None
    for before, (layers, seconds, memory) in zip([None, *rows], rows):
        ratio = seconds / before[1] if before else None
        print(f"| {layers} layers | {seconds:.2f} | {f'{ratio:.2f}' if ratio else ''} | {memory:.0f} |")
    holds = ratio is None or ratio <= RATIO_BOUND
    if ratio is not None:
        print(f"\nThe last ratio is {'within' if holds else 'MORE THAN'} its bound, {RATIO_BOUND:g}.\n")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", required=True)
    parser.add_argument("--layers", type=lambda text: [int(n) for n in text.split(",")], default=LAYERS)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    kinds = [("a chain of matmuls", True), ("a perceptron with bias and relu", False)]
    hold = [print_table(what, measure(args.work, args.layers, linear)) for what, linear in kinds]
    sys.exit(0 if all(hold) else 1)


if __name__ == "__main__":
    main()
