#!/usr/bin/env python3
"""A training step in two stages, written by hand (L2), against the same step on one device.

usage: pipelined_step.py --work FOLDER

p = (x w0 + 2 t) w1, mean square error, gradient descent with momentum. The first stage holds w0 and x, the last one w1, y and
the loss, and both hold t, whose gradient they sum; stages may be data-parallel. Losses, metrics, gradients and parameters are
those of one device, checkpoints go from any to any, and what each rank counts is what the compiler promised for it.
"""

import json
import os
import subprocess
import sys
import time

import shoal
from golden import Checker
from metrics import read_lines
from tensor_files import read_safetensors, tensor, write_npy
from uneven_batches import wave
from work_parser import WorkParser

ROWS, BATCH, IN, HIDDEN, OUT, STEPS = 24, 8, 5, 7, 3, 7
SHAPES = {"w0": (IN, HIDDEN), "w1": (HIDDEN, OUT), "t": (HIDDEN,)}


def type_of(*shape):
    return f"tensor<{'x'.join(map(str, (*shape, 'f64')))}>"


def step(data, stages, device_ids=None):
    """The program of `stages` times `data` devices, one stage or two."""
    rows = BATCH // data
    x, h, p = type_of(rows, IN), type_of(rows, HIDDEN), type_of(rows, OUT)
    types = {name: type_of(*shape) for name, shape in SHAPES.items()}
    ids = f", device_ids={device_ids}" if device_ids else ""
    mesh = f'dist.mesh @mesh <["pipe"={stages}, "data"={data}]{ids}>\n'
    first, last = (f"dist.at = array<i64: {', '.join(str(stage * data + i) for i in range(data))}>"
                   for stage in (0, stages - 1))

    def rows_of(number, *shape):
        return f", dist.global = #dist.global<{number}, {type_of(BATCH, *shape)}, <@mesh, [{{\"data\"}}, {{}}]>>" if data > 1 else ""

    lines = []

    def add(result, text):
        lines.append(f"%{result} = {text}")

    def summed(name, type_, at):
        """Over the devices of a stage."""
        if data == 1:
            return name
        add(name + "s", f'dist.all_reduce {{"data"}} sum %{name} {{reason = "by hand", {at}}} : {type_}')
        return name + "s"

    def moved(name, type_, source, target):
        """From stage to stage."""
        if stages == 1:
            return name
        lines.append(f'dist.send {{"pipe"}} %{name} to %c{target[0]} {{reason = "by hand", {source[1]}}} : {type_}')
        add(name + "m", f'dist.recv {{"pipe"}} from %c{source[0]} {{reason = "by hand", {target[1]}}} : {type_}')
        return name + "m"

    if stages > 1:
        add("c0", "arith.constant 0 : index")
        add("c1", "arith.constant 1 : index")
    here, there = ("0", first), ("1", last)
    add("h0", f"nn.matmul %x, %w0 : ({x}, {types['w0']}) -> {h}")
    add("h", f"nn.add %h0, %t : ({h}, {types['t']}) -> {h}")
    h_name = moved("h", h, here, there)
    add("u", f"nn.add %{h_name}, %t : ({h}, {types['t']}) -> {h}")
    add("p", f"nn.matmul %u, %w1 : ({h}, {types['w1']}) -> {p}")
    add("d", f"nn.sub %p, %y : ({p}, {p}) -> {p}")
    add("dd", f"nn.mul %d, %d : ({p}, {p}) -> {p}")
    add("n", f"nn.constant dense<{BATCH}.0> : tensor<f64>")
    for name, source in (("loss", "dd"), ("bias", "d")):
        add(name + "0", f"nn.reduce sum %{source} dims = [0, 1] : {p} -> tensor<f64>")
        add(name, f"nn.div %{summed(name + '0', 'tensor<f64>', last)}, %n : (tensor<f64>, tensor<f64>) -> tensor<f64>")
    add("scale", f"nn.constant dense<{2 / BATCH}> : tensor<f64>")
    add("dp", f"nn.mul %d, %scale : ({p}, tensor<f64>) -> {p}")
    add("gw1", f"nn.matmul %u, %dp {{transpose_a}} : ({h}, {p}) -> {types['w1']}")
    grads = {"w1": summed("gw1", types["w1"], last)}
    add("dh", f"nn.matmul %dp, %w1 {{transpose_b}} : ({p}, {types['w1']}) -> {h}")
    add("gt1", f"nn.reduce sum %dh dims = [0] : {h} -> {types['t']}")
    dh_name = moved("dh", h, there, here)
    add("gw0", f"nn.matmul %x, %{dh_name} {{transpose_a}} : ({x}, {h}) -> {types['w0']}")
    grads["w0"] = summed("gw0", types["w0"], first)
    add("gt0", f"nn.reduce sum %{dh_name} dims = [0] : {h} -> {types['t']}")
    if stages == 1:
        add("gtp", f"nn.add %gt1, %gt0 : ({types['t']}, {types['t']}) -> {types['t']}")
    else:
        choice = ", ".join(str(stage) for stage in (0, 1) for _ in range(data))
        add("gtp", f"dist.select [{choice}] %gt0, %gt1 : {types['t']}")
    axes = '"pipe", "data"' if data > 1 else '"pipe"'
    add("gt", f'dist.all_reduce {{{axes}}} sum %gtp {{reason = "by hand"}} : {types["t"]}')
    grads["t"] = "gt"
    add("rate", "nn.constant dense<0.015625> : tensor<f64>")
    results = [("loss", "tensor<f64>", "nn.loss"), ("bias", "tensor<f64>", 'nn.metric = "bias"')]
    for name, type_ in types.items():
        lines.append(f"%{name}n, %{name}v = nn.momentum_update %{name}, %{grads[name]}, %{name}m0 lr = %rate "
                     f"{{momentum = 0.5 : f64, weight_decay = 0.0 : f64}} : {type_}, tensor<f64>")
        results += [(name + "n", type_, f'nn.updates = "{name}"'), (name + "v", type_, f'nn.updates = "{name}.velocity"'),
                    (grads[name], type_, f'nn.grad = "{name}"')]
    add("one", "nn.constant dense<1> : tensor<i64>")
    add("next", "nn.add %step, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>")
    results.append(("next", "tensor<i64>", 'nn.updates = "step"'))
    arguments = [f'%x: {x} {{nn.input = "x"{rows_of(0, IN)}}}', f'%y: {p} {{nn.input = "y"{rows_of(1, OUT)}}}']
    for name, type_ in types.items():
        arguments.append(f'%{name}: {type_} {{nn.param = #nn.param<"{name}", init = uniform(-1.0, 1.0)>}}')
        arguments.append(f'%{name}m0: {type_} {{nn.state = #nn.state<"{name}.velocity", of = "{name}", init = 0.0>}}')
    arguments.append("%step: tensor<i64> {nn.step}")
    returned = ", ".join(f"{type_} {{{role}}}" for _, type_, role in results)
    return (mesh + "func.func @step(\n    " + ",\n    ".join(arguments) + f")\n    -> ({returned}) {{\n"
            + "".join(f"  {line}\n" for line in lines)
            + f"  return {', '.join('%' + name for name, _, _ in results)} : {', '.join(t for _, t, _ in results)}\n}}\n")


