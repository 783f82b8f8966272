#!/usr/bin/env python3
"""Trains with learning-rate schedules and compares the rate of every step with the formulas written out here.

usage: lr_schedules.py --work FOLDER

The loss is the mean of x w over rows of ones, so its gradient is 1 and every step lowers w by
its rate: the final parameter says what rate the updates saw, the metric `lr` what was reported.
"""

import itertools
import math
import sys

import shoal
from metrics import read_metrics
from tensor_files import read_safetensors, tensor, write_npy
from work_parser import WorkParser

STEPS, ROWS, RATE = 24, 6, 0.3

MODEL = """
func.func @slope(
    %x: tensor<6x1x{type}> {{nn.input = "x"}},
    %w: tensor<1x1x{type}> {{nn.param = #nn.param<"w", init = zeros>}})
    -> (tensor<{type}> {{nn.loss}}) {{
  %0 = nn.matmul %x, %w : (tensor<6x1x{type}>, tensor<1x1x{type}>) -> tensor<6x1x{type}>
  %loss = nn.reduce mean %0 dims = [0, 1] : tensor<6x1x{type}> -> tensor<{type}>
  return %loss : tensor<{type}>
}}
"""

# Kind, steps of warm-up, steps in all, final rate.
SCHEDULES = [
    ("constant", 0, 0, 0.0),
    ("constant", 1, 0, 0.0),
    ("constant", 7, 0, 0.0),
    ("constant", 40, 0, 0.0),  # longer than the run
    ("linear", 0, 16, 0.0),
    ("linear", 5, 16, 0.02),
    ("linear", 0, 1, 0.1),
    ("linear", 3, 4, RATE),
    ("linear", 10, 1000, 0.0),
    ("cosine", 0, 16, 0.0),
    ("cosine", 5, 17, 0.02),
    ("cosine", 0, 1, 0.1),
    ("cosine", 10, 1000, 0.0),
]


def rate_of(kind, warmup, total, least, step):
    """After `step` steps."""
    if step < warmup:
        return RATE * (step + 1) / warmup
    if kind == "constant":
        return RATE
    if step >= total:
        return least
    share = (step - warmup) / (total - warmup)
    if kind == "linear":
        return RATE + (least - RATE) * share
    return least + (RATE - least) / 2 * (1 + math.cos(math.pi * share))


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), RATE)


def run_case(schedule, float_type, ranks, optimizer, work):
    kind, warmup, total, least = schedule
    options = ["--lr", repr(RATE), "--lr-schedule", kind, "--optimizer", optimizer]
    if warmup:
        options += ["--warmup-steps", str(warmup)]
    if total:
        options += ["--decay-steps", str(total), "--min-lr", repr(least)]
    program = shoal.shoalc(f"{work}/{float_type}.mlir", f"{work}/program", *shoal.mesh_options(ranks), *options)
    shoal.run(ranks, program, "--data", f"x={work}/x.npy", "--steps", str(STEPS), "--metrics",
              f"{work}/metrics.jsonl", "--dump-params", f"{work}/end.safetensors")
    got = [r["lr"] for r in read_metrics(f"{work}/metrics.jsonl")]
    expected = [rate_of(kind, warmup, total, least, step) for step in range(STEPS)]
    name = f"{kind} W={warmup} D={total} min={least} {float_type} {optimizer} on {ranks} ranks"
    if len(got) != STEPS:
        return got, [f"{name}: {len(got)} rates, expected {STEPS}"]
    faults = [f"{name}: rate of step {i} is {g!r}, expected {e!r}"
              for i, (g, e) in enumerate(zip(got, expected)) if not close(g, e, 1e-14)]
    # Adam's first steps with a constant gradient are of the rate's size, too.
    end = read_safetensors(f"{work}/end.safetensors")["w"].data[0]
    tolerance = 1e-13 if float_type == "f64" else 1e-5
    if not close(-end, math.fsum(expected), tolerance if optimizer == "sgd" else 1e-5):
        faults.append(f"{name}: w went by {-end!r}, expected the sum of rates {math.fsum(expected)!r}")
    return got, faults


def main():
    work = WorkParser(__doc__).parse_args().work
    write_npy(f"{work}/x.npy", tensor("f64", (ROWS, 1), [1.0] * ROWS))
    for float_type in ("f32", "f64"):
        with open(f"{work}/{float_type}.mlir", "w") as f:
            f.write(MODEL.format(type=float_type))

    faults = []
    for schedule in SCHEDULES:
        one, found = run_case(schedule, "f64", 1, "sgd", work)
        faults += found
        three, found = run_case(schedule, "f64", 3, "sgd", work)
        faults += found
        if one != three:
            faults.append(f"{schedule}: 3 ranks have other rates than 1: {three} and {one}")
    for optimizer, float_type in itertools.product(("sgd", "adam"), ("f32", "f64")):
        faults += run_case(("linear", 5, 16, 0.02), float_type, 2, optimizer, work)[1]
    print("\n".join(faults[:12]) or f"{len(SCHEDULES)} schedules: ok")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
