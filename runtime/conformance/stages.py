#!/usr/bin/env python3
"""Whole runs of the pipelined model (make_stages.cpp): one stage, two, two of which rank 0 is the last, and three of
which rank 0 is the one in the middle, which holds nothing. Whatever rank 0 tells or writes is the same, bit for bit, and
a checkpoint of any is read by any.

usage: stages.py --programs FOLDER --bin FOLDER --signal LIBRARY --work FOLDER
"""

import json
import os
import signal
import subprocess

import by_hand
from by_hand import check, own_lines, path
from tensor_files import read_npy, read_safetensors, tensor, write_npy, write_safetensors

args = by_hand.begin(by_hand.make_parser(__doc__, "signal"))
PLANS = ("0", "0-1", "1-0", "1-0-2")  # the rank of each stage
ROWS, COLUMNS, BATCH, STEPS, RATE, MOMENTUM = 23, 3, 5, 7, 0.0625, 0.5


def start(plan, *options, mode="train", env=None):
    return by_hand.launch(plan.count("-") + 1, f"stages-{mode}-{plan}", *options, env=env)


def run(plan, *options, **keywords):
    return by_hand.check_ran(start(plan, *options, **keywords), f"stages {plan} {options}")


def refused(plan, part, *options, code=2):
    by_hand.check_refused(start(plan, *options), f"stages {plan} {options}", part, code)


def records(file):
    """Lines of a metrics file but for their times."""
    with open(file) as f:
        return [{k: v for k, v in json.loads(line).items() if not k.endswith("_s")} for line in f]


def data_bytes(file):
    """What a safetensors file holds of each tensor."""
    return {name: bytes(memoryview(t.data).cast("B")) for name, t in read_safetensors(file).items()}


