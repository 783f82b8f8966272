#!/usr/bin/env python3
"""Holds the bytes of data parallelism and ZeRO, sent and kept, against their formulas.

usage: zero_traffic.py --work FOLDER --pmpi LIBRARY.so [--full]
       zero_traffic.py --work FOLDER --published SOURCE_FOLDER
       zero_traffic.py --work FOLDER --peak [--full]

GPT-2 and Llama of two blocks over 2 and 4 ranks, in f32 and in bf16 with gradients of 2 and of 4 bytes, in 1 and 4
micro-batches, alone and with tensor and sequence parallelism, in one bucket and in many that cut tensors, which send
the same bytes. What is sent, and the peak, are told by three witnesses, which must agree: the report of shoalc, that of
the program, and a library below MPI's profiling interface, which counts what MPI is given, and sees how much memory was
asked for where it lies. Bytes sent by kind, and bytes of parameters, gradients and optimizer, each by itself, are those
of the formulas, exactly; a peak holds activations, too, for which there is no formula: what it gains from stage to
stage is zero_peaks.py's. With --published a model of 7.5 billion parameters is compiled for 64 ranks by the commands that
README gives, and its model states are those that README and the authors of ZeRO print (Rajbhandari et al., 2020, figure 1). --peak is GPT-2 of 124 million
parameters over 4 ranks: under ZeRO-3 a rank's peak is less than half of DDP's, promised, and with --full counted.
--full runs all combinations in one bucket, and of many buckets some in which any two choices meet, as they do in all
runs without it.
"""

import collections
import itertools
import json
import os
import re
import shlex
import sys

import shoal
from pairwise import covering_pairs
from tensor_files import tensor, write_npy
from transformer_traffic import HEADS, INNER, KV_HEADS, VOCAB, WIDTH, measure, parameters, write_rows
from work_parser import WorkParser

ROWS, LAYERS = 8, 2
# Bytes of a parameter as it is computed with, of a gradient's element, and of what the optimizer keeps per parameter.
DTYPES = {"f32": (4, 4, 8, []), "bf16": (2, 4, 12, ["--dtype", "bf16", "--grad-dtype", "f32"]),
          "bf16 gradients": (2, 2, 12, ["--dtype", "bf16", "--grad-dtype", "bf16"])}
# Small ones cut tensors, under ZeRO-3 in each block.
BUCKETS = {"one bucket": 25, "small buckets": 0.004}
TENSOR = {"alone": (1, []), "tensor and sequence parallel": (2, ["--tensor-parallel", "--sequence-parallel"])}
CHOICES = {"family": ("gpt2", "llama"), "zero": (0, 1, 2, 3), "dtype": tuple(DTYPES), "microbatches": (1, 4),
           "data": (2, 4), "tensor": tuple(TENSOR), "buckets": tuple(BUCKETS)}


def unread_of(family, tensor):
    """Elements of a block that backward does not read: GPT-2's biases and the shifts of its norms."""
    kv = KV_HEADS[family] * WIDTH // HEADS // min(tensor, KV_HEADS[family])
    return WIDTH // tensor + 2 * kv + INNER // tensor + 2 * WIDTH + 2 * WIDTH if family == "gpt2" else 0


def sizes(family, tensor, layers=LAYERS):
    """A rank's parameters, and how many elements of them ZeRO-3 gathers for a micro-batch."""
    own = parameters(family, tensor, min(tensor, KV_HEADS[family]), by_sequence=tensor > 1)
    count = layers * own["block"] + own["around"]
    table = VOCAB // tensor * WIDTH
    if family == "llama":
        # Forward everything, backward all but the table of the embedding.
        return count, 2 * count - table
    # A table for embedding and head is used twice forward. Backward reads the head's use of it, matrices and scales of norms.
    return count, count + table + layers * (own["block"] - unread_of(family, tensor)) + table + WIDTH


def late_of(plan, layers=LAYERS):
    """Gradients of norms and of biases of the stream are sums over the sequence, too, whole only behind the micro-batches."""
    own = parameters(plan["family"], 1, 1)
    return layers * (own["norms"] + own["biases"]) + own["final norm"] if TENSOR[plan["tensor"]][0] > 1 else 0


