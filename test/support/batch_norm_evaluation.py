#!/usr/bin/env python3
"""Trains a model with batch norm and compares the evaluation behind the last step with an inference run.

usage: batch_norm_evaluation.py --work FOLDER RANKS...
"""

import math
import sys

import shoal
from metrics import read_evaluations
from tensor_files import read_npy, tensor, write_npy
from uneven_batches import wave
from work_parser import WorkParser

BATCH, ROWS, EVAL_ROWS, FEATURES, CLASSES = 6, 15, 10, 4, 3

MODEL = """
func.func @normed(
    %x: tensor<6x4xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %g: tensor<4xf64> {nn.param = #nn.param<"g", init = ones>},
    %b: tensor<4xf64> {nn.param = #nn.param<"b", init = zeros>},
    %w: tensor<4x3xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>},
    %m: tensor<4xf64> {nn.buffer = #nn.buffer<"mean", init = 0.0>},
    %v: tensor<4xf64> {nn.buffer = #nn.buffer<"var", init = 1.0>})
    -> (tensor<f64> {nn.loss}, tensor<6x3xf64> {nn.output = "logits"},
        tensor<4xf64> {nn.updates = "mean"}, tensor<4xf64> {nn.updates = "var"}) {
  %0:3 = nn.batch_norm %x, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<6x4xf64>, tensor<4xf64>
  %1 = nn.matmul %0#0, %w : (tensor<6x4xf64>, tensor<4x3xf64>) -> tensor<6x3xf64>
  %loss, %lse = nn.cross_entropy mean %1, %y : (tensor<6x3xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %1, %0#1, %0#2 : tensor<f64>, tensor<6x3xf64>, tensor<4xf64>, tensor<4xf64>
}
"""


def loss_of(logits, labels):
    total = 0.0
    for r, label in enumerate(labels):
        row = logits[r * CLASSES : (r + 1) * CLASSES]
        total += math.log(sum(map(math.exp, row))) - row[label]
    return total / len(labels)


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("ranks", nargs="+", type=int)
    args = parser.parse_args()
    work = args.work
    with open(f"{work}/model.mlir", "w") as f:
        f.write(MODEL)
    for name, rows, k in (("train", ROWS, 1), ("test", EVAL_ROWS, 2)):
        write_npy(f"{work}/{name}_x.npy", tensor("f64", (rows, FEATURES), [3 + 2 * v for v in wave(rows * FEATURES, k)]))
        write_npy(f"{work}/{name}_y.npy", tensor("i64", (rows,), [r * r % CLASSES for r in range(rows)]))
    labels = [r * r % CLASSES for r in range(EVAL_ROWS)]

    failed = False
    infer = shoal.shoalc(f"{work}/model.mlir", f"{work}/infer", "--mode", "infer")
    for ranks in args.ranks:
        program = shoal.shoalc(f"{work}/model.mlir", f"{work}/train", *shoal.mesh_options(ranks), "--lr", "0.1")
        shoal.run(ranks, program, "--data", f"x={work}/train_x.npy", "--data", f"y={work}/train_y.npy",
                  "--eval-data", f"x={work}/test_x.npy", "--eval-data", f"y={work}/test_y.npy", "--epochs", "3",
                  "--metrics", f"{work}/metrics.jsonl", "--dump-params", f"{work}/end.safetensors")
        shoal.run(1, infer, "--data", f"x={work}/test_x.npy", "--load", f"{work}/end.safetensors",
                  "--output", f"logits={work}/logits.npy")
        expected = loss_of(read_npy(f"{work}/logits.npy").data, labels)
        got = read_evaluations(f"{work}/metrics.jsonl")[-1]["eval_loss"]
        error = abs(got - expected) / expected
        print(f"{ranks} ranks: evaluated {got!r}, inferred {expected!r}, error {error:.1e}")
        failed |= not error <= 1e-13
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
