#!/usr/bin/env python3
"""Prints what run.sh has made, beside the formulas of schedules: of the program on one rank (`one`) and of a program
per schedule the losses, parameters and reports, and the local program, whose schedule the compiler simulates.

usage: tables.py FOLDER SCHEDULE...

Ends with status 1 where a number is another than its formula's.

Formulas: P ranks, rank r, M micro-batches, v chunks per rank; F, I, W what a rank takes for the forward pass of a
micro-batch, its backward pass for activations and for weights, B = I + W. GPipe: Huang et al. 2019 (arXiv 1811.06965);
1F1B and interleaved: Narayanan et al. 2021 (arXiv 2104.04473); ZB-H1, ZB-H2, ZB-V: Qi et al. 2023 (arXiv 2401.10241).
"""

import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from common import Faults, equality, read_ranks, table  # noqa: E402

RANKS, MICROBATCHES = 4, 8
BATCH, WIDTH, HIDDEN, BLOCKS, SIZE = 32, 128, 512, 8, 8  # of blocks.mlir in f64

Formula = collections.namedtuple(
    "Formula", "chunks microbatches span idle idle_text live live_text crossings crossings_text")


def formulas(P, M):
    """Of each schedule with F = I = W = 1, which is how the compiler's simulation has it unless told."""
    F, I, W, v = 1, 1, 1, 2
    B = I + W
    group = M // max(1, M // P)
    every, there_and_back = (P - 1, "P-1"), 2 * P - 2

    def formula(idle, text, live, live_text, crossings=every, chunks=1, microbatches=M, span="makespan"):
        return Formula(chunks, microbatches, span, idle, text, [live(r) for r in range(P)], live_text, *crossings)

    return {
        "naive": formula((P - 1) * (F + B), "(P-1)(F+B)", lambda r: 1, "1", microbatches=1),
        "gpipe": formula((P - 1) * (F + B), "(P-1)(F+B)", lambda r: M, "M"),
        "1f1b": formula((P - 1) * (F + B), "(P-1)(F+B)", lambda r: min(M, P - r), "min(M, P-r)"),
        "interleaved": formula((P - 1) * (F + B) / v, "(P-1)(F+B)/v",
                               lambda r: min((v - 1) * group + 2 * (P - 1 - r) + 1, v * M),
                               "min((v-1)G+2(P-1-r)+1, vM) chunks", (v * P - 1, "vP-1"), chunks=v),
        "zb-h1": formula((P - 1) * (F + I - W), "(P-1)(F+I-W)", lambda r: min(P, M), "min(P, M)"),
        "zb-h2": formula((P - 1) * (F + I - 2 * W), "(P-1)(F+I-2W)", lambda r: 2 * P - 1, "2P-1", span="own"),
        "zb-v": formula(0, "0", lambda r: 2 * P, "2P chunks", (there_and_back, "2P-2"), chunks=2, span="own"),
    }


def simulate(local, options):
    """Per rank own idle time, idle time, peak stash and its bytes, and the makespan, of the compiler's simulation."""
    said = subprocess.run(["shoal-opt", local, f"--pipe-simulate={options}", "-o", os.devnull], check=True, text=True,
                          stderr=subprocess.PIPE).stderr
    rows = re.findall(r"^ +\d+ +\S+ +(\S+) +(\S+) +\S+% +(\d+) +(\d+)$", said, re.M)
    makespan = float(re.search(r"makespan (\S+),", said)[1])
    own, idle, live, stash = zip(*((float(a), float(b), int(c), int(d)) for a, b, c, d in rows))
    return own, idle, live, stash, makespan


