#!/usr/bin/env python3
"""Runs one training program under several plans as real processes, against its first plan.

usage: plans.py MODEL.mlir --rows ROWS --work FOLDER [--shoalc "OPTIONS"] [--steps N] PLAN...

A plan is a mesh, which replaces the word MESH of the model (`dist.mesh @mesh <MESH>`), and options of shoalc for it alone:
'["data"=2, "tensor"=2] --recompute full'. The first is one device: '["data"=1, "tensor"=1]'. The model's batched inputs are made here: floats, y (i64 classes, some
ignored), and other integers, which index the vocabulary that the classes are. Losses and gradient norms, first-step gradients, and
parameters and optimizer state at the end must agree: in f64 to 1e-10 of each tensor's
root mean square. The bytes that shoalc promises must be those that the program counts.
"""

import math
import os
import re
import shlex
import sys

import shoal
from golden import Checker
from metrics import read_metrics
from tensor_files import read_safetensors, tensor, write_npy
from work_parser import WorkParser

IGNORED = -100


def make_data(text, rows, work):
    """Writes NAME.npy for each `%NAME: tensor<Bx...> {nn.input = "NAME"}` of the model; returns --data options."""
    classes = int(re.search(r"-> \(tensor<f64> {nn.loss}, tensor<[\dx]*x(\d+)xf64>", text).group(1))
    options = []
    for name, shape, dtype in re.findall(r'%(\w+): +tensor<([\dx]+)x(f64|i64)> +{nn.input = "\1"[,}]', text):
        sizes = [rows, *map(int, shape.split("x")[1:])]
        n = math.prod(sizes)
        if dtype == "f64":
            values = (math.sin(0.9 * (i + 1)) for i in range(n))
        elif name == "y":
            values = (IGNORED if r % 4 == 2 else (r * r + r // 3) % classes for r in range(n))
        else:
            values = ((3 * r * r + r // 2) % classes for r in range(n))
        write_npy(f"{work}/{name}.npy", tensor(dtype, tuple(sizes), values))
        options += ["--data", f"{name}={work}/{name}.npy"]
    return options


def check_reports(plan, promised, counted):
    for ours, theirs in zip(promised, counted, strict=True):
        if ours != theirs:
            sys.exit(f"mesh {plan}: promised {ours}, counted {theirs}")


def split_plan(plan):
    """The mesh, and the options behind it."""
    mesh, *options = plan.split(" --")
    return mesh, shlex.split(" ".join("--" + option for option in options))


def run_plan(args, text, data, index, plan):
    """Compiles and trains under one plan; returns records, gradients and parameters."""
    mesh, options = split_plan(plan)

    def path(name):
        return os.path.join(args.work, f"{index}-{name}")

    with open(path("model.mlir"), "w") as f:
        f.write(text.replace("MESH", mesh))
    program = shoal.shoalc(path("model.mlir"), path("program"), "--report", path("promise.json"),
                           *shlex.split(args.shoalc), *options)
    shoal.run(shoal.ranks_of(mesh), program, *data, "--steps", str(args.steps), "--seed", "3", "--shuffle", "--metrics", path("metrics.jsonl"),
              "--report", path("counted.json"), "--dump-params", path("params.safetensors"),
              "--dump-grads", path("grads.safetensors"))
    check_reports(plan, shoal.ranks_of_report(path("promise.json")), shoal.ranks_of_report(path("counted.json")))
    return (read_metrics(path("metrics.jsonl")), read_safetensors(path("grads.safetensors")),
            read_safetensors(path("params.safetensors")))


def compare(got, expected):
    check = Checker(1e-10)
    for key in ("loss", "grad_norm"):
        if key in expected[0][0]:
            check.series(key, [r[key] for r in got[0]], [r[key] for r in expected[0]])
    for what, g, e in (("gradient of ", got[1], expected[1]), ("final ", got[2], expected[2])):
        if g.keys() != e.keys():
            check.failures.append(f"{what}tensors: got {sorted(g)}, expected {sorted(e)}")
        for name in e:
            if name in g and g[name].shape != e[name].shape:
                check.failures.append(f"{what}{name}: shape {g[name].shape}, expected {e[name].shape}")
            else:
                check.tensor(what + name, g.get(name), {"values": e[name].data})
    return check


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("plans", nargs="+", metavar="PLAN")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--shoalc", default="")
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    if len(args.plans) < 2:
        shoal.wrong_usage(f"the first plan is what others are compared with, expected two or more, got: {args.plans[0]}")
    with open(args.model) as f:
        text = f.read()
    data = make_data(text, args.rows, args.work)

    expected, failed = None, False
    for index, plan in enumerate(args.plans):
        got = run_plan(args, text, data, index, plan)
        if expected is None:
            expected = got
            continue
        check = compare(got, expected)
        failed |= check.fails(f"mesh {plan}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