def sent_over_data(plan):
    """Bytes that a rank sends over axis data in a step, by kind (ZeRO paper, section 7)."""
    ranks, times = plan["data"], plan["microbatches"]
    of_parameter, of_gradient, _, _ = DTYPES[plan["dtype"]]
    tensor = TENSOR[plan["tensor"]][0]
    count, gathers = sizes(plan["family"], tensor)
    late = late_of(plan)

    def ring(elements, size):
        return (ranks - 1) * -(-elements // ranks) * size

    sent = collections.Counter({"all_reduce": 2 * ring(1, 4) + 2 * ring(1, 8)})  # the loss, how many labels count
    if plan["zero"] == 0:
        sent["all_reduce"] += 2 * ring(count, of_gradient)
    else:
        sent["reduce_scatter"] = ring(count - late, of_gradient) * (times if plan["zero"] > 1 else 1) + ring(late, of_gradient)
        sent["all_gather"] = times * ring(gathers, of_parameter) if plan["zero"] == 3 else ring(count, of_parameter)
    return sent


def states(zero, dtype, count, ranks):
    """Bytes of model states on a rank (ZeRO paper, section 5)."""
    of_parameter, of_gradient, of_optimizer, _ = DTYPES[dtype]
    parts = {"optimizer": of_optimizer, "grads": of_gradient, "params": of_parameter}  # in the order in which stages shard them
    return {part: size * count // (ranks if i < zero else 1) for i, (part, size) in enumerate(parts.items())}


def find_wrong_states(entry, wanted):
    return "".join(f"; {entry['bytes'][part]} bytes of {part}, expected {size}" for part, size in wanted.items()
                   if entry["bytes"][part] != size)


def all_plans(choices):
    """At most 4 ranks; of a micro-batch some of them have no row."""
    plans = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    return [plan for plan in plans if plan["data"] * TENSOR[plan["tensor"]][0] <= 4]


def words_of(plan):
    stage = f" --zero {plan['zero']}" if "zero" in plan else ""
    return (f"{plan['family']}, {plan['dtype']}, data={plan['data']} {plan['tensor']}{stage} --microbatches "
            f"{plan['microbatches']} in {plan['buckets']}")


def options_of(plan):
    return ["--zero", str(plan["zero"]), "--microbatches", str(plan["microbatches"]), *DTYPES[plan["dtype"]][-1]]


def check(args, plan, number):
    """The faults of a plan."""
    tensor, options = TENSOR[plan["tensor"]]
    mesh = {"data": plan["data"]} | ({"tensor": tensor} if tensor > 1 else {})
    faults, of_gradient, bucket = [], DTYPES[plan["dtype"]][1], int(BUCKETS[plan["buckets"]] * 2**20)
    wanted = sent_over_data(plan)
    count, _ = sizes(plan["family"], tensor)
    kept = states(plan["zero"], plan["dtype"], count, plan["data"])
    options = [*options_of(plan), *options, "--bucket-mb", str(BUCKETS[plan["buckets"]])]
    for entry, sent in measure(args, f"{args.work}/{number}", plan["family"], LAYERS, mesh, options, ROWS):
        got = collections.Counter()
        for (kind, axis, elements, size), times in sent.items():
            if axis == "data":
                share = -(-elements // plan["data"]) * size * (plan["data"] - 1)
                got[kind] += times * share * (2 if kind == "all_reduce" else 1)
        if got != wanted:
            faults.append(f"{plan}: rank {entry['rank']} sends {dict(got)} over data, expected {dict(wanted)}")
        # Under ZeRO-1 a bucket's gradients may be gone before those of the last, the norms', are whole. Of one micro-batch
        # they are gone when they are reduced: what is there is at most one bucket that is filled and two that are sent.
        least = most = kept["grads"]
        if plan["zero"] == 1:
            least -= of_gradient * late_of(plan)
            if plan["microbatches"] == 1 and plan["buckets"] != "one bucket":
                least, most = bucket, 3 * (bucket + of_gradient * 3 * WIDTH * WIDTH)
        if wrong := find_wrong_states(entry, kept | {"grads": max(least, min(most, entry["bytes"]["grads"]))}):
            faults.append(f"{plan}: rank {entry['rank']} keeps{wrong}")
    if not faults:
        sent = ", ".join(f"{kind} {size}" for kind, size in wanted.items())
        held = ", ".join(f"{kind} {entry['bytes'][kind]}" for kind in (*kept, "peak"))
        print(f"{words_of(plan)}: sent {sent}; kept {held}", flush=True)
    return faults


def cover(plans):
    return covering_pairs(plans, lambda plan: plan.values())


def published(args):
    """The faults of what the compiler promises for 7.5 billion parameters over 64 ranks."""
    root = os.path.abspath(args.published)
    with open(f"{root}/README.md") as f:
        page = f.read()
    write, compile_model = map(shlex.split, re.search(r"^```sh\n(shoal-model .*gpt-7.5b.*\nshoalc .*)\n```", page, re.M)[1].split("\n"))
    path = f"{root}/{write[write.index('--config') + 1]}"
    write[write.index("--config") + 1] = path
    with open(path) as f:
        config = json.load(f)
    ranks, layers, width = 64, config["n_layer"], config["n_embd"]
    count = layers * (12 * width * width + 13 * width) + (config["vocab_size"] + config["n_positions"]) * width + 2 * width
    zero_at, dtype_at, report_at = (compile_model.index(flag) + 1 for flag in ("--zero", "--grad-dtype", "--report"))
    os.chdir(args.work)
    shoal.call(write, shoal.COMPILE_LIMIT)
    faults = []
    for dtype, paper in ("bf16 gradients", (120, 31.4, 16.6, 1.9)), ("bf16", (135, 46.4, 16.9, 2.1)):
        compile_model[dtype_at] = {"bf16 gradients": "bf16", "bf16": "f32"}[dtype]
        for zero, gigabytes in enumerate(paper):
            compile_model[zero_at] = str(zero)
            shoal.call(compile_model, shoal.COMPILE_LIMIT)
            for entry in shoal.ranks_of_report(compile_model[report_at]):
                wanted = states(zero, dtype, count, ranks)
                wrong = find_wrong_states(entry, wanted)
                if wrong or round(sum(wanted.values()) / 1e9, 1) != gigabytes:
                    faults.append(f"--zero {zero} in {dtype}: {gigabytes} GB are published{wrong}")
                    break
    if "are 120, 31.4, 16.6 and 1.9 GB under stages 0 to 3:" not in " ".join(page.split()):
        faults.append("README gives other numbers for bf16 with gradients in bf16")
    return faults


def compare_peaks(args):
    """The faults of GPT-2 of 124 million parameters under DDP and ZeRO-3."""
    ranks, tokens = 4, 64
    with open(f"{args.work}/124m.json", "w") as f:
        json.dump({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}, f)
    model = f"{args.work}/124m.mlir"
    shoal.call(["shoal-model", "gpt2", "--config", f"{args.work}/124m.json", "--batch", str(ranks), "--seq", str(tokens),
                "--dropout", "off", "-o", model], shoal.COMPILE_LIMIT)
    data = []
    for name in "input_ids", "labels":
        write_npy(f"{args.work}/124m.{name}.npy", tensor("i64", (ranks, tokens), range(ranks * tokens)))
        data += ["--data", f"{name}={args.work}/124m.{name}.npy"]
    faults, peaks = [], {}
    for zero in 0, 3:
        program, report = f"{args.work}/124m.{zero}", f"{args.work}/124m.{zero}.json"
        shoal.shoalc(model, program, "--mesh", f"data={ranks}", "--optimizer", "adamw", "--lr", "0.001", "--zero", str(zero),
                     "--report", report, *([] if args.full else ["--emit", "exec"]))
        promised = shoal.ranks_of_report(report)
        faults += [f"124M, --zero {zero}, rank {entry['rank']}{wrong}" for entry in promised
                   if (wrong := find_wrong_states(entry, states(zero, "f32", 124_439_808, ranks)))]
        peaks[zero] = max(entry["bytes"]["peak"] for entry in promised)
        if args.full:
            shoal.run(ranks, program, *data, "--steps", "1", "--report", f"{report}.counted")
            if shoal.ranks_of_report(f"{report}.counted") != promised:
                faults.append(f"124M, --zero {zero}: {report} promises something else than {report}.counted counts")
    print(f"peaks of GPT-2 124M: {peaks[0]} bytes under DDP, {peaks[3]} under ZeRO-3")
    if peaks[3] > peaks[0] / 2:
        faults.append(f"124M: a peak of {peaks[3]} bytes under ZeRO-3, expected less than half of {peaks[0]}")
    return faults


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--pmpi")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--published", metavar="SOURCE_FOLDER")
    parser.add_argument("--peak", action="store_true")
    args = parser.parse_args()
    write_rows(args.work, ROWS)
    if args.published:
        faults = published(args)
    elif args.peak:
        faults = compare_peaks(args)
    else:
        plans = all_plans(CHOICES)
        if args.full:
            some = cover([plan for plan in plans if plan["buckets"] != "one bucket"])
            plans = [plan for plan in plans if plan["buckets"] == "one bucket" or plan in some]
        else:
            plans = cover(plans)
        faults = [fault for number, plan in enumerate(plans) for fault in check(args, plan, number)]
        print(f"{len(plans)} plans")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