def reference(x, y, params):
    """Losses, first gradients and final values, by the sums of make_stages.cpp written out."""
    w0, w1, t = (list(params[name]) for name in ("w0", "w1", "wt"))
    moments = {name: [0.0] * COLUMNS for name in ("w0", "w1", "wt")}
    losses, first = [], None
    for step in range(STEPS):
        begin = step % -(-ROWS // BATCH) * BATCH
        rows = range(begin, min(begin + BATCH, ROWS))
        h = {r: [x[r][j] * w0[j] + t[j] for j in range(COLUMNS)] for r in rows}
        d = {r: sum(h[r][j] * w1[j] + t[j] for j in range(COLUMNS)) - y[r] for r in rows}
        losses.append(sum(v * v for v in d.values()) / len(rows))
        scale = {r: 2 * v / len(rows) for r, v in d.items()}
        grads = {"w0": [sum(scale[r] * w1[j] * x[r][j] for r in rows) for j in range(COLUMNS)],
                 "w1": [sum(scale[r] * h[r][j] for r in rows) for j in range(COLUMNS)],
                 "wt": [sum(scale[r] * (1 + w1[j]) for r in rows) for j in range(COLUMNS)]}
        first = first or grads
        for name, values in (("w0", w0), ("w1", w1), ("wt", t)):
            for j in range(COLUMNS):
                moments[name][j] = MOMENTUM * moments[name][j] + grads[name][j]
                values[j] -= RATE * moments[name][j]
    return losses, first, {"w0": w0, "w1": w1, "wt": t}


def close(a, b):
    return by_hand.close(a, b, 1e-11)


def training(x, y, data):
    """The same losses, metrics, gradients and parameters under each plan, and those of the sums written out."""
    told = {}
    for plan in PLANS:
        run(plan, *data, "--steps", "0", "--seed", "5", "--dump-params", path("drawn.safetensors"))
        run(plan, *data, "--steps", str(STEPS), "--seed", "5", "--metrics", path("m.jsonl"), "--dump-params",
            path(f"p-{plan}.safetensors"), "--dump-grads", path("g.safetensors"), "--eval-every", "3",
            "--eval-data", "x=" + path("x.npy"), "--eval-data", "y=" + path("y.npy"))
        told[plan] = (data_bytes(path("drawn.safetensors")), records(path("m.jsonl")),
                      data_bytes(path(f"p-{plan}.safetensors")), data_bytes(path("g.safetensors")))
        for part, mine, first in zip(("drawn parameters", "metrics", "parameters", "gradients"), told[plan], told["0"]):
            check(mine == first, f"{part} of stages {plan}: {mine}, of one stage: {first}")
    drawn = {name: list(t.data) for name, t in read_safetensors(path("drawn.safetensors")).items()}
    losses, grads, params = reference(x, y, drawn)
    steps = [r for r in told["0"][1] if "loss" in r]
    check(close([r["loss"] for r in steps], losses), f"losses {steps}, expected {losses}")
    check(all({"error", "corner"} <= set(r) for r in steps), f"metrics of each step: {steps}")
    evaluated = [r for r in told["0"][1] if "eval_loss" in r]
    check([r["step"] for r in evaluated] == [3, 6, 7] and all("eval_error" in r for r in evaluated),
          f"evaluations: {evaluated}")
    for file, expected in ((path("g.safetensors"), grads), (path("p-0.safetensors"), params)):
        found = read_safetensors(file)
        check(all(close(list(found[name].data), values) for name, values in expected.items()), f"{file}: {found}")


def files(data):
    """Files of parameters are read by whoever holds them, and what they lack is told once."""
    values = {name: tensor("f64", (COLUMNS,), [i + j / 4 for j in range(COLUMNS)])
              for i, name in enumerate(("w0", "w1", "wt"))}
    write_safetensors(path("start.safetensors"), values)
    write_safetensors(path("lacks.safetensors"), {n: values[n] for n in ("w0", "wt")})
    write_safetensors(path("bad.safetensors"), {**values, "w1": tensor("f64", (2,), [0, 0])})
    for plan in PLANS:
        run(plan, *data, "--steps", "0", "--load", path("start.safetensors"), "--dump-params", path("back.safetensors"))
        check(data_bytes(path("back.safetensors")) == data_bytes(path("start.safetensors")), f"files of stages {plan}")
        refused(plan, "'w1' is missing, expected shape [3]", *data, "--load", path("lacks.safetensors"))
        refused(plan, "'w1' has shape [2], expected [3]", *data, "--load", path("bad.safetensors"))
        run(plan, "--data", data[1], "--load", path("start.safetensors"), "--output",
            "prediction=" + path(f"y-{plan}.npy"), mode="infer")
        check(bytes(memoryview(read_npy(path(f"y-{plan}.npy")).data).cast("B"))
              == bytes(memoryview(read_npy(path("y-0.npy")).data).cast("B")), f"output of stages {plan}")
        printed = run(plan, "--data", data[1], "--load", path("start.safetensors"), "--print", mode="infer")
        last = plan.split("-")[-1]
        check([line.split(":")[0] for line in printed.splitlines() if "prediction" in line]
              == [f"batch {b} rank {last} prediction" for b in range(5)], f"--print of stages {plan}: {printed}")


def tokens():
    """What the last stage has drawn is what the first one goes on with."""
    write_npy(path("prompt.npy"), tensor("i64", (2,), [3, 5]))
    drawn = [3, 5]
    for _ in range(6):
        window = drawn[-4:]
        drawn.append(sum((i + 1) * token for i, token in enumerate(window)) % 7)
    for plan in PLANS:
        run(plan, "--generate", "6", "--prompt-file", path("prompt.npy"), "--temperature", "0", "--output",
            "tokens=" + path("ids.npy"), mode="tokens")
        found = list(read_npy(path("ids.npy")).data)
        check(found == drawn, f"tokens of stages {plan}: {found}, expected {drawn}")


def checkpoints(data):
    """Three steps under one plan and four under another are seven under one."""
    for writer in PLANS:
        folder = path("saved-" + writer)
        run(writer, *data, "--steps", "3", "--seed", "5", "--save", folder)
        done = subprocess.run([os.path.join(args.bin, "shoal-ckpt"), "verify", folder], capture_output=True, text=True)
        check(done.returncode == 0, f"verify: {done.stdout}{done.stderr}")
        for reader in PLANS:
            run(reader, *data, "--steps", str(STEPS), "--resume", folder, "--dump-params", path("r.safetensors"))
            check(data_bytes(path("r.safetensors")) == data_bytes(path("p-0.safetensors")),
                  f"stages {writer} resumed by {reader}")


def faults(data):
    """Each is told in one line, whichever rank has come upon it, or all of them."""
    write_npy(path("short.npy"), tensor("f64", (ROWS - 1,), [0.0] * (ROWS - 1)))
    write_npy(path("wide.npy"), tensor("f64", (ROWS, 4), [0.0] * ROWS * 4))
    values = [0.0] * ROWS
    values[BATCH] = float("nan")
    write_npy(path("nan.npy"), tensor("f64", (ROWS,), values))
    x, y = data[1], data[3]
    for plan in PLANS:
        first, last = (f"rank {rank}: " if plan != "0" else "" for rank in (plan.split("-")[0], plan.split("-")[-1]))
        refused(plan, f"error: {path('short.npy')}: has 22 rows, but {path('x.npy')} has 23", "--data", x, "--data",
                "y=" + path("short.npy"))
        refused(plan, f"{first}{path('wide.npy')}: has shape [23, 4], but input 'x' expects [rows, 3]",
                "--data", "x=" + path("wide.npy"), "--data", y)
        refused(plan, f"{last}/no/y.npy: cannot be opened", "--data", x, "--data", "y=/no/y.npy")
        refused(plan, "input 'y' [5] needs --data y=FILE.npy", "--data", x)
        refused(plan, "short.npy: has 22 rows, but", *data, "--eval-data", x, "--eval-data", "y=" + path("short.npy"))
        refused(plan, "the loss is nan in step 2, and --stop-on-nan ends the run", "--data", x, "--data",
                "y=" + path("nan.npy"), "--stop-on-nan", code=1)


def reports(data):
    """A rank counts and traces what is its own."""
    for plan in PLANS:
        stages = plan.split("-")
        run(plan, *data, "--steps", "2", "--report", path("r.json"), "--trace", path("t.json"))
        with open(path("r.json")) as f:
            ranks = {entry["rank"]: entry for entry in json.load(f)["ranks"]}
        with open(path("t.json")) as f:
            spans = [event for event in json.load(f)["traceEvents"] if event["ph"] == "X" and "row" in event["args"]]
        for stage, rank in enumerate(map(int, stages)):
            isFirst, isLast = stage == 0, stage == len(stages) - 1
            held, params = ranks[rank]["bytes"], 24 * (isFirst + isLast + (isFirst or isLast))
            check((held["params"], held["optimizer"]) == (params, params), f"bytes of stage {stage} of {plan}: {held}")
            sends = [c for c in ranks[rank].get("collectives", []) if c["kind"] == "send"]
            check(sum(c["count"] for c in sends) == (not isFirst) + (not isLast), f"sends of stage {stage}: {sends}")
            names = {event["name"] for event in spans if event["pid"] == rank}
            mine = ({"k0", "k4"} if isFirst else set()) | ({"k1", "k2", "k3"} if isLast else set())
            mine |= {"k6"} if isFirst or isLast else {"k5"}
            mine |= {"send h", "recv dh"} if not isLast else set()
            mine |= {"send dh", "recv h"} if not isFirst else set()
            kernels = {name for name in names if name[0] == "k" or name.startswith(("send", "recv"))}
            check(kernels == mine | {"k7"}, f"rows of stage {stage} of {plan}: {names}, expected {mine}")


def failing(data):
    """A rank that dies or stops is named, with where it is."""
    for plan in PLANS[1:]:
        last = plan.split("-")[-1]
        where = {"LD_PRELOAD": args.signal, "SHOAL_SIGNAL_RANK": last, "SHOAL_SIGNAL_IN": "point_to_point 'recv h'",
                 "SHOAL_SIGNAL_STEP": "2", "SHOAL_SIGNAL_OUT": path("call")}
        code, _, err = start(plan, *data, "--steps", "50", "--no-progress", "--inject-delay", f"{plan[0]}:20",
                             env={**where, "SHOAL_SIGNAL": str(int(signal.SIGKILL))})
        lines = own_lines(err)
        check(code == 1 and len(lines) == 1 and f"rank {last} " in lines[0], f"a killed stage of {plan}: {code} {err}")
        # The stage before it waits for what it does not send, and the others for that one.
        code, _, err = start(plan, *data, "--steps", "50", "--no-progress", "--timeout", "1", "--inject-delay",
                             f"{last}:5000")
        lines = own_lines(err)
        check(code == 1 and len(lines) == 1 and f" in point_to_point 'recv dh' (step 1); rank {last} has" in lines[0]
              and "not entered it: it is at the injected delay" in lines[0], f"a late stage of {plan}: {code} {err}")


def main():
    x, y, data = by_hand.make_data(ROWS, COLUMNS)
    training(x, y, data)
    files(data)
    tokens()
    checkpoints(data)
    faults(data)
    reports(data)
    failing(data)
    by_hand.finish(f"stages on ranks {', '.join(PLANS)} are one program")


main()
