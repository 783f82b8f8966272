#!/usr/bin/env python3
"""What a rank needs for a long sequence, by the compiler's promise: linear in the tokens that it has, no scores.

usage: context_memory.py --work FOLDER

A layer of Llama with 8 heads of 64 over 4 ranks, 4,096 to 32,768 tokens, compiled alone, in each mode of context
parallelism. The table is of peaks in MB. With twice the tokens activations are twice as large, to 1 %, and no value of
the rank program has as many elements as a block of scores, n x s or s x s: the largest is one of the feed-forward layer,
keys that are gathered, or all parameters in a bucket. In a ring of more ranks with as many tokens each, a rank needs
what it needs among 4, to 1 %: it keeps no block of any other's.
"""

import json
import math
import os
import re
import sys

import shoal
from work_parser import WorkParser

RANKS, HEADS, HEAD_SIZE, FEED_FORWARD = 4, 8, 64, 1024
TOKENS = [4096, 8192, 16384, 32768]
RING_TOKENS, RINGS = 2048, (4, 8, 16)
MODES = ["ring", "zigzag", "allgather", "ulysses"]
CONFIG = {"model_type": "llama", "vocab_size": 64, "hidden_size": HEADS * HEAD_SIZE, "intermediate_size": FEED_FORWARD,
          "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
          "max_position_embeddings": TOKENS[-1], "rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu",
          "tie_word_embeddings": False}


def largest_value(path):
    """Elements of the largest tensor or buffer of a program's text."""
    with open(path) as f:
        shapes = re.findall(r"<((?:\d+x)+)(?:[fi]\d+|bf16)>", f.read())
    return max(math.prod(map(int, shape[:-1].split("x"))) for shape in shapes)


def compile_plan(work, tokens, mode, ranks=RANKS):
    """The most that a rank holds by class, and the elements of its largest value."""
    model, report, program = (f"{work}/{tokens}{end}" for end in (".mlir", ".json", ".exec.mlir"))
    if not os.path.exists(model):
        shoal.call(["shoal-model", "llama", "--config", f"{work}/config.json", "--batch", "1", "--seq", str(tokens),
                    "-o", model], shoal.COMPILE_LIMIT)
    shoal.call(["shoalc", model, "--mesh", f"context={ranks}", "--context-parallel", mode, "--optimizer", "adamw",
                "--emit", "exec", "-o", program, "--report", report], shoal.COMPILE_LIMIT)
    with open(report) as f:
        held = [rank["bytes"] for rank in json.load(f)["ranks"]]
    most = max(held, key=lambda rank: rank["peak"])
    return most, largest_value(program)


def check_mode(mode, held, failures):
    for tokens, (most, largest) in held.items():
        n = tokens // RANKS
        # Keys that are gathered have all tokens; all else has those of the rank, or as many.
        limit = max(n * FEED_FORWARD, tokens * HEADS * HEAD_SIZE if mode == "allgather" else 0, most["params"] // 4)
        if largest > limit or limit >= n * tokens:
            failures.append(f"{mode}, {tokens} tokens: a value of {largest} elements, expected at most {limit}")
        if tokens == TOKENS[0]:
            continue
        before = held[tokens // 2][0]
        growth = most["activations"] / before["activations"]
        if abs(growth - 2) > 0.02:
            failures.append(f"{mode}, {tokens} tokens: activations grow {growth:.4f} times, expected twice")
        others = sum(most[name] for name in ("params", "grads", "optimizer", "workspace"))
        # What parameters need does not grow.
        if most["peak"] > others + 1.2 * most["activations"] or most["peak"] >= 2 * before["peak"]:
            failures.append(f"{mode}, {tokens} tokens: a peak of {most['peak']} after {before['peak']}")


def main():
    args = WorkParser(__doc__).parse_args()
    with open(f"{args.work}/config.json", "w") as f:
        json.dump(CONFIG, f)
    failures = []
    print("peak of a rank, MB  " + "".join(f"{tokens:>8}" for tokens in TOKENS))
    for mode in MODES:
        held = {tokens: compile_plan(args.work, tokens, mode) for tokens in TOKENS}
        print(f"{mode:20}" + "".join(f"{most['peak'] / 1e6:8.1f}" for most, _ in held.values()))
        check_mode(mode, held, failures)
    for mode in ("ring", "zigzag"):
        peaks = [compile_plan(args.work, RING_TOKENS * ranks, mode, ranks)[0]["peak"] for ranks in RINGS]
        print(f"{mode} of {RING_TOKENS} tokens on each of {RINGS} ranks, MB: {[round(peak / 1e6, 1) for peak in peaks]}")
        if max(peaks) > 1.01 * peaks[0]:
            failures.append(f"{mode}: peaks of {RINGS} ranks: {peaks}")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
