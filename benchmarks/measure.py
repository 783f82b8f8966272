#!/usr/bin/env python3
"""Measures step time and compile time, and prints both as Markdown tables.

usage: measure.py --work FOLDER [--steps 12] [--rounds 3]   (tools on PATH, see run.sh)

Step time: the MLP 784-4096-4096-10, batch 512, f32, SGD, on one rank and one thread,
against its eight GEMMs alone: same library, shapes and thread. Both are measured in
turns, and the ratio is taken of the medians, because a shared machine drifts.
Compile time: `shoalc` from source to executable, best and median of five; then how it grows with
the model (compile_scaling.py).
"""

import argparse
import os
import platform
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "support"))
import compile_scaling  # noqa: E402
import shoal  # noqa: E402
from generate_mlp import generate  # noqa: E402
from metrics import read_metrics  # noqa: E402
from tensor_files import tensor, write_npy  # noqa: E402

BATCH, SIZES = 512, [784, 4096, 4096, 10]
STEP_BOUND, DIGITS_BOUND, LAYERS_BOUND = 1.25, 2.0, 10.0


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}"


def seconds_per_step(records):
    """Differences of the wall time of consecutive steps, without the first two (page faults, warm-up)."""
    times = [r["wall_s"] for r in records]
    return [b - a for a, b in zip(times, times[1:])][1:]


def gemm_seconds(steps):
    """One line per step from the program that runs the step's GEMMs and nothing else."""
    shape = ",".join(map(str, [BATCH, *SIZES]))
    output = shoal.call(["gemms-of-a-step", shape, str(steps)], shoal.RUN_LIMIT)
    return [float(line) for line in output.split()]


def measure_step(work, steps, rounds):
    model, program = f"{work}/mlp.mlir", f"{work}/mlp"
    with open(model, "w") as f:
        f.write(generate(BATCH, SIZES))
    write_npy(f"{work}/x.npy", tensor("f32", (BATCH, SIZES[0]), ((i * 37 % 101) / 101 for i in range(BATCH * SIZES[0]))))
    write_npy(f"{work}/y.npy", tensor("i64", (BATCH,), (i % SIZES[-1] for i in range(BATCH))))
    shoal.shoalc(model, program, "--optimizer", "sgd", "--lr", "0.01")
    step, gemms = [], []
    for _ in range(rounds):
        gemms += gemm_seconds(steps)
        shoal.run(1, program, "--data", f"x={work}/x.npy", "--data", f"y={work}/y.npy", "--threads", "1",
                  "--steps", str(steps + 2), "--metrics", f"{work}/mlp.jsonl")
        step += seconds_per_step(read_metrics(f"{work}/mlp.jsonl"))
    return statistics.median(step), statistics.median(gemms)


def measure_compile(model, work, *options, repeats=5):
    """Best and median seconds of `shoalc`, and the size of the executable."""
    times = []
    for _ in range(repeats):
        start = time.monotonic()
        shoal.shoalc(model, f"{work}/compiled", *options)
        times.append(time.monotonic() - start)
    return min(times), statistics.median(times), os.path.getsize(f"{work}/compiled")


def verdict(value, bound):
    return f"{'≤' if value <= bound else '> MISSED'} {bound:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    print(f"Measured {time.strftime('%Y-%m-%d')} on {machine()}.\n")

    step, gemms = measure_step(args.work, args.steps, args.rounds)
    print("| training step, one thread | ms | |\n| --- | --- | --- |")
    print(f"| MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, f32, SGD | {step * 1e3:.1f} | |")
    print(f"| its GEMMs alone | {gemms * 1e3:.1f} | |")
    print(f"| ratio | {step / gemms:.3f} | {verdict(step / gemms, STEP_BOUND)} |\n")

    layers = f"{args.work}/layers.mlir"
    with open(layers, "w") as f:
        f.write(generate(32, [256] * 97))
    sgd = ["--optimizer", "sgd", "--lr", "0.1"]
    rows = [
        ("digits", os.path.join(HERE, "../examples/digits/digits.mlir"), sgd, DIGITS_BOUND),
        ("digits, `--mesh data=4`", os.path.join(HERE, "../examples/digits/digits.mlir"),
         sgd + ["--mesh", "data=4"], DIGITS_BOUND),
        ("MLP of 96 layers 256×256", layers, sgd, LAYERS_BOUND),
        ("MLP of 96 layers, `--mesh data=4`", layers, sgd + ["--mesh", "data=4"], LAYERS_BOUND),
    ]
    print("| shoalc, source to executable | best, s | median, s | bound, s | executable, MB |\n"
          "| --- | --- | --- | --- | --- |")
    for name, model, options, bound in rows:
        best, median, size = measure_compile(model, args.work, *options)
        print(f"| {name} | {best:.2f} | {median:.2f} | {verdict(median, bound)} | {size / 1e6:.1f} |")
    print()
    compile_scaling.print_table(compile_scaling.measure(args.work, compile_scaling.LAYERS))


if __name__ == "__main__":
    main()
