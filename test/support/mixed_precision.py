#!/usr/bin/env python3
"""Trains a byte-level GPT in f32 and in bf16 (--dtype bf16), on one rank and under plans, and compares them.

usage: mixed_precision.py FOLDER [--config FILE] [--seq N] [--steps N] [--lr X] [--text FILE...]

The mean of the last 20 losses in bf16 must be that of f32 to 1 in 100, whatever the type of the gradients; the first
losses of a plan must be those of one rank to 1 in 200 (sums of bf16 change their order). Whatever the types, parameters in
files are the f32 masters, and gradients have the type that --grad-dtype says. Each plan is verified by the interpreter in
f64, in which no type rounds. The last line says how fast bf16 was, beside f32: it is not a bound.
"""

import argparse
import json
import os
import random
import statistics
import sys

import shoal
from metrics import largest_relative_difference, read_losses

CONFIG = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 16, "n_embd": 24, "n_head": 3, "n_layer": 2,
          "initializer_range": 0.1, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
BF16 = ["--dtype", "bf16"]
NARROW = [*BF16, "--grad-dtype", "bf16"]
FOUR = ["--mesh", "data=2,tensor=2", "--tensor-parallel", "--sequence-parallel"]
# Name, ranks, flags, type of gradients, steps (none: all).
RUNS = [("f32", 1, ["--dtype", "f32"], "F32", None), ("bf16", 1, BF16, "F32", None), ("narrow", 1, NARROW, "BF16", None),
        ("three", 3, [*NARROW, "--mesh", "data=3"], "BF16", 20), ("four", 4, [*BF16, *FOUR], "F32", 20)]


def check(holds, what):
    if not holds:
        sys.exit(what)


def text():
    """Letters at random: no loss falls below ln 8 for long, so that a relative difference is one of rounding."""
    return "".join(random.Random(1).choices("abcdefgh", k=6400)) + "\n"


def types_in(path):
    """The types of tensors, as the file names them."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--config")
    parser.add_argument("--seq", type=int, default=CONFIG["n_positions"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", default="0.01")
    parser.add_argument("--text", nargs="+", default=[])
    args = parser.parse_args()
    config, texts = args.config and os.path.abspath(args.config), [os.path.abspath(t) for t in args.text]
    os.makedirs(args.folder, exist_ok=True)
    os.chdir(args.folder)
    if not config:
        config = "config.json"
        with open(config, "w") as file:
            json.dump(CONFIG, file)
    if not texts:
        texts = ["text"]
        with open("text", "w") as file:
            file.write(text())
    shoal.call(["shoal-data", "bytes", *texts, "--seq", str(args.seq), "-o", "data"], 60)
    shoal.call(["shoal-model", "gpt2", "--config", config, "--batch", "4", "--seq", str(args.seq), "-o", "gpt.mlir"], 60)

    data = [word for name in ("input_ids", "labels") for word in ("--data", f"{name}=data/train_{name}.npy")]
    losses, seconds = {}, {}
    for name, ranks, flags, gradients, steps in RUNS:
        shoal.shoalc("gpt.mlir", name, *flags, "--optimizer", "adamw", "--lr", args.lr, "--clip-grad-norm", "1",
                     *(["--verify-plan"] if ranks > 1 and not args.config else []))
        shoal.run(ranks, name, *data, "--steps", str(steps or args.steps), "--shuffle", "--seed", "1", "--metrics",
                  f"{name}.jsonl", "--dump-params", f"{name}.params", "--dump-grads", f"{name}.grads", "--report",
                  f"{name}.json")
        losses[name] = read_losses(f"{name}.jsonl")
        with open(f"{name}.jsonl") as file:
            walls = [record["wall_s"] for record in map(json.loads, file) if "wall_s" in record]
        # The median step: others may use the machine, too.
        seconds[name] = statistics.median(after - before for before, after in zip(walls, walls[1:]))
        check(types_in(f"{name}.params") == {"F32"}, f"{name}: parameters are {types_in(f'{name}.params')}")
        check(types_in(f"{name}.grads") == {gradients}, f"{name}: gradients are {types_in(f'{name}.grads')}")

    mean = {name: sum(losses[name][-20:]) / 20 for name in ("f32", "bf16", "narrow")}
    check(mean["f32"] < losses["f32"][0] / 2, f"f32 must learn, got: {losses['f32'][0]} and {mean['f32']}")
    for name in ("bf16", "narrow"):
        difference = abs(mean[name] / mean["f32"] - 1)
        print(f"{name}: mean of the last 20 losses {mean[name]:.4f}, of f32 {mean['f32']:.4f}, difference {difference:.2%}")
        check(difference <= 0.01, f"{name}: the mean of the last 20 losses must be that of f32 to 1%")
    for plan, one in (("three", "narrow"), ("four", "bf16")):
        difference = largest_relative_difference(losses[plan], losses[one][: len(losses[plan])])
        print(f"{plan}: largest relative difference to one rank of {len(losses[plan])} losses {difference:.2g}")
        check(0 < difference <= 5e-3, f"{plan}: losses must be those of one rank to 5e-3, got: {difference}")
    print(f"a step in bf16 takes {seconds['bf16'] * 1000:.2f} ms, {seconds['bf16'] / seconds['f32']:.2f} of one in f32")


if __name__ == "__main__":
    main()
