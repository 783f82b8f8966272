#!/usr/bin/env python3
"""Verifies plans with a pipeline in the reference interpreter, training and evaluation: every value is one device's.

usage: pipeline_matrix.py FOLDER --work FOLDER --set pairs|all [--only WORD]... [--list]

FOLDER holds the models of two layers. `all` is every combination of the rows of CORE and of the kinds of BESIDE; which
plan of its kind it is, and the rows of TURNS, are drawn for each, the same in every run. `pairs` is a part of them in
which any two values of two rows meet at least once unless a rule forbids them. What a rule forbids must be refused with
that rule and its numbers. --only keeps plans that hold the word, --list prints them and runs none.
"""

import collections
import concurrent.futures
import itertools
import os
import random
import re
import subprocess
import sys
import time

import shoal
from pairwise import covering_pairs
from work_parser import WorkParser

TENSOR, SEQUENCE = "--tensor-parallel", "--tensor-parallel --sequence-parallel"
CORE = {
    "model": ["gpt_tied_adamw", "llama_gqa_adamw"],
    "layers": [2, 5, 7],
    "schedule": ["naive", "gpipe", "1f1b", "interleaved 2", "interleaved 3", "zb-h1", "zb-h2", "zb-v", "file"],
    "pipe": [2, 3, 4],
    "microbatches": [1, 3, 4, 8],
}
BESIDE = [
    [""],
    ["data=2"],
    [f"tensor=2 {TENSOR}", f"tensor=2 {SEQUENCE}"],
    ["data=2 --zero 1", "data=2 --zero 2", "data=2 --zero 3"],
]
TURNS = {
    "rows": [8, 11],
    "recompute": ["none", "selective", "full"],
    "dtype": ["f64", "bf16"],
    "clip": ["", "--clip-grad-norm 0.5"],
}
OUTSIDE = {"gpt_tied_adamw": 6, "llama_gqa_adamw": 5}  # ops with an input and a parameter that are in no layer
LIMIT = 600  # seconds
Plan = collections.namedtuple("Plan", [*CORE, "beside", *TURNS])


def every_plan():
    draw = random.Random(6)
    return [Plan(*core, draw.choice(kind), *map(draw.choice, TURNS.values()))
            for core in itertools.product(*CORE.values()) for kind in BESIDE]


def model_of(text, layers, rows):
    """The model of two layers with `layers` of them, `rows` in a batch and weights that are not 0."""
    def of_layer(line):
        return re.search(r"%[hl]1_|%x2 =", line)

    lines = []
    for own, group in itertools.groupby(text.splitlines(), key=lambda line: bool(of_layer(line))):
        group = list(group)
        for layer in range(1, layers) if own else [None]:
            for line in group:
                if own:
                    line = re.sub(r"\b([hl])([._]?)1\b(?=[._\"])", rf"\g<1>\g<2>{layer}", line)
                    line = re.sub(r"%([hl])1_", rf"%\g<1>{layer}_", line)
                    line = re.sub(r"%x2\b", "%xNEXT", line)
                    line = re.sub(r"%x1\b", f"%x{layer}", line).replace("%xNEXT", f"%x{layer + 1}")
                else:
                    line = re.sub(r"%x2\b", f"%x{layers}", line)
                lines.append(line)
    text = "\n".join(line for line in lines if "RUN:" not in line) + "\n"
    text = text.replace("tensor<4x12", f"tensor<{rows}x12").replace("tensor<4x16", f"tensor<{rows}x16")
    return text.replace("init = zeros", "init = normal(0.0, 0.3)").replace("init = ones", "init = uniform(0.5, 1.5)")


