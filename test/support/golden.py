#!/usr/bin/env python3
"""Compiles a model and runs it on several numbers of ranks against values of another framework.

usage: golden.py MODEL.mlir CASE.json --work FOLDER [--plan "MESH [OPTION]..."]... [--ranks 1,2,3,4]
                 [--shoalc-option OPTION]...

A plan is a mesh and what it wants of shoalc, as "data=2,tensor=2 --tensor-parallel"; "one" is a single device without a
mesh. --ranks names plans of the mesh data=N.

The case says how parameters and data are filled, and what must come out: losses,
gradient norms, first-step gradients and final parameters (buffers too), all in f64. `tolerance` of
the case (1e-10 unless given) bounds losses, norms and sums of squares relatively, single
elements against the tensor's root mean square, and plain sums (many are 0
mathematically) against sqrt(n * sum of squares).
"""

import json
import math
import os
import re
import sys

import shoal
from metrics import read_metrics
from tensor_files import count, read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser


def fill(spec, n, k):
    """shift + scale * sin(0.37 * (i + 1) + k) at flat index i."""
    return [spec["shift"] + spec["scale"] * math.sin(0.37 * (i + 1) + k) for i in range(n)]


def softmax_rows(values, columns):
    result = []
    for begin in range(0, len(values), columns):
        row = values[begin : begin + columns]
        top = max(row)
        exponentials = [math.exp(v - top) for v in row]
        total = sum(exponentials)
        result += [e / total for e in exponentials]
    return result


def input_tensor(spec, case):
    """All batches of an input, one after the other; batch t is filled with k + t."""
    batch, batches = case["batch"], case["batches"]
    columns = spec.get("columns", 1)
    if "labels" in spec:  # classes (factor * index + start) mod classes, the same in every batch
        labels = spec["labels"]
        one = [(labels["factor"] * i + labels["start"]) % labels["classes"] for i in range(batch * columns)]
        if "ignored" in spec:  # every so many of all, and the first of row 0
            ignored = spec["ignored"]
            one = [-100 if i % ignored["every"] == 0 or i < ignored["first"] else v for i, v in enumerate(one)]
        shape = (batch * batches, columns) if "columns" in spec else (batch * batches,)
        return tensor("i64", shape, one * batches)
    values = list(spec.get("values", []))
    if not values:
        for t in range(batches):
            values += fill(spec, batch * columns, spec["k"] + t)
    if spec.get("softmax"):
        values = softmax_rows(values, columns)
    return tensor("f64", (batch * batches, columns), values)


def param_tensor(spec):
    values = spec.get("values") or fill(spec, count(spec["shape"]), spec["k"])
    return tensor("f64", spec["shape"], values)


def optimizer_options(optimizer):
    options = ["--optimizer", optimizer["kind"], "--lr", repr(optimizer["lr"])]
    if "momentum" in optimizer:
        options += ["--momentum", repr(optimizer["momentum"])]
    if "betas" in optimizer:
        options += ["--betas", ",".join(map(repr, optimizer["betas"]))]
    if "eps" in optimizer:
        options += ["--eps", repr(optimizer["eps"])]
    if "weight_decay" in optimizer:
        options += ["--weight-decay", repr(optimizer["weight_decay"])]
    return options


