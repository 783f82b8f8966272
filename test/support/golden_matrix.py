#!/usr/bin/env python3
"""Trains golden cases under combinations of meshes, ZeRO stages, micro-batches and recompute, against PyTorch's values.

usage: golden_matrix.py FOLDER --work FOLDER --set pairs|all [--pipelines | --contexts] [--only WORD]... [--with FLAGS]
                        [--list]

FOLDER holds the models, and golden/ the cases. `all` is every combination of the rows of FACTORS, of PIPELINES or of
CONTEXTS that means something; `pairs` a part of them in which any two values of two rows meet at least once, made the
same way in every run. --only keeps plans that hold the word (it must be a word of some), --with adds flags to each, --list prints them and runs none.
"""

import itertools
import os
import random
import sys
import time

import shoal
from golden import prepare_case, run_case
from pairwise import covering_pairs
from work_parser import WorkParser

TENSOR, SEQUENCE = "--tensor-parallel", "--tensor-parallel --sequence-parallel"
FACTORS = {
    "case": ["gpt_tied_adamw", "gpt_ignored_targets", "llama_gqa_adamw"],
    "mesh": ["one", "data=2", "data=3", "data=4", f"data=2,tensor=2 {TENSOR}", f"data=2,tensor=2 {SEQUENCE}",
             "replica=2,data=2"],
    "zero": ["", "--zero 1", "--zero 2", "--zero 3"],
    "microbatches": ["", "--microbatches 2", "--microbatches 4"],
    "recompute": ["", "--recompute selective", "--recompute full"],
}
BESIDE = ["", ",data=2", ",data=2 --zero 1", ",data=2 --zero 2", ",data=2 --zero 3", f",tensor=2 {TENSOR}",
          f",tensor=2 {SEQUENCE}"]
PIPELINES = {
    "case": ["gpt_ignored_targets", "llama_gqa_adamw"],
    "mesh": [f"pipe={ranks}{beside}" for ranks in (2, 4) for beside in BESIDE],
    "microbatches": ["", "--microbatches 3", "--microbatches 4"],
    "schedule": [f"--pipeline-schedule {name}"
                 for name in ("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v")],
}
# The sequence over axes: each mode over each number of ranks, and the axes and options beside it.
AROUND = ["", ",data=2", ",data=2 --zero 3", f",tensor=2 {TENSOR}", f",tensor=2 {SEQUENCE}", ",pipe=2"]
MODES = [(f"context={ranks}", mode) for ranks in (2, 3, 4, 6) for mode in ("ring", "zigzag", "allgather", "ulysses")]
MODES += [(f"context={ranks},ulysses=2", "hybrid") for ranks in (2, 3)]
KINDS = {f"{axes}{around} --context-parallel {mode}": (axes, mode, around) for axes, mode in MODES for around in AROUND}
CONTEXTS = {
    "case": ["gpt_tied_adamw", "llama_gqa_adamw"],
    "mesh": list(KINDS),
    "microbatches": ["", "--microbatches 2"],
    "recompute": ["", "--recompute full"],
}
MODELS = {"gpt_ignored_targets": "gpt_tied_adamw"}  # others are named as their case


def means_something(combination):
    """ZeRO shards over other devices; of one there are none."""
    return combination[1] != "one" or not combination[2]


def can_be_cut(combination):
    """Two stages for each of 4 ranks are more than the layers and other ops of a Llama of two layers."""
    case, mesh, _, schedule = combination
    return not (case.startswith("llama") and mesh.startswith("pipe=4") and schedule.endswith(("interleaved", "zb-v")))


def kinds_of(pipeline):
    """Its values for `pairs`, which are of ranks and of what stands beside them, not of each stage of ZeRO."""
    case, mesh, microbatches, schedule = pipeline
    return case, mesh[: len("pipe=2")], mesh[len("pipe=2") :][: len(",data")], microbatches, schedule


def has_heads(combination):
    """Each device of Ulysses has a query head, of 4 in gpt and 6 in Llama, halved over an axis "tensor"; a pipeline is of
    micro-batches."""
    case, mesh, microbatches, _ = combination
    axes, mode, around = KINDS[mesh]
    devices = {"ulysses": shoal.ranks_of(axes), "hybrid": 2}.get(mode, 1)
    heads = (6 if case.startswith("llama") else 4) // (2 if "tensor" in around else 1)
    return devices <= heads and (microbatches or "pipe" not in around)


def context_kinds(combination):
    """Its values for `pairs`."""
    case, mesh, *others = combination
    return case, *KINDS[mesh], *others


def choose(args):
    """Plans of the set."""
    if args.contexts:
        table, test, values_of = CONTEXTS, has_heads, context_kinds
    elif args.pipelines:
        table, test, values_of = PIPELINES, can_be_cut, kinds_of
    else:
        table, test, values_of = FACTORS, means_something, tuple
    combinations = [c for c in itertools.product(*table.values()) if test(c)]
    if args.set == "all":
        return combinations
    if args.contexts:
        combinations = [c for c in combinations if shoal.ranks_of(c[1]) <= 8]
    if args.pipelines or args.contexts:  # of equal ones the first would be without ZeRO
        random.Random(0).shuffle(combinations)
    return covering_pairs(combinations, values_of)


def plan_of(combination):
    return " ".join(word for word in combination[1:] if word)


def main():
    parser = WorkParser(__doc__, "folder")
    parser.add_argument("--set", choices=["pairs", "all"], required=True)
    tables = parser.add_mutually_exclusive_group()
    tables.add_argument("--pipelines", action="store_true")
    tables.add_argument("--contexts", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--with", default="", dest="flags")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    chosen = [c for c in choose(args) if all(word in f"{c[0]} {plan_of(c)}" for word in args.only)]
    if not chosen:
        shoal.wrong_usage(f"--only must leave a plan of --set {args.set}, got: {', '.join(args.only)} (--list prints all)")
    if args.list:
        print("\n".join(f"{c[0]} on {plan_of(c)}" for c in chosen))
        return
    cases, programs, failures, start = {}, {}, 0, time.monotonic()
    for combination in chosen:
        name, plan = combination[0], f"{plan_of(combination)} {args.flags}".strip()
        work = os.path.join(args.work, name)
        if name not in cases:
            cases[name] = prepare_case(f"{args.folder}/golden/{name}.json", work)
        try:
            check = run_case(cases[name], f"{args.folder}/{MODELS.get(name, name)}.mlir", plan, work, [], programs)
            failures += check.fails(f"{name} on {plan}")
        except SystemExit as end:  # of a tool: the other plans run all the same
            print(f"{name} on {plan}: {end.code}")
            failures += 1
        sys.stdout.flush()
    print(f"{len(chosen) - failures} of {len(chosen)} plans keep the meaning")
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
