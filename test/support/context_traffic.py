#!/usr/bin/env python3
"""Holds what a transformer sends in a step over a sharded sequence against the formulas of context parallelism.

usage: context_traffic.py --work FOLDER --pmpi LIBRARY.so

Every model is run with one block and with two: what a block sends is its attention's, and around the blocks are the loss, the
count of labels and the gradients, once over all ranks. Three witnesses must agree on each step: the report of shoalc, that of the
program, and a library that wraps MPI's profiling interface and counts below both.
"""

import collections
import math
import sys

from transformer_traffic import measure, tell_differences, write_rows
from work_parser import WorkParser

ROWS, WIDTH, VOCAB, INNER, HEADS, SIZE = 2, 24, 32, 40, 12, 2  # of a head

# Of keys and values as many heads as of queries, or fewer.
MULTI, GROUPED, ONE = HEADS, {2: 4, 3: 6, 4: 4}, 1
WINDOW = 6


class Plan:
    def __init__(self, mode, mesh, kv_heads, *options, tokens=24, window=None, element=4):
        self.mode, self.mesh, self.kv_heads, self.options = mode, mesh, kv_heads, options
        self.tokens, self.window, self.element = tokens, window, element

    def __str__(self):
        mesh = ",".join(f"{axis}={size}" for axis, size in self.mesh.items())
        window = f" window {self.window}" if self.window else ""
        return " ".join((self.mode, mesh, f"{self.kv_heads} of {HEADS} heads, {self.tokens} tokens{window}", *self.options))

    def config(self, layers):
        window = {"model_type": "mistral", "sliding_window": self.window} if self.window else {"model_type": "llama"}
        return window | {"vocab_size": VOCAB, "max_position_embeddings": self.tokens, "hidden_size": WIDTH,
                         "num_attention_heads": HEADS, "num_key_value_heads": self.kv_heads, "intermediate_size": INNER,
                         "num_hidden_layers": layers}


def plans():
    for ranks in 2, 3, 4:
        for kv_heads in MULTI, GROUPED[ranks]:
            mesh = {"context": ranks}
            yield Plan("ring", mesh, kv_heads)
            yield Plan("allgather", mesh, kv_heads)
            yield Plan("ulysses", mesh, kv_heads)
        yield Plan("zigzag", {"context": ranks}, GROUPED[ranks])
        yield Plan("allgather", {"context": ranks}, GROUPED[ranks], "--keep-gathered")
    for kv_heads in MULTI, GROUPED[4]:
        yield Plan("hybrid", {"context": 2, "ulysses": 2}, kv_heads)
    # One head of keys and values passes by as many do; heads of it there are none to exchange for tokens.
    yield Plan("ring", {"context": 3}, ONE)
    yield Plan("ulysses", {"context": 2}, ONE)
    # A window reaches one rank of 8 tokens, of 6 tokens too, and two of 3; in zigzag order two chunks of 3, which may be on
    # either side and so on all ranks, or one of 6, on one rank of each side.
    yield Plan("ring", {"context": 3}, GROUPED[3], window=WINDOW)
    yield Plan("ring", {"context": 4}, MULTI, window=WINDOW)
    yield Plan("ring", {"context": 4}, MULTI, window=WINDOW, tokens=12)
    yield Plan("zigzag", {"context": 4}, MULTI, window=WINDOW)
    yield Plan("zigzag", {"context": 4}, MULTI, window=WINDOW, tokens=48)
    # Keys and values in bf16 come home as gradients in f32, which are rounded once.
    yield Plan("ring", {"context": 4}, GROUPED[4], "--dtype", "bf16", element=2)
    yield Plan("hybrid", {"context": 2, "ulysses": 2}, GROUPED[4], "--dtype", "bf16", element=2)
    # A shard of 6 tokens whose last ones do not exist is sent whole.
    yield Plan("ring", {"context": 4}, GROUPED[4], tokens=22)
    # Micro-batches send each its rows; gradients are reduced over rows and sequence at once.
    yield Plan("ring", {"context": 2}, GROUPED[2], "--microbatches", "2")
    yield Plan("zigzag", {"data": 2, "context": 2}, GROUPED[2])
    yield Plan("ulysses", {"data": 2, "context": 2}, GROUPED[2])