class Checker:
    """Compares values and remembers the worst error, and each that is too large."""

    def __init__(self, tolerance):
        self.tolerance, self.worst, self.failures = tolerance, 0.0, []

    def value(self, what, got, expected, scale):
        error = abs(got - expected) / scale if scale else abs(got - expected)
        if not error <= self.tolerance:  # also catches NaN
            self.failures.append(f"{what}: got {got!r}, expected {expected!r}, error {error:.2e}")
        else:
            self.worst = max(self.worst, error)

    def series(self, what, got, expected):
        if len(got) != len(expected):
            self.failures.append(f"{what}: {len(got)} values, expected {len(expected)}")
        for i, (g, e) in enumerate(zip(got, expected)):
            self.value(f"{what} of step {i}", g, e, abs(e))

    def tensor(self, what, got, expected):
        if got is None:
            self.failures.append(f"{what}: missing")
            return
        values, n = got.data, len(got.data)
        if "values" in expected:
            reference = expected["values"]
            rms = math.sqrt(sum(v * v for v in reference) / n)
            for i in range(n):
                self.value(f"{what}[{i}]", values[i], reference[i], rms)
            return
        sumsq = expected["sumsq"]
        rms = math.sqrt(sumsq / n)
        self.value(f"{what} sum of squares", math.fsum(v * v for v in values), sumsq, sumsq)
        self.value(f"{what} sum", math.fsum(values), expected["sum"], math.sqrt(n * sumsq))
        for i, e in enumerate(expected["head"]):
            self.value(f"{what}[{i}]", values[i], e, rms)
        self.value(f"{what}[{n - 1}]", values[n - 1], expected["last"], rms)

    def fails(self, name):
        """Prints what was found of `name`, the first failures or the worst error, and says whether anything failed."""
        for line in self.failures[:12]:
            print(f"{name}: {line}")
        if not self.failures:
            print(f"{name}: ok, largest error {self.worst:.1e}")
        return bool(self.failures)


def prepare_case(path, work):
    """Reads the case and writes its data and parameters to the folder `work`."""
    with open(path) as f:
        case = json.load(f)
    os.makedirs(work, exist_ok=True)
    for spec in case["inputs"]:
        write_npy(f"{work}/{spec['name']}.npy", input_tensor(spec, case))
    write_safetensors(f"{work}/params.safetensors", {spec["name"]: param_tensor(spec) for spec in case["params"]})
    return case


def run_case(case, model, plan, work, extra, programs):
    """Compiles and runs the case under a plan; returns the checker with its findings. `programs` are those that were
    compiled before, by model and options: cases of one model share them."""
    mesh, *flags = plan.split()

    def path(name):
        return os.path.join(work, re.sub(r"[^\w=]+", "-", plan) + "-" + name)

    options = (["--mesh", mesh] if mesh != "one" else []) + flags + optimizer_options(case["optimizer"])
    if "clip_grad_norm" in case:
        options += ["--clip-grad-norm", repr(case["clip_grad_norm"])]
    options += ["--grad-norm", *extra]
    if (model, *options) not in programs:
        programs[model, *options] = shoal.shoalc(model, path("program"), *options)
    data = [a for i in case["inputs"] for a in ("--data", f"{i['name']}={work}/{i['name']}.npy")]
    shoal.run(shoal.ranks_of(mesh), programs[model, *options], *data, "--load", f"{work}/params.safetensors",
              "--steps", str(len(case["losses"])), "--metrics", path("metrics.jsonl"),
              "--dump-params", path("params.safetensors"), "--dump-grads", path("grads.safetensors"))

    check = Checker(case.get("tolerance", 1e-10))
    records = read_metrics(path("metrics.jsonl"))
    check.series("loss", [r["loss"] for r in records], case["losses"])
    if "grad_norms" in case:
        check.series("gradient norm", [r["grad_norm"] for r in records], case["grad_norms"])
    grads = read_safetensors(path("grads.safetensors"))
    for name, expected in case["first_step_grads"].items():
        check.tensor(f"gradient of {name}", grads.get(name), expected)
    params = read_safetensors(path("params.safetensors"))
    for name, expected in case.get("final_params", {}).items():
        check.tensor(f"final {name}", params.get(name), expected)
    return check


def main():
    parser = WorkParser(__doc__, "model", "case")
    parser.add_argument("--plan", action="append", default=[])
    parser.add_argument("--ranks", type=lambda text: list(map(int, text.split(","))))
    parser.add_argument("--shoalc-option", action="append", default=[])
    args = parser.parse_args()

    case = prepare_case(args.case, args.work)
    failed = False
    if args.ranks is None:
        args.ranks = [] if args.plan else [1, 2, 3, 4]
    plans = [f"data={n}" if n != 1 else "one" for n in args.ranks] + args.plan
    for plan in plans:
        check = run_case(case, args.model, plan, args.work, args.shoalc_option, {})
        failed |= check.fails(f"{case['case']} on {plan}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
