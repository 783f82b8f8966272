#!/usr/bin/env python3
"""Trains a GPT-2 in micro-batches: what it computes is what it computes of whole batches, what it holds is less.

usage: microbatches.py --work FOLDER

Compiled alone: over two ranks the bytes sent in a step and the bytes of gradients do not depend on the number of
micro-batches, and activations and peak fall with it. Run on 1, 2 and 3 ranks, and in pipelines: batches of 5 rows, of which the last has 2, so that
micro-batches are uneven and some have no valid row; losses, gradient norms and evaluations must agree to 1e-9, and counts
with promises, also under ZeRO, and where masks of dropout are drawn again. The compiler refuses more micro-batches than rows.
"""

import json
import os
import sys

import shoal
from metrics import largest_relative_difference, read_evaluations, read_metrics
from tensor_files import tensor, write_npy
from work_parser import WorkParser

TOKENS, VOCAB, BATCH, ROWS = 16, 40, 5, 12
CONFIG = {"model_type": "gpt2", "vocab_size": VOCAB, "n_positions": TOKENS, "n_embd": 24, "n_head": 4, "n_layer": 2,
          "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0}
OPTIONS = ["--optimizer", "adamw", "--lr", "0.01", "--clip-grad-norm", "0.5", "--dtype", "f64"]


def write_model(work, batch):
    with open(f"{work}/config.json", "w") as f:
        json.dump(CONFIG, f)
    path = f"{work}/gpt-{batch}.mlir"
    shoal.call(["shoal-model", "gpt2", "--config", f"{work}/config.json", "--batch", str(batch), "--seq", str(TOKENS), "-o", path],
               shoal.COMPILE_LIMIT)
    return path


def check_promises(work):
    """What a rank of two promises for 8 rows in 1, 2 and 4 parts."""
    model, promises = write_model(work, 8), []
    for parts in (1, 2, 4):
        report = f"{work}/promise-{parts}.json"
        shoal.call(["shoalc", model, "--emit", "exec", "-o", os.devnull, "--mesh", "data=2", *OPTIONS, "--microbatches",
                    str(parts), "--report", report], shoal.COMPILE_LIMIT)
        promises.append(shoal.ranks_of_report(report)[0])
    faults = []
    whole = promises[0]
    for parts, promise in zip((2, 4), promises[1:]):
        if promise["collectives"] != whole["collectives"]:
            faults.append(f"{parts} micro-batches send {promise['collectives']}, one batch {whole['collectives']}")
        for kind in ("params", "grads", "optimizer"):
            if promise["bytes"][kind] != whole["bytes"][kind]:
                faults.append(f"{parts} micro-batches: {kind} {promise['bytes'][kind]}, of one batch {whole['bytes'][kind]}")
    for before, after in zip(promises, promises[1:]):
        if after["bytes"]["activations"] > 0.6 * before["bytes"]["activations"]:
            faults.append(f"twice as many micro-batches hold activations of {after['bytes']['activations']} bytes, "
                          f"before {before['bytes']['activations']}")
        if after["bytes"]["peak"] >= before["bytes"]["peak"]:
            faults.append(f"twice as many micro-batches have a peak of {after['bytes']['peak']} bytes, before {before['bytes']['peak']}")
    return faults


def check_pipeline(work):
    """Stages reduce their gradients over data once a step, too, whatever the number of micro-batches."""
    model, sums = write_model(work, 8), []
    for parts in (1, 2, 4):
        report = f"{work}/pipeline-{parts}.json"
        shoal.call(["shoalc", model, "--emit", "exec", "-o", os.devnull, "--mesh", "data=2,pipe=2", *OPTIONS, "--microbatches",
                    str(parts), "--report", report], shoal.COMPILE_LIMIT)
        sums.append([[each for each in rank["collectives"] if "data" in each["axes"]] for rank in shoal.ranks_of_report(report)])
    if not all(sums[0]) or sums[1:] != sums[:1] * 2:
        return [f"over data 1, 2 and 4 micro-batches of a pipeline send {sums}"]
    return []


def train(work, model, mesh, parts, *options):
    base = f"{work}/{mesh}-{parts}"
    program = shoal.shoalc(model, base, *(["--mesh", mesh] if mesh != "one" else []), *OPTIONS, *options,
                           "--microbatches", str(parts), "--report", f"{base}.promise.json")
    data = [a for name in ("input_ids", "labels") for flag in ("--data", "--eval-data") for a in (flag, f"{name}={work}/{name}.npy")]
    shoal.run(shoal.ranks_of(mesh), program, *data, "--epochs", "2", "--shuffle", "--seed", "3", "--eval-every", "3", "--metrics", f"{base}.jsonl",
              "--report", f"{base}.counted.json")
    promised, counted = (shoal.ranks_of_report(f"{base}.{side}.json") for side in ("promise", "counted"))
    if promised != counted:
        sys.exit(f"{base}: promised {promised}, counted {counted}")
    steps, evaluations = read_metrics(f"{base}.jsonl"), read_evaluations(f"{base}.jsonl")
    return {"loss": [r["loss"] for r in steps], "grad_norm": [r["grad_norm"] for r in steps], "eval_loss": [r["eval_loss"] for r in evaluations]}


def main():
    args = WorkParser(__doc__).parse_args()
    ids = [(7 * i + i // 5) % VOCAB for i in range(ROWS * TOKENS)]
    # Unequal numbers of ignored targets in rows and micro-batches.
    labels = [-100 if (i // TOKENS) % 3 == 1 or i % 11 == 0 else v for i, v in enumerate(ids[1:] + ids[:1])]
    for name, values in ("input_ids", ids), ("labels", labels):
        write_npy(f"{args.work}/{name}.npy", tensor("i64", (ROWS, TOKENS), values))
    faults = check_promises(args.work) + check_pipeline(args.work)
    model = write_model(args.work, BATCH)
    whole = train(args.work, model, "one", 1)
    for mesh, parts, *options in (("one", 3), ("data=2", 2), ("data=2", 5), ("data=2", 3, "--zero", "2"),
                                  ("data=3", 2, "--zero", "3"), ("data=2", 2, "--zero", "3", "--recompute", "full"),
                                  ("pipe=3", 4, "--pipeline-schedule", "zb-h1", "--recompute", "full"),
                                  ("data=2,pipe=2", 3, "--zero", "1", "--pipeline-schedule", "zb-v")):
        for name, values in train(args.work, model, mesh, parts, *options).items():
            difference = largest_relative_difference(values, whole[name])
            if not whole[name] or not difference <= 1e-9:
                faults.append(f"{mesh}, {parts} micro-batches, {' '.join(options)}: {name} {values}, whole batches {whole[name]}")
    said = shoal.call(["shoalc", model, "-o", os.devnull, "--emit", "global", "--microbatches", "6"], shoal.COMPILE_LIMIT, expect=2)
    if "has batches of 5 rows, too few for 6 micro-batches" not in said:
        faults.append(f"6 micro-batches of 5 rows: {said}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