def parameters(plan, layers):
    kv = plan.kv_heads * SIZE
    block = 2 * WIDTH * WIDTH + 2 * WIDTH * kv + 3 * WIDTH * INNER + 2 * WIDTH
    return layers * block + 2 * VOCAB * WIDTH + WIDTH


def hops(plan, per_rank):
    """How many of the other ranks' keys a rank of `per_rank` tokens needs."""
    others = plan.mesh["context"] - 1
    if plan.window and plan.mode == "ring":
        return min(others, math.ceil((plan.window - 1) / per_rank))
    if plan.window:
        return min(others, 2 * math.ceil((plan.window - 1) / (per_rank // 2)))
    return others


def expected(plan, layers):
    """What a rank sends in a step: {(kind, axes, elements of the whole buffer, bytes of one): times}."""
    sent = collections.Counter()
    parts = int(plan.options[plan.options.index("--microbatches") + 1]) if "--microbatches" in plan.options else 1
    data = plan.mesh.get("data", 1)
    ranks = math.prod(plan.mesh.values()) // data  # that share a sequence
    per_rank = math.ceil(plan.tokens / ranks)
    rows = ROWS // parts // data
    queries, keys = (rows * per_rank * heads * SIZE for heads in (HEADS, plan.kv_heads))

    def add(times, kind, axes, elements, size=plan.element):
        if times:
            sent[kind, axes, elements, size] += times

    blocks = layers * parts
    if plan.mode in ("ring", "zigzag", "hybrid"):
        # Under hybrid a rank has heads / U of n U tokens: as many elements. Forward and backward K and V; then dK and dV,
        # which are in f32 where these are in bf16, come N - 1 hops: what a rank's own queries add does not leave it.
        add(blocks * 4 * hops(plan, per_rank), "collective_permute", "*", keys)
        add(blocks * 2 * hops(plan, per_rank), "collective_permute", "*", keys, 4)
    if plan.mode in ("ulysses", "hybrid"):
        axis = {"ulysses": "context", "hybrid": "ulysses"}[plan.mode]
        # Forward Q and O, K and V; backward dO and dQ, dK and dV.
        add(blocks * 4, "all_to_all", axis, queries)
        if plan.kv_heads % plan.mesh[axis] == 0:
            add(blocks * 4, "all_to_all", axis, keys)
        else:
            add(blocks * 2, "all_gather", axis, keys * ranks)
            add(blocks * 2, "reduce_scatter", axis, keys * ranks)
    if plan.mode == "allgather":
        add(blocks * (2 if "--keep-gathered" in plan.options else 4), "all_gather", "context", keys * ranks)
        add(blocks * 2, "reduce_scatter", "context", keys * ranks)
    axes = ",".join(plan.mesh)
    add(1, "all_reduce", axes, parameters(plan, layers), 4)
    add(1, "all_reduce", axes, 1, 4)  # the loss
    add(1, "all_reduce", axes, 1, 8)  # how many labels count
    return sent


def main():
    args = WorkParser(__doc__, "--pmpi").parse_args()
    failed = False
    for tokens in sorted({plan.tokens for plan in plans()}):
        write_rows(args.work, ROWS, tokens)
        for number, plan in enumerate(plan for plan in plans() if plan.tokens == tokens):
            for layers in (1, 2):
                want = expected(plan, layers)
                config = plan.config(layers)
                measured = measure(args, f"{args.work}/{tokens}-{number}-{layers}", "llama", layers, plan.mesh,
                                   ["--context-parallel", plan.mode, *plan.options], ROWS, config, tokens)
                failed |= tell_differences(f"{plan}, {layers} blocks", [sent for _, sent in measured], want)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
