#!/usr/bin/env python3
"""Evaluation during training against the loss written out here, and training with it against training without.

usage: evaluation.py --work FOLDER [--loss mse|cross_entropy] BATCH/ROWS/EVAL_ROWS/RANKS ...

A linear model; its loss is the mean of squares, or the cross entropy of targets of which some are ignored. What is evaluated after a step is the loss of the
parameters that a second run, stopped after that step, dumps; training itself must be equal bit by bit.
"""

import math
import os
import sys

import shoal
from golden import Checker
from metrics import read_evaluations, read_metrics
from tensor_files import read_safetensors, tensor, write_npy
from uneven_batches import FEATURES, IGNORED, LOSSES, MODEL, OUTPUTS, targets, wave
from work_parser import WorkParser

EPOCHS = 3


def loss_of(loss, params, x, y):
    """Over all rows at once; `y` has a list of values, or a label, per row."""
    w, c = params["w"].data, params["c"].data
    total, terms = 0.0, 0
    for r, target in enumerate(y):
        out = [sum(x[r * FEATURES + i] * w[i * OUTPUTS + j] for i in range(FEATURES)) + c[j] for j in range(OUTPUTS)]
        if loss == "mse":
            total += sum((o - t) ** 2 for o, t in zip(out, target))
            terms += OUTPUTS
        elif target != IGNORED:
            total += math.log(sum(map(math.exp, out))) - out[target]
            terms += 1
    return total / terms


def run_case(loss, batch, rows, eval_rows, ranks, every, work):
    def path(name):
        return os.path.join(work, f"{loss}-{batch}-{rows}-{ranks}-{every}-{name}")

    with open(path("model.mlir"), "w") as f:
        if loss == "mse":
            f.write(MODEL.format(b=batch, y=f"tensor<{batch}x2xf64>", loss=LOSSES["mse"]))
        else:
            f.write(MODEL.format(b=batch, y=f"tensor<{batch}xi64>", loss=LOSSES[loss]))
    write_npy(path("x.npy"), tensor("f64", (rows, FEATURES), wave(rows * FEATURES, 3)))
    write_npy(path("y.npy"), targets(loss, rows)[0])
    x = wave(eval_rows * FEATURES, 11)
    y_tensor, y = targets(loss, eval_rows)
    write_npy(path("eval_x.npy"), tensor("f64", (eval_rows, FEATURES), x))
    write_npy(path("eval_y.npy"), y_tensor)
    program = shoal.shoalc(path("model.mlir"), path("program"), *shoal.mesh_options(ranks),
                           "--optimizer", "adam", "--lr", "0.05", "--report", path("promised.json"))
    common = ["--data", f"x={path('x.npy')}", "--data", f"y={path('y.npy')}", "--seed", "3", "--shuffle"]
    evaluated = common + ["--eval-data", f"x={path('eval_x.npy')}", "--eval-data", f"y={path('eval_y.npy')}"]
    if every:
        evaluated += ["--eval-every", str(every)]

    shoal.run(ranks, program, *common, "--epochs", str(EPOCHS), "--metrics", path("plain.jsonl"),
              "--dump-params", path("plain.safetensors"), "--report", path("plain.json"))
    shoal.run(ranks, program, *evaluated, "--epochs", str(EPOCHS), "--metrics", path("eval.jsonl"),
              "--dump-params", path("eval.safetensors"), "--report", path("eval.json"))
    check = Checker(1e-12)

    def same(what, a, b):
        if a != b:
            check.failures.append(f"{what} differ with evaluation: {b}, without: {a}")

    same("losses", [r["loss"] for r in read_metrics(path("plain.jsonl"))],
         [r["loss"] for r in read_metrics(path("eval.jsonl"))])
    with open(path("plain.safetensors"), "rb") as a, open(path("eval.safetensors"), "rb") as b:
        same("parameters", a.read(), b.read())
    # The report is that of training steps; its peak covers both programs.
    promised = shoal.ranks_of_report(path("promised.json"))
    for name in ("plain", "eval"):
        if shoal.ranks_of_report(path(f"{name}.json")) != promised:
            check.failures.append(f"counted report of the run '{name}' is not the promised one")

    records = read_evaluations(path("eval.jsonl"))
    per_epoch = -(-rows // batch)
    steps = EPOCHS * per_epoch
    expected = [s for s in range(1, steps + 1) if s % (every or per_epoch) == 0 or s == steps]
    if [r["step"] for r in records] != expected:
        check.failures.append(f"evaluated after steps {[r['step'] for r in records]}, expected {expected}")
    for record in records:
        stopped = path("stopped.safetensors")
        shoal.run(ranks, program, *common, "--steps", str(record["step"]), "--dump-params", stopped)
        expected_loss = loss_of(loss, read_safetensors(stopped), x, y)
        check.value(f"eval_loss after step {record['step']}", record["eval_loss"], expected_loss, expected_loss)
    return check


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("cases", nargs="+", metavar="BATCH/ROWS/EVAL_ROWS/RANKS[/EVERY]")
    parser.add_argument("--loss", choices=["mse", "cross_entropy"], default="mse")
    args = parser.parse_args()
    failed = False
    for text in args.cases:
        batch, rows, eval_rows, ranks, every = (*map(int, text.split("/")), 0)[:5]
        check = run_case(args.loss, batch, rows, eval_rows, ranks, every, args.work)
        failed |= check.fails(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
