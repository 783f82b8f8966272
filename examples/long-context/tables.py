#!/usr/bin/env python3
"""Prints what run.sh has made: of the program on one rank (`one`) and of a program per mode losses, parameters and
reports, beside the formulas of what attention sends.

usage: tables.py FOLDER MODE...

Ends with status 1 where a number is another than its formula's.

Formulas: N ranks of n tokens each (hybrid: R in a ring, U of Ulysses), a heads and k key/value heads of d numbers. The
ring: Liu, Zaharia and Abbeel 2023 (arXiv 2310.01889), gradients of keys and values as they are made by other ranks;
its order zigzag: 2N chunks, of which rank r has chunks r and 2N-1-r; Ulysses: Jacobs et al. 2023 (arXiv 2309.14509).
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from common import Faults, equality, read_ranks, table  # noqa: E402

RANKS, SIZE = 4, 8
TOKENS, LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 2048, 2, 8, 4, 16  # of config.json and run.sh in f64
n = TOKENS // RANKS

# Of each mode: numbers that attention sends per layer and step, and how that is written.
RING = 6 * n * KV_HEADS * HEAD_SIZE * (RANKS - 1), "6 n k d (N-1)"
FORMULAS = {
    "ring": RING, "zigzag": RING, "allgather": RING,
    "ulysses": (4 * n * (HEADS + KV_HEADS) * HEAD_SIZE * (RANKS - 1) // RANKS, "4 n (a+k) d (N-1)/N"),
    "hybrid": (4 * n * (HEADS + KV_HEADS) * HEAD_SIZE // 2 + 6 * n * KV_HEADS * HEAD_SIZE,
               "4 n (a+k) d (U-1)/U + 6 n k d (R-1)"),
}


def bytes_of_attention(rank):
    """What is no sum over ranks of gradients, loss or counts."""
    return sum(c["bytes"] for c in rank["collectives"] if c["kind"] != "all_reduce")


def traffic(names, ranks, faults):
    rows = []
    for name in names:
        promised, counted = ranks[f"{name}.promised"], ranks[name]
        sent = [{bytes_of_attention(rank) for rank in side} for side in (promised, counted)]
        elements, text = FORMULAS[name]
        expected = LAYERS * elements * SIZE
        sums = counted[0]["collectives"]
        rows.append([name, *(" ".join(map(str, sorted(side))) for side in sent),
                     f"{LAYERS} * {SIZE} * ({text}) = {expected}",
                     str(sum(c["bytes"] for c in sums if c["kind"] == "all_reduce")),
                     faults.mark(promised == counted and sent == [{expected}, {expected}], f"{name}: sent {sent}")])
    table(f"bytes that a rank sends in a step for attention ({LAYERS} layers, {SIZE} bytes a number), and for sums",
          ["mode", "promised", "counted", "formula", "sums", ""], rows)


def memory(names, ranks, faults):
    rows = []
    alone = ranks["one"][0]["bytes"]
    for name in ["one", *names]:
        promised, counted = (max(rank["bytes"]["peak"] for rank in ranks[name + side]) for side in (".promised", ""))
        activations = max(rank["bytes"]["activations"] for rank in ranks[name])
        # A quarter of the tokens, and what a mode adds to it: keys of a neighbour, or all, or heads of all tokens.
        holds = promised == counted and (name == "one" or activations <= 0.3 * alone["activations"])
        rows.append([name, *(f"{bytes / 1e6:.1f}" for bytes in (promised, counted, activations)),
                     f"{activations / alone['activations']:.3f}", faults.mark(holds, f"{name}: peak {counted} bytes")])
    table("MB that the fullest rank holds at once", ["mode", "promised", "counted", "of it activations", "to one rank",
                                                     ""], rows)


def balance(names, measured, faults):
    rows = []
    for name in names:
        tiles = [rank["attention_tiles"] for rank in measured[name]]
        # Causal: later tokens see more. Zigzag gives each rank as many early as late ones, Ulysses all tokens.
        is_equal = max(tiles) - min(tiles) <= 1
        rows.append([name, *(f"{t:g}" for t in tiles), f"{max(tiles) * len(tiles) / sum(tiles):.2f}",
                     faults.mark(is_equal == (name in ("zigzag", "ulysses")), f"{name}: tiles {tiles}")])
    table("tiles of scores that ranks 0 to 3 compute in a step; the most to their mean is what the slowest one costs",
          ["mode", "0", "1", "2", "3", "most to mean", ""], rows)


def main():
    work, *names = sys.argv[1:]
    if not names:
        sys.exit("tables.py: no mode is named")
    faults, ranks, measured = Faults(), {}, {}
    for name in ["one", *names]:
        ranks[f"{name}.promised"], _ = read_ranks(f"{work}/{name}.promised.json")
        ranks[name], measured[name] = read_ranks(f"{work}/{name}.json")
    equality(work, "mode", names, faults)
    traffic(names, ranks, faults)
    memory(names, ranks, faults)
    balance(names, measured, faults)
    sys.exit("\n".join(faults.found) or 0)


if __name__ == "__main__":
    main()
