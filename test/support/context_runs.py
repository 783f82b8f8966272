#!/usr/bin/env python3
"""Trains, evaluates, infers and goes on from checkpoints with the sequence over mesh axes, against one device.

usage: context_runs.py MODEL.mlir --work FOLDER

MODEL has inputs of tokens `ids`, `qs`, `ks` and targets `y`, [2, S] each, classes and ids of 0 to 6, and the output
`logits`. Each plan has the losses, evaluations and parameters of one device to 1e-10, and the same outputs in the same
order; a checkpoint of one goes on under another.
"""

import re
import sys

import shoal
from checkpoints import ADAMW, Fault, Model, check_chain, check_same_plan, require
from golden import Checker
from metrics import read_evaluations, read_metrics
from tensor_files import read_npy, tensor, write_npy
from work_parser import WorkParser

ROWS, EVAL_ROWS, CLASSES, IGNORED = 5, 3, 7, -100
INPUTS = ("ids", "qs", "ks", "y")
PLANS = ["context=4 --context-parallel zigzag", "context=5 --context-parallel ring", "context=3 --context-parallel allgather",
         "context=4 --context-parallel ulysses", "context=2,ulysses=2 --context-parallel hybrid",
         "data=2,context=3 --context-parallel zigzag"]
CHAIN = ["context=4 --context-parallel zigzag", "context=2 --context-parallel ring", "",
         "data=2,context=2 --context-parallel zigzag --zero 1", "context=2,ulysses=2 --context-parallel hybrid"]


def write_data(work, tokens):
    for rows, prefix in ((ROWS, ""), (EVAL_ROWS, "eval_")):
        n = rows * tokens
        values = {
            "ids": [(3 * i * i + i // 2) % CLASSES for i in range(n)],
            "qs": [i % tokens // 4 for i in range(n)],  # segments of 4 tokens
            "ks": [(i % tokens + i // tokens) // 4 for i in range(n)],  # and of keys, others in each row
            "y": [IGNORED if i % 4 == 2 else (i * i + i // 3) % CLASSES for i in range(n)],
        }
        for name in INPUTS:
            write_npy(f"{work}/{prefix}{name}.npy", tensor("i64", (rows, tokens), values[name]))


def run_plan(model, plan, tag):
    """Trains with evaluation, and infers with what was trained; returns the records, evaluations, parameters and outputs."""
    evaluated = [word for name in INPUTS for word in ("--eval-data", f"{name}={model.work}/eval_{name}.npy")]
    model.run(plan, "--steps", "6", *evaluated, "--eval-every", "3", tag=tag)
    mesh, *flags = plan.split() or ["one"]
    promise, count = (model.path(f"{tag}.{side}.json") for side in ("promise", "count"))
    program = shoal.shoalc(model.path("model.mlir"), model.path(f"infer-{tag}"), "--mode", "infer", "--report", promise,
                           *(["--mesh", mesh] if plan else []), *flags)
    data = [word for name in INPUTS[:-1] for word in ("--data", f"{name}={model.work}/{name}.npy")]
    shoal.run(model.ranks(plan), program, *data, "--load", model.path(f"{tag}.safetensors"),
              "--output", f"logits={model.path(f'{tag}.npy')}", "--report", count)
    promised, counted = (shoal.ranks_of_report(path) for path in (promise, count))
    require(promised == counted, f"inference promises {promised}, counts {counted}")
    metrics = model.path(f"{tag}.jsonl")
    return read_metrics(metrics), read_evaluations(metrics), model.params(tag), read_npy(model.path(f"{tag}.npy"))


def compare(got, expected):
    check = Checker(1e-10)
    for key, g, e in zip(("loss", "eval_loss"), got, expected):
        check.series(key, [record[key] for record in g], [record[key] for record in e])
    require(len(expected[1]) == 2, f"two evaluations, got: {expected[1]}")
    for name, value in expected[2].items():
        check.tensor(name, got[2].get(name), {"values": value.data})
    require(got[3].shape == expected[3].shape, f"logits of {got[3].shape}, expected {expected[3].shape}")
    check.tensor("logits", got[3], {"values": expected[3].data})
    return check


def main():
    args = WorkParser(__doc__, "model").parse_args()
    with open(args.model) as f:
        text = f.read()
    write_data(args.work, int(re.search(r'tensor<2x(\d+)xi64> {nn.input = "ids"', text)[1]))
    model = Model(args.work, "context", text, ADAMW, inputs=INPUTS)
    failed = False
    try:
        expected = run_plan(model, "", "one")
        for i, plan in enumerate(PLANS):
            failed |= compare(run_plan(model, plan, f"plan{i}"), expected).fails(plan)
        check_same_plan(model, PLANS[0])
        check_chain(model, CHAIN)
    except Fault as fault:
        sys.exit(str(fault))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
