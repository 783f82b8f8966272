#!/usr/bin/env python3
"""Runs test/EndToEnd/accumulated_gradient.mlir under several meshes, against the sums written out here.

usage: accumulated_gradient.py MODEL.mlir --work FOLDER MESH...

MESH replaces the word MESH of the model. Loss and gradient must be sums over all rows that are not
ignored, divided by their number, to 1e-12; the reports must show one all-reduce per step.
"""

import math
import os
import sys

import shoal
from golden import Checker
from plans import check_reports
from tensor_files import read_npy, tensor, write_npy, write_safetensors
from work_parser import WorkParser

ROWS, FEATURES, CLASSES, IGNORED = 12, 5, 3, -100
# Ignored per micro-batch of 3 rows: 3, 0, 1, 2; per quarter of the rows the same, unequal on every mesh.
LABELS = [IGNORED, IGNORED, IGNORED, 0, 2, 1, 1, IGNORED, 2, IGNORED, 0, IGNORED]


def wave(n, k):
    return [math.sin(0.7 * (i + 1) + k) for i in range(n)]


def expected(x, w):
    """Loss and gradient of one device, row by row."""
    loss, gradient = 0.0, [0.0] * (FEATURES * CLASSES)
    tokens = sum(label != IGNORED for label in LABELS)
    for r, label in enumerate(LABELS):
        if label == IGNORED:
            continue
        row = x[r * FEATURES : (r + 1) * FEATURES]
        exponentials = [math.exp(sum(row[i] * w[i * CLASSES + c] for i in range(FEATURES)))
                        for c in range(CLASSES)]
        total = sum(exponentials)
        loss -= math.log(exponentials[label] / total)
        for i in range(FEATURES):
            for c in range(CLASSES):
                gradient[i * CLASSES + c] += row[i] * (exponentials[c] / total - (c == label))
    return loss / tokens, [g / tokens for g in gradient]


def all_reduces(report):
    return sum(c["count"] for rank in report for c in rank["collectives"]
               if c["kind"] == "all_reduce")


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("meshes", nargs="+", metavar="MESH")
    args = parser.parse_args()
    with open(args.model) as f:
        text = f.read()
    x, w = wave(ROWS * FEATURES, 3), wave(FEATURES * CLASSES, 1)
    write_npy(f"{args.work}/x.npy", tensor("f64", (ROWS, FEATURES), x))
    write_npy(f"{args.work}/y.npy", tensor("i64", (ROWS,), LABELS))
    write_safetensors(f"{args.work}/w.safetensors", {"w": tensor("f64", (FEATURES, CLASSES), w)})
    loss, gradient = expected(x, w)

    failed = False
    for index, mesh in enumerate(args.meshes):
        def path(name):
            return os.path.join(args.work, f"{index}-{name}")

        with open(path("model.mlir"), "w") as f:
            f.write(text.replace("MESH", mesh))
        program = shoal.shoalc(path("model.mlir"), path("program"), "--mode", "infer", "--verify-plan",
                               "--report", path("promise.json"))
        ranks = shoal.ranks_of(mesh)
        shoal.run(ranks, program, "--data", f"x={args.work}/x.npy", "--data", f"y={args.work}/y.npy",
                  "--load", f"{args.work}/w.safetensors", "--report", path("counted.json"),
                  "--output", f"loss={path('loss.npy')}", "--output", f"gradient={path('gradient.npy')}")
        check = Checker(1e-12)
        check.tensor("loss", read_npy(path("loss.npy")), {"values": [loss]})
        check.tensor("gradient", read_npy(path("gradient.npy")), {"values": gradient})
        promised = shoal.ranks_of_report(path("promise.json"))
        check_reports(mesh, promised, shoal.ranks_of_report(path("counted.json")))
        wanted = 0 if ranks == 1 else ranks
        if all_reduces(promised) != wanted:
            check.failures.append(f"{all_reduces(promised)} all-reduces of all ranks, expected {wanted}")
        failed |= check.fails(f"mesh {mesh}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