def refusal_of(plan):
    """What shoalc must say of a plan that a rule forbids; empty of any other."""
    stages = plan.pipe * {"interleaved 2": 2, "interleaved 3": 3, "zb-v": 2}.get(plan.schedule, 1)
    units = plan.layers + OUTSIDE[plan.model]
    if stages > units:
        return f"for each of its {stages} stages (ranks along \"pipe\" times chunks), got: {units}"
    rounds = max(1, plan.microbatches // plan.pipe)
    if plan.schedule.startswith("interleaved") and plan.microbatches % rounds:
        return f"M must be divisible by {rounds} with {plan.pipe} ranks, got: {plan.microbatches}"
    return ""


def path_of_model(plan, work):
    return f"{work}/{plan.model}-{plan.layers}-{plan.rows}.mlir"


def path_of_schedule(plan, work):
    return f"{work}/schedule-{plan.pipe}-{plan.microbatches}.txt"


def write_inputs(plan, folder, work):
    """The model, and a schedule of a user's own: all forward, then backward from the last micro-batch to the first."""
    with open(f"{folder}/{plan.model}.mlir") as f:
        text = model_of(f.read(), plan.layers, plan.rows)
    with open(path_of_model(plan, work), "w") as f:
        f.write(text)
    parts = range(plan.microbatches)
    actions = [f"F{part}" for part in parts] + [f"B{part}" for part in reversed(parts)]
    with open(path_of_schedule(plan, work), "w") as f:
        f.writelines(f"{rank}: {' '.join(actions)}\n" for rank in range(plan.pipe))


def describe(plan):
    return (f"{plan.model} of {plan.layers} layers, {plan.rows} rows in {plan.microbatches}: {plan.schedule} on "
            f"pipe={plan.pipe} {plan.beside} --recompute {plan.recompute} --dtype {plan.dtype} {plan.clip}").strip()


def command_of(plan, work):
    if plan.schedule == "file":
        order = ["--schedule-file", path_of_schedule(plan, work)]
    else:
        name, *chunks = plan.schedule.split()
        order = ["--pipeline-schedule", name] + (["--pipeline-chunks", *chunks] if chunks else [])
    axis, *flags = plan.beside.split() or [""]
    return ["shoalc", path_of_model(plan, work), "--verify-plan", "--optimizer", "adamw", "--lr", "0.01", "--grad-norm",
            "--mesh", f"pipe={plan.pipe}" + (f",{axis}" if axis else ""), *flags, *order, "--microbatches",
            str(plan.microbatches), "--recompute", plan.recompute, "--dtype", plan.dtype, *plan.clip.split()]


def find_fault(plan, work):
    """What is wrong with a plan; empty where nothing is."""
    command = command_of(plan, work)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT} s\n  {' '.join(command)}"
    said, refusal = done.stdout + done.stderr, refusal_of(plan)
    if refusal:
        right, wanted = done.returncode == 2 and refusal in said, f"a refusal: {refusal}"
    else:
        equal = re.findall(r"the plan equals one device, --mode (\w+): (\d+) values", said)
        right = done.returncode == 0 and [mode for mode, _ in equal] == ["train", "eval"]
        right, wanted = right and all(int(count) > 0 for _, count in equal), "one device's values"
    got = f"exit status {done.returncode}: {said.strip()[:600]}"
    return "" if right else f"expected {wanted}, {got}\n  {' '.join(command)}"


def main():
    parser = WorkParser(__doc__, "folder")
    parser.add_argument("--set", choices=["pairs", "all"], required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    chosen = every_plan()
    if args.set == "pairs":
        refused = [plan for plan in chosen if refusal_of(plan)]
        chosen = covering_pairs([plan for plan in chosen if not refusal_of(plan)])
        chosen += covering_pairs(refused, lambda plan: (plan.schedule, plan.pipe, plan.microbatches))
    chosen = [plan for plan in chosen if all(word in describe(plan) for word in args.only)]
    if not chosen:
        shoal.wrong_usage(f"--only must leave a plan of --set {args.set}, got: {', '.join(args.only)} "
                          "(--list prints all)")
    if args.list:
        print("\n".join(map(describe, chosen)))
        return
    os.makedirs(args.work, exist_ok=True)
    for plan in chosen:
        write_inputs(plan, args.folder, args.work)
    start, failures, refusals = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for plan, fault in zip(chosen, pool.map(lambda plan: find_fault(plan, args.work), chosen)):
            failures += bool(fault)
            refusals += bool(refusal_of(plan))
            print(f"{describe(plan)}: {fault or (refusal_of(plan) and 'refused') or 'ok'}", flush=True)
    print(f"{len(chosen) - failures} of {len(chosen)} plans are right, {refusals} of them refused by a rule")
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
