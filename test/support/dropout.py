#!/usr/bin/env python3
"""Trains a model whose gradient shows its dropout mask, and compares the masks with ones drawn here.

usage: dropout.py --work FOLDER PLAN...

A plan is the mesh of the model and options of shoalc: '["data"=2, "tensor"=2] --no-overlap'. The loss is the sum of w * dropout(dropout(x)) with x = 1,
so that the gradient of w is what each element of x was multiplied by; the sum over two steps shows the second masks.
Under a plan with --microbatches, which splits rows, w has one element per column, and x is 4^row: the gradient, a sum over
rows, holds the mask of each in two bits of its own, exactly.
Masks that are drawn again for the backward pass are the same to the last bit. Evaluation and inference drop nothing, and
a seed of inference is refused.
"""

import os
import sys

import shoal
from metrics import read_evaluations, read_metrics
from philox import dropout_factors
from plans import split_plan
from tensor_files import read_npy, read_safetensors, tensor, write_npy
from work_parser import WorkParser

ROWS, COLUMNS, RATE, IDS = 10, 7, 0.25, (6, 2**32 - 1)

MODEL = """
dist.mesh @mesh <MESH>
func.func @masked(
    %x: tensor<10x7xf64> {nn.input = "x"},
    %w: tensor<10x7xf64> {nn.param = #nn.param<"w", init = ones>, dist.sharding = #dist.sharding<@mesh, [{?}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}, tensor<10x7xf64> {nn.output = "y"}) {
  %0 = nn.dropout %x rate = 0.25 id = 6 {nn.layer = "drops"} : tensor<10x7xf64>
  %drop = nn.dropout %0 rate = 0.25 id = 4294967295 {nn.layer = "drops"} : tensor<10x7xf64>
  %1 = nn.mul %drop, %w {nn.layer = "drops"} : (tensor<10x7xf64>, tensor<10x7xf64>) -> tensor<10x7xf64>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<10x7xf64> -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<10x7xf64>
}
"""


def near(got, expected):
    return len(got) == len(expected) and all(abs(g - e) <= 1e-12 * max(1, abs(e)) for g, e in zip(got, expected))


def model_of(in_parts):
    """The model's text, its x, and what the gradient of w is of x times a mask."""
    if not in_parts:
        return MODEL, [1.0] * (ROWS * COLUMNS), list
    per_column = MODEL.replace("%w: tensor<10x7xf64>", "%w: tensor<7xf64>").replace('[{?}, {"tensor"}]', '[{"tensor"}]')
    per_column = per_column.replace("%drop, %w {nn.layer = \"drops\"} : (tensor<10x7xf64>, tensor<10x7xf64>)",
                                    "%drop, %w {nn.layer = \"drops\"} : (tensor<10x7xf64>, tensor<7xf64>)")
    x = [4.0 ** row for row in range(ROWS) for _ in range(COLUMNS)]
    return per_column, x, lambda values: [sum(values[column::COLUMNS]) for column in range(COLUMNS)]


def check_plan(work, index, plan, seed):
    """The faults that were found under one plan."""
    mesh, options = split_plan(plan)

    def path(name):
        return os.path.join(work, f"{index}-{name}")

    text, x, gradient_of = model_of("--microbatches" in options)
    with open(path("model.mlir"), "w") as f:
        f.write(text.replace("MESH", mesh))
    write_npy(path("x.npy"), tensor("f64", (ROWS, COLUMNS), x))
    program = shoal.shoalc(path("model.mlir"), path("program"), "--lr", "1", "--report", path("promise.json"), *options)
    ranks, data = shoal.ranks_of(mesh), ("--data", f"x={path('x.npy')}", "--eval-data", f"x={path('x.npy')}")
    shoal.run(ranks, program, *data, "--steps", "2", "--seed", str(seed), "--eval-every", "2",
              "--dump-grads", path("grads.safetensors"), "--dump-params", path("params.safetensors"),
              "--metrics", path("metrics.jsonl"), "--report", path("counted.json"))
    first, second = (gradient_of([v * a * b for v, a, b in zip(x, *(dropout_factors(seed, step, i, RATE, ROWS * COLUMNS) for i in IDS))])
                     for step in (0, 1))
    grads, params = read_safetensors(path("grads.safetensors")), read_safetensors(path("params.safetensors"))
    faults = []
    if not near(grads["w"].data, first):
        faults.append(f"the first step kept {list(grads['w'].data)}, expected {first}")
    end = [1 - a - b for a, b in zip(first, second)]
    if not near(params["w"].data, end):
        faults.append(f"after two steps w is {list(params['w'].data)}, expected {end}")
    losses = [r["loss"] for r in read_metrics(path("metrics.jsonl"))]
    expected = [sum(first), sum(b * (1 - a) for a, b in zip(first, second))]
    if not near(losses, expected):
        faults.append(f"losses {losses}, expected {expected}")
    evaluated = read_evaluations(path("metrics.jsonl"))[-1]["eval_loss"]
    whole = sum(w * v for w, v in zip(end, gradient_of(x)))
    if not near([evaluated], [whole]):
        faults.append(f"evaluation gives {evaluated}, without dropout it is {whole}")
    again = shoal.shoalc(path("model.mlir"), path("again"), "--lr", "1", "--recompute", "full", *options)
    shoal.run(ranks, again, *data[:2], "--steps", "2", "--seed", str(seed), "--dump-grads", path("again.safetensors"))
    if read_safetensors(path("again.safetensors"))["w"].data != grads["w"].data:
        faults.append("recompute drops others")
    if shoal.ranks_of_report(path("promise.json")) != shoal.ranks_of_report(path("counted.json")):
        faults.append("the reports of compiler and program differ")
    return faults


def check_inference(work):
    infer = shoal.shoalc(f"{work}/0-model.mlir", f"{work}/infer", "--mode", "infer")
    shoal.run(1, infer, "--data", f"x={work}/0-x.npy", "--output", f"y={work}/y.npy",
              "--load", f"{work}/0-params.safetensors")
    params = read_safetensors(f"{work}/0-params.safetensors")
    if not near(read_npy(f"{work}/y.npy").data, params["w"].data):
        return ["inference drops elements"]
    text = shoal.run(1, infer, "--data", f"x={work}/0-x.npy", "--load", f"{work}/0-params.safetensors", "--seed", "1",
                     expect=2)
    return [] if "--seed does not apply" in text else [f"a seed of inference is refused by: {text}"]


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("plans", nargs="+", metavar="PLAN")
    args = parser.parse_args()
    failed = False
    for index, plan in enumerate(args.plans):
        for seed in (3, 2**64 - 1) if index == 0 else (3,):
            faults = check_plan(args.work, index, plan, seed)
            print(f"{plan}, seed {seed}: {'; '.join(faults) or 'the masks are those of one device'}")
            failed |= bool(faults)
    faults = check_inference(args.work)
    print("inference: " + ("; ".join(faults) or "nothing is dropped"))
    sys.exit(1 if failed or faults else 0)


if __name__ == "__main__":
    main()