class Plan:
    def __init__(self, work, name, data, stages, device_ids=None):
        self.name, self.ranks, self.work = name, data * stages, work
        self.last = (device_ids or list(range(self.ranks)))[-1]
        model = self.path("mlir")
        with open(model, "w") as f:
            f.write(step(data, stages, device_ids))
        self.promise = self.path("promise.json")
        self.program = shoal.shoalc(model, self.path("exe"), "--report", self.promise)

    def path(self, end):
        return os.path.join(self.work, f"{self.name}.{end}")

    def run(self, *options, **keywords):
        return shoal.run(self.ranks, self.program, "--data", "x=" + os.path.join(self.work, "x.npy"),
                         "--data", "y=" + os.path.join(self.work, "y.npy"), *options, **keywords)


def compare(check, what, got, expected):
    found, wanted = read_safetensors(got), read_safetensors(expected)
    if sorted(found) != sorted(wanted):
        check.failures.append(f"{what} are of {sorted(found)}, expected {sorted(wanted)}")
        return
    for name, values in wanted.items():
        check.tensor(f"{what} of {name}", found[name], {"values": list(values.data)})


def train(check, plan, one):
    plan.run("--steps", str(STEPS), "--seed", "5", "--metrics", plan.path("jsonl"), "--report", plan.path("report.json"),
             "--dump-params", plan.path("params"), "--dump-grads", plan.path("grads"))
    mine, theirs = read_lines(plan.path("jsonl")), read_lines(one.path("jsonl"))
    for key in ("loss", "bias"):
        check.series(f"{key} of {plan.name}", [r[key] for r in mine], [r[key] for r in theirs])
    for kind in ("params", "grads"):
        compare(check, f"{kind} of {plan.name}", plan.path(kind), one.path(kind))
    reports = []
    for path in (plan.promise, plan.path("report.json")):
        with open(path) as f:
            reports.append([{k: v for k, v in rank.items() if k != "measured"} for rank in json.load(f)["ranks"]])
    for promised, counted in zip(*reports, strict=True):
        if promised != counted:
            check.failures.append(f"{plan.name}: counted {counted}, promised {promised}")