def bubbles(names, formula, simulated, faults):
    rows = []
    for name in names:
        f, (own, idle, _, _, makespan) = formula[name], simulated[name]
        counted = max(own) if f.span == "own" else max(idle)
        work = f.microbatches * 3  # F + B
        whole = makespan if f.span == "makespan" else work + counted
        expected = f"{f.idle_text} = {f.idle:g} of {work + f.idle:g}: {100 * f.idle / (work + f.idle):.1f}%"
        holds = counted == f.idle and (f.span == "own" or makespan == work + f.idle)
        rows.append([name, f"{f.microbatches}", f"{makespan:g}", f"{100 * max(idle) / makespan:.1f}%",
                     f"{100 * counted / whole:.1f}%", expected + (", own" if f.span == "own" else ""),
                     faults.mark(holds, f"{name}: idle {counted:g}")])
    table("idle time of a rank, simulated with F = I = W = 1, B = 2; own: from its first start to its last end",
          ["schedule", "M", "makespan", "idle", "that of the formula", "formula", ""], rows)


def stashed_bytes(f):
    """What a chunk keeps of a micro-batch from F until B or I, and from I until W: of each block x, relu(x w1) and
    where that is 0; then, instead of the latter, the cotangents of both products."""
    rows, blocks = BATCH // f.microbatches, BLOCKS // (RANKS * f.chunks)
    return blocks * rows * ((WIDTH + HIDDEN) * SIZE + HIDDEN), blocks * rows * 2 * (WIDTH + HIDDEN) * SIZE


def stashes(work, names, formula, simulated, faults):
    rows = []
    for name in names:
        f, (_, _, live, stash, _) = formula[name], simulated[name]
        counted = [rank["bytes"]["activations"] for rank in read_ranks(f"{work}/{name}.json")[0]]
        message = BATCH // f.microbatches * WIDTH * SIZE
        last = 0 if name == "zb-v" else RANKS - 1
        # The rank of the first stage has the batch's x, that of the last its y.
        kept = [bytes + BATCH * WIDTH * SIZE * ((r == 0) + (r == last)) for r, bytes in enumerate(stash)]
        fits = list(live) == f.live
        for r, got in enumerate(counted):
            # What else is there at the fullest moment is what a block computes with, of the stream and of the hidden
            # layer two values each. The first stage's x is in the batch and not stashed, the last stage keeps what it
            # makes for the loss.
            least = kept[r] - (r == 0) * live[r] * message
            most = kept[r] + (r == last) * live[r] * message + 2 * message * (WIDTH + HIDDEN) // WIDTH
            fits = fits and least <= got <= most
        rows.append([name, " ".join(map(str, live)), f.live_text, " ".join(f"{k / 1e3:.0f}" for k in kept),
                     " ".join(f"{c / 1e3:.0f}" for c in counted),
                     faults.mark(fits, f"{name}: live {live}, {counted} bytes")])
    table("micro-batches (or chunks of them) that ranks 0 to 3 keep at most, and kB of activations", [
        "schedule", "simulated", "formula", "with the batch's rows, kB", "counted by the run, kB", ""], rows)


def messages(work, names, formula, faults):
    rows = []
    for name in names:
        f = formula[name]
        promised, counted = (read_ranks(f"{work}/{name}{side}.json")[0] for side in (".promised", ""))
        sent = [sum(c["bytes"] for rank in side for c in rank["collectives"] if c["kind"] == "send")
                for side in (promised, counted)]
        expected = 2 * BATCH * WIDTH * SIZE * f.crossings
        rows.append([name, *map(str, sent), f"2 * batch * width * 8 * ({f.crossings_text}) = {expected}",
                     faults.mark(promised == counted and sent == [expected, expected], f"{name}: sent {sent}")])
    table("bytes of messages in a step, all ranks", ["schedule", "promised", "counted", "formula", ""], rows)


def main():
    work, *names = sys.argv[1:]
    if not names:
        sys.exit("tables.py: no schedule is named")
    faults, formula, simulated = Faults(), formulas(RANKS, MICROBATCHES), {}
    for name in names:
        kept, kept_for_weights = stashed_bytes(formula[name])
        simulated[name] = simulate(f"{work}/{name}.local", f"stash-bytes={kept} weight-stash-bytes={kept_for_weights}")
    equality(work, "schedule", names, faults)
    bubbles(names, formula, simulated, faults)
    stashes(work, names, formula, simulated, faults)
    messages(work, names, formula, faults)
    sys.exit("\n".join(faults.found) or 0)


if __name__ == "__main__":
    main()
