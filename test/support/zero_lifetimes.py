#!/usr/bin/env python3
"""No plan keeps a parameter of ZeRO-3 whole, or from one part of the step to another, and dist-verify-local sees it where one does.

usage: zero_lifetimes.py --work FOLDER

GPT-2 and Llama with a tied table, and a program without layers, are compiled under what ZeRO-3 goes with, for training and
for evaluation: dist-verify-local stands at the end of that. Then gathers of programs that passed are moved and shared.
Nothing is run.
"""

import itertools
import json
import os
import re
import subprocess
import sys

import shoal
from work_parser import WorkParser

MODELS = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 39, "n_positions": 6, "n_embd": 12, "n_head": 4, "n_inner": 20, "n_layer": 3,
             "attn_pdrop": 0.0, "embd_pdrop": 0.1, "resid_pdrop": 0.1},
    "llama": {"model_type": "llama", "vocab_size": 39, "max_position_embeddings": 6, "hidden_size": 16,
              "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3, "intermediate_size": 20,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}}
MESHES = [["--mesh", "data=2"], ["--mesh", "replica=2,data=3"],
          ["--mesh", "data=2,tensor=2", "--tensor-parallel"],
          ["--mesh", "data=2,tensor=3", "--tensor-parallel", "--sequence-parallel"],
          ["--mesh", "data=2,tensor=2", "--tensor-parallel", "--sequence-parallel", "--keep-gathered"]]
OTHERS = [[], ["--dtype", "bf16"], ["--no-overlap"], ["--recompute", "selective", "--clip-grad-norm", "1"],
          ["--recompute", "full", "--dtype", "bf16", "--grad-dtype", "bf16"], ["--microbatches", "2", "--bucket-mb", "0.0005"],
          ["--microbatches", "3", "--dtype", "bf16", "--recompute", "full", "--no-overlap"]]
BOTH = "whole from the forward pass to the backward pass"
THROUGH = "whole through the forward pass for the backward pass"


def compile_plan(model, out, options):
    return subprocess.run(["shoalc", model, "--zero", "3", "--optimizer", "adamw", "--emit", "local", "-o", out, *options],
                          capture_output=True, text=True, timeout=shoal.COMPILE_LIMIT)


def gathers(lines):
    """Of each bucket that both passes gather: the lines of its first gather for forward, and for backward."""
    found = {}
    for number, line in enumerate(lines):
        match = re.search(r'(%\w+) = dist\.all_gather .* dim = 0 (%\w+) \{dist\.fetch.*for the (forward|backward) pass', line)
        if match:
            found.setdefault(match[2], {}).setdefault(match[3], (number, match[1]))
    return [entry for entry in found.values() if len(entry) == 2]


def moved(lines, forward, backward):
    """The gather for the backward pass beside the one for the forward pass."""
    broken = lines[:backward[0]] + lines[backward[0] + 1:]
    return broken[:forward[0] + 1] + [lines[backward[0]]] + broken[forward[0] + 1:]


def shared(lines, forward, backward):
    """One gather for both."""
    return [re.sub(re.escape(backward[1]) + r"\b", forward[1], line)
            for number, line in enumerate(lines) if number != backward[0]]


def check_broken(path, faults):
    with open(path) as f:
        lines = f.read().split("\n")
    pairs = gathers(lines)
    if not pairs:
        faults.append(f"{path}: no bucket is gathered for both passes")
    for number, pair in enumerate(pairs):
        for change, message in ((moved, THROUGH), (shared, BOTH)):
            broken = f"{path}.{number}.{change.__name__}.mlir"
            with open(broken, "w") as f:
                f.write("\n".join(change(lines, pair["forward"], pair["backward"])))
            done = subprocess.run(["shoal-opt", broken, "--dist-verify-local", "-o", os.devnull], capture_output=True, text=True,
                                  timeout=shoal.COMPILE_LIMIT)
            if done.returncode == 0 or message not in done.stderr:
                faults.append(f"{broken}: must be refused, got {done.returncode}: {done.stderr[:300]}")


def main():
    work = WorkParser(__doc__).parse_args().work
    faults = []
    for kind, config in MODELS.items():
        base = f"{work}/{kind}"
        with open(f"{base}.json", "w") as f:
            json.dump(config, f)
        shoal.call(["shoal-model", kind, "--config", f"{base}.json", "--batch", "6", "--seq", "6", "-o", f"{base}.mlir"],
                   shoal.COMPILE_LIMIT)
        with open(f"{base}.mlir") as f:
            text = f.read()
        with open(f"{base}.flat.mlir", "w") as f:
            f.write(re.sub(r' \{nn\.layer = "[^"]*"\}|, nn\.layer = "[^"]*"|nn\.layer = "[^"]*", ', "", text))
        plans = [(f"{base}.mlir", mesh + other) for mesh, other in itertools.product(MESHES, OTHERS)]
        plans += [(f"{base}.flat.mlir", MESHES[0] + other) for other in OTHERS if "--recompute" not in other]
        for number, (model, options) in enumerate(plans):
            for mode in ("train", "eval"):
                done = compile_plan(model, f"{base}.{number}.{mode}", [*options, "--mode", mode])
                if done.returncode:
                    faults.append(f"{model} {' '.join(options)} --mode {mode}: {done.stderr[:400]}")
                elif "stays whole" in done.stderr:
                    faults.append(f"{model} {' '.join(options)} --mode {mode}: all lies sharded, got: {done.stderr[:400]}")
    for kind, number in (("gpt2", 0), ("gpt2", 1), ("llama", 2), ("llama", 5)):
        check_broken(f"{work}/{kind}.{number}.train", faults)
    sys.exit("\n".join(faults) or 0)


main()