def resume(check, writer, reader, one):
    folder = writer.path("saved")
    if not os.path.exists(folder):
        writer.run("--steps", "3", "--seed", "5", "--save", folder)
    reader.run("--steps", str(STEPS), "--resume", folder, "--dump-params", reader.path("resumed"))
    compare(check, f"params of {reader.name} out of a checkpoint of {writer.name}", reader.path("resumed"), one.path("params"))


def kill(check, plan):
    """The last stage dies: one line names it."""
    running = subprocess.Popen(["shoal-run", "-n", str(plan.ranks), plan.program, "--no-progress", "--steps", "100000000",
                                "--data", "x=" + os.path.join(plan.work, "x.npy"), "--data",
                                "y=" + os.path.join(plan.work, "y.npy"), "--metrics", plan.path("killed.jsonl")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not (os.path.exists(plan.path("killed.jsonl")) and os.path.getsize(plan.path("killed.jsonl"))):
        time.sleep(0.01)
    shoal.kill_rank(plan.program, plan.last)
    _, errors = running.communicate(timeout=60)
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    if running.returncode != 1 or len(lines) != 1 or f"rank {plan.last} " not in lines[0]:
        check.failures.append(f"a killed stage of {plan.name}: exit {running.returncode}, {lines}")


def main():
    work = os.path.abspath(WorkParser(__doc__).parse_args().work)
    write_npy(os.path.join(work, "x.npy"), tensor("f64", (ROWS, IN), wave(ROWS * IN, 3)))
    write_npy(os.path.join(work, "y.npy"), tensor("f64", (ROWS, OUT), wave(ROWS * OUT, 7)))
    one = Plan(work, "one", 1, 1)
    plans = [one, Plan(work, "two", 1, 2), Plan(work, "swapped", 1, 2, [1, 0]), Plan(work, "four", 2, 2, [2, 0, 3, 1])]
    check = Checker(1e-12)
    for plan in plans:
        train(check, plan, one)
    for writer, reader in zip(plans, plans[1:] + plans[:1]):
        resume(check, writer, reader, one)
    kill(check, plans[1])
    sys.exit(check.fails("a training step in two stages"))


if __name__ == "__main__":
    main()
