#!/usr/bin/env python3
"""Trains a linear model on batches that ranks do not divide, against the sums written out here.

usage: uneven_batches.py --work FOLDER --loss mse|cross_entropy BATCH/ROWS/RANKS ...

ROWS rows in batches of BATCH: the last batch of an epoch is short when BATCH does not
divide ROWS. Each loss must be the mean over the rows (or the unignored labels) of its
batch, and the parameters after three epochs those of one device, to 1e-10.
"""

import math
import os
import sys

import shoal
from golden import Checker
from metrics import read_losses
from tensor_files import read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser

FEATURES, OUTPUTS, EPOCHS, RATE = 3, 2, 3, 0.25
IGNORED = -100

LOSSES = {"mse": "%loss = nn.mse_loss", "cross_entropy": "%loss, %lse = nn.cross_entropy"}

MODEL = """
func.func @linear(
    %x: tensor<{b}x3xf64> {{nn.input = "x"}},
    %y: {y} {{nn.input = "y"}},
    %w: tensor<3x2xf64> {{nn.param = #nn.param<"w", init = zeros>}},
    %c: tensor<2xf64> {{nn.param = #nn.param<"c", init = zeros>}})
    -> (tensor<f64> {{nn.loss}}) {{
  %0 = nn.matmul %x, %w : (tensor<{b}x3xf64>, tensor<3x2xf64>) -> tensor<{b}x2xf64>
  %1 = nn.add %0, %c : (tensor<{b}x2xf64>, tensor<2xf64>) -> tensor<{b}x2xf64>
  {loss} mean %1, %y : (tensor<{b}x2xf64>, {y}) -> tensor<f64>
  return %loss : tensor<f64>
}}
"""


def wave(n, k):
    return [math.sin(0.7 * (i + 1) + k) for i in range(n)]


class Oracle:
    """One device's training, one row after the other."""

    def __init__(self, loss):
        self.loss = loss
        self.w, self.c = wave(FEATURES * OUTPUTS, 1), wave(OUTPUTS, 2)

    def step(self, rows):
        """Updates the parameters on `rows` (pairs of features and target); returns the loss."""
        if self.loss == "mse":
            total, dlogits = self._squares(rows)
        else:
            total, dlogits = self._cross_entropy(rows)
        for j in range(OUTPUTS):
            self.c[j] -= RATE * sum(d[j] for d in dlogits)
        for i in range(FEATURES):
            for j in range(OUTPUTS):
                self.w[i * OUTPUTS + j] -= RATE * sum(x[i] * d[j] for (x, _), d in zip(rows, dlogits))
        return total

    def _outputs(self, x):
        return [sum(x[i] * self.w[i * OUTPUTS + j] for i in range(FEATURES)) + self.c[j]
                for j in range(OUTPUTS)]

    def _squares(self, rows):
        n = len(rows) * OUTPUTS
        errors = [[o - t for o, t in zip(self._outputs(x), y)] for x, y in rows]
        return sum(e * e for row in errors for e in row) / n, [[2 * e / n for e in row] for row in errors]

    def _cross_entropy(self, rows):
        n = sum(y != IGNORED for _, y in rows)
        total, dlogits = 0.0, []
        for x, y in rows:
            logits = self._outputs(x)
            denominator = sum(map(math.exp, logits))
            if y == IGNORED:
                dlogits.append([0.0] * OUTPUTS)
                continue
            total -= logits[y] - math.log(denominator)
            dlogits.append([(math.exp(o) / denominator - (j == y)) / n for j, o in enumerate(logits)])
        return total / n, dlogits


def targets(loss, rows):
    if loss == "mse":
        flat = wave(rows * OUTPUTS, 4)
        return tensor("f64", (rows, OUTPUTS), flat), [flat[r * OUTPUTS : (r + 1) * OUTPUTS] for r in range(rows)]
    # Every third label is ignored from row 1 on, so that ranks hold unequal numbers of them.
    labels = [IGNORED if r % 3 == 1 else (r * r) % OUTPUTS for r in range(rows)]
    return tensor("i64", (rows,), labels), labels


def run_case(loss, batch, rows, ranks, work):
    def path(name):
        return os.path.join(work, f"{batch}-{rows}-{ranks}-{name}")

    y_type = f"tensor<{batch}x2xf64>" if loss == "mse" else f"tensor<{batch}xi64>"
    with open(path("model.mlir"), "w") as f:
        f.write(MODEL.format(b=batch, y=y_type, loss=LOSSES[loss]))
    x = wave(rows * FEATURES, 3)
    y_tensor, y = targets(loss, rows)
    write_npy(path("x.npy"), tensor("f64", (rows, FEATURES), x))
    write_npy(path("y.npy"), y_tensor)
    oracle = Oracle(loss)
    write_safetensors(path("start.safetensors"),
                      {"w": tensor("f64", (FEATURES, OUTPUTS), oracle.w), "c": tensor("f64", (OUTPUTS,), oracle.c)})

    samples = [(x[r * FEATURES : (r + 1) * FEATURES], y[r]) for r in range(rows)]
    expected = [oracle.step(samples[begin : begin + batch])
                for _ in range(EPOCHS) for begin in range(0, rows, batch)]

    program = shoal.shoalc(path("model.mlir"), path("program"), *shoal.mesh_options(ranks),
                           "--optimizer", "sgd", "--lr", repr(RATE))
    shoal.run(ranks, program, "--data", f"x={path('x.npy')}", "--data", f"y={path('y.npy')}",
              "--load", path("start.safetensors"), "--epochs", str(EPOCHS),
              "--metrics", path("metrics.jsonl"), "--dump-params", path("end.safetensors"))

    check = Checker(1e-10)
    check.series("loss", read_losses(path("metrics.jsonl")), expected)
    end = read_safetensors(path("end.safetensors"))
    check.tensor("final w", end.get("w"), {"values": oracle.w})
    check.tensor("final c", end.get("c"), {"values": oracle.c})
    return check


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("cases", nargs="+", metavar="BATCH/ROWS/RANKS")
    parser.add_argument("--loss", choices=["mse", "cross_entropy"], required=True)
    args = parser.parse_args()

    failed = False
    for text in args.cases:
        batch, rows, ranks = map(int, text.split("/"))
        check = run_case(args.loss, batch, rows, ranks, args.work)
        name = f"{rows} rows in batches of {batch} on {ranks} ranks, {args.loss}"
        failed |= check.fails(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
