#!/usr/bin/env python3
"""Holds what GPT-2 and Llama send in a step against the formulas of tensor and sequence parallelism, and of ZeRO.

usage: transformer_traffic.py --work FOLDER --pmpi LIBRARY.so

Every model is run with one block and with two, so that what a block sends is told from what stands around the blocks: the
embedding, the head, the loss, gradients. Three witnesses must agree on each step: the report of shoalc, that of the program,
and a library that wraps MPI's profiling interface and counts below both.
"""

import collections
import json
import math
import os
import re
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

STEPS = 2
ROWS, TOKENS, WIDTH, VOCAB, INNER, HEADS = 4, 12, 24, 32, 40, 4
KV_HEADS = {"gpt2": 4, "llama": 2}
KINDS = {"MPI_Iallreduce": "all_reduce", "MPI_Iallgather": "all_gather", "MPI_Ireduce_scatter_block": "reduce_scatter",
         "MPI_Ialltoall": "all_to_all", "MPI_Isend": "collective_permute"}

CONFIGS = {
    "gpt2": {"model_type": "gpt2", "vocab_size": VOCAB, "n_positions": TOKENS, "n_embd": WIDTH, "n_head": HEADS,
             "n_inner": INNER},
    "llama": {"model_type": "llama", "vocab_size": VOCAB, "max_position_embeddings": TOKENS, "hidden_size": WIDTH,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS["llama"], "intermediate_size": INNER},
}
LAYERS = {"gpt2": "n_layer", "llama": "num_hidden_layers"}

# By plan: mesh, options.
PLANS = {
    "TP": ({"tensor": 2}, ["--tensor-parallel"]),
    "SP": ({"tensor": 2}, ["--tensor-parallel", "--sequence-parallel"]),
    "SP kept": ({"tensor": 2}, ["--tensor-parallel", "--sequence-parallel", "--keep-gathered"]),
    "DP x TP": ({"data": 2, "tensor": 2}, ["--tensor-parallel"]),
    "DP x SP": ({"data": 2, "tensor": 2}, ["--tensor-parallel", "--sequence-parallel"]),
    "SP clipped": ({"tensor": 2}, ["--tensor-parallel", "--sequence-parallel", "--clip-grad-norm", "1"]),
    # Micro-batches repeat what a block sends, each for its rows, and reduce gradients, loss and counts once.
    "DP in 2": ({"data": 2}, ["--microbatches", "2"]),
    "DP x TP in 2": ({"data": 2, "tensor": 2}, ["--tensor-parallel", "--microbatches", "2"]),
    "DP x SP in 2": ({"data": 2, "tensor": 2}, ["--tensor-parallel", "--sequence-parallel", "--microbatches", "2"]),
    # Fewer key/value heads than ranks: each is held by two.
    "GQA": ({"tensor": 4}, ["--tensor-parallel"]),
    "DP x GQA clipped": ({"data": 2, "tensor": 4}, ["--tensor-parallel", "--clip-grad-norm", "1"]),
    "ZeRO-1": ({"data": 2}, ["--zero", "1"]),
    "ZeRO-3 clipped": ({"data": 2}, ["--zero", "3", "--clip-grad-norm", "1"]),
    # Buckets that cut tensors: ceil(bytes / bucket) of each group.
    "ZeRO-1 in buckets": ({"data": 2}, ["--zero", "1", "--bucket-mb", "0.01"]),
    "ZeRO-2 in buckets": ({"data": 2}, ["--zero", "2", "--bucket-mb", "0.003"]),
    "ZeRO-3 in buckets": ({"data": 2}, ["--zero", "3", "--bucket-mb", "0.001"]),
    "DP x GQA x SP clipped": ({"data": 2, "tensor": 4}, ["--tensor-parallel", "--sequence-parallel", "--clip-grad-norm", "1"]),
}
PLANS_OF = {"gpt2": ("TP", "SP", "SP kept", "DP x TP", "DP x SP", "SP clipped", "ZeRO-1", "ZeRO-3 clipped",
                      "ZeRO-1 in buckets", "ZeRO-3 in buckets", "DP in 2", "DP x SP in 2"),
            "llama": ("TP", "SP kept", "DP x SP", "GQA", "DP x GQA clipped", "DP x GQA x SP clipped",
                      "ZeRO-3 clipped", "ZeRO-2 in buckets", "ZeRO-3 in buckets", "DP x TP in 2")}


def parameters(family, ranks, kv_ranks, by_sequence=False):
    """Of a block and of what stands around the blocks: a rank's parameters in all, and those whose gradients are sums
    over positions, by where these lie: of norms, and of biases that are added to the residual stream. The table of positions
    lies `by_sequence` as the stream does."""
    kv, inner = KV_HEADS[family] * WIDTH // HEADS // kv_ranks, INNER // ranks
    if family == "gpt2":
        block = (WIDTH + 1) * (WIDTH // ranks + 2 * kv) + WIDTH * WIDTH // ranks
        block += 2 * WIDTH * inner + inner
        return {"block": block + 6 * WIDTH, "norms": 4 * WIDTH, "biases": 2 * WIDTH, "final norm": 2 * WIDTH,
                "around": VOCAB // ranks * WIDTH + TOKENS // (ranks if by_sequence else 1) * WIDTH + 2 * WIDTH}
    block = 2 * WIDTH * (WIDTH // ranks + kv) + 3 * WIDTH * inner
    return {"block": block + 2 * WIDTH, "norms": 2 * WIDTH, "biases": 0, "final norm": WIDTH, "keys": WIDTH * kv,
            "around": 2 * VOCAB // ranks * WIDTH + WIDTH}


def bucket_sizes(elements, bucket, ranks=2, size=4):
    """The buckets of a group of f32 gradients: ceil(bytes / bucket) of them, equal but for the last where they can be
    multiples of 64 bytes times the ranks, or of the ranks, and the last padded to divide."""
    count = -(-elements * size // bucket)
    begins = [i * elements // count // ranks * ranks for i in range(count)]
    for unit in ranks, ranks * 64 // size:
        step = -(-(-(-elements // count)) // unit) * unit
        if (count - 1) * step < elements:
            begins = [i * step for i in range(count)]
    return [-(-(end - begin) // ranks) * ranks for begin, end in zip(begins, begins[1:] + [elements])]


def expected_zero(family, stage, clips, layers, bucket):
    """The same under ZeRO over two ranks: of each bucket of gradients a reduce-scatter, and an all-gather of what is new
    (stages 1 and 2), or of what each use reads (stage 3): forward all, backward what its products and norms read."""
    sent = collections.Counter()
    whole = parameters(family, 1, 1)

    def add(times, kind, elements, size=4):
        sent[kind, "data", -(-elements // 2) * 2 if elements > 1 else 1, size] += times

    add(1 + clips, "all_reduce", 1)  # the loss; the squares of all shards
    add(1, "all_reduce", 1, size=8)  # how many labels count
    if stage < 3:
        for kind in "reduce_scatter", "all_gather":
            for elements in bucket_sizes(layers * whole["block"] + whole["around"], bucket):
                add(1, kind, elements)
        return sent
    # Elements of a group: times that forward reads it, whether backward does.
    table = VOCAB * WIDTH
    if family == "gpt2":
        biases = WIDTH + 2 * KV_HEADS[family] * WIDTH // HEADS + INNER + 2 * WIDTH + 2 * WIDTH
        buckets = [(whole["block"] - biases, 1, True), (biases, 1, False)] * layers
        # The table is the head, too; positions; the last norm.
        buckets += [(table, 2, True), (TOKENS * WIDTH, 1, False), (WIDTH, 1, True), (WIDTH, 1, False)]
    else:
        buckets = [(whole["block"], 1, True)] * layers + [(table, 1, False), (table + WIDTH, 1, True)]  # the head with its norm
    for group, forward, backward in buckets:
        for elements in bucket_sizes(group, bucket):
            add(1, "reduce_scatter", elements)
            add(forward + backward, "all_gather", elements)
    return sent


def expected(family, plan, layers):
    """What a rank sends in a step: {(kind, axis, elements of the whole buffer, bytes of one): times}."""
    mesh, options = PLANS[plan]
    if "--zero" in options:
        megabytes = float(options[options.index("--bucket-mb") + 1]) if "--bucket-mb" in options else 25
        return expected_zero(family, int(options[1]), "--clip-grad-norm" in options, layers, int(megabytes * 2**20))
    by_sequence, keeps = "--sequence-parallel" in options, "--keep-gathered" in options
    parts = int(options[options.index("--microbatches") + 1]) if "--microbatches" in options else 1
    rows, ranks = ROWS // mesh.get("data", 1) // parts, mesh.get("tensor", 1)
    kv_ranks = min(ranks, KV_HEADS[family])
    sent = collections.Counter()

    def add(times, kind, elements, axis="tensor", size=4):
        if axis in mesh or ranks > 1:
            sent[kind, axis, elements, size] += times

    # The residual stream: a block forward and backward; and the embedding forward, the head backward.
    stream, per_rank = rows * TOKENS * WIDTH, parameters(family, ranks, kv_ranks, by_sequence)
    if by_sequence:
        add(parts * (layers * 4 + 2), "reduce_scatter", stream)
        # The head gathers as the halves of a block do; the embedding's gradient reads the whole sequence.
        add(parts * (layers * (4 if keeps else 6) + (2 if keeps else 3)), "all_gather", stream)
    else:
        add(parts * (layers * 4 + 2), "all_reduce", stream)
    # The loss over a sharded vocabulary: maximum, sum of exponentials, the target's logit.
    add(3 * parts, "all_reduce", rows * TOKENS)
    # Gradients that are sums over a shard of the sequence are reduced in one bucket.
    if by_sequence:
        add(1, "all_reduce", layers * (per_rank["norms"] + per_rank["biases"]) + per_rank["final norm"])
    # Those of keys and values, where ranks that hold the same heads have other queries of theirs.
    if kv_ranks < ranks:
        add(2 * layers, "all_reduce", per_rank["keys"], axis="tensor.1")
    # The norm: squares of what ranks hold parts of.
    if "--clip-grad-norm" in options:
        add(1, "all_reduce", 1)
        if kv_ranks < ranks:
            add(1, "all_reduce", 1, axis="tensor.0")
    if "data" in mesh:
        add(1, "all_reduce", layers * per_rank["block"] + per_rank["around"], axis="data")
        add(1, "all_reduce", 1, axis="data")  # the loss
        add(1, "all_reduce", 1, axis="data", size=8)  # how many labels count
    return sent


def bytes_sent(kind, elements, size, ranks):
    """By one rank on a ring, for a buffer of so many elements."""
    if kind == "collective_permute":
        return elements * size
    return (2 if kind == "all_reduce" else 1) * (ranks - 1) * -(-elements // ranks) * size


def run(args, family, layers, plan):
    """What ranks send in a step, seen below MPI's interface; promise and count must be equal."""
    base = f"{args.work}/{family}-{layers}-{plan.replace(' ', '')}"
    return [sent for _, sent in measure(args, base, family, layers, *PLANS[plan])]


def measure(args, base, family, layers, mesh, options, rows=ROWS, config=None, tokens=TOKENS):
    """Of a model as CONFIGS has it, or by `config`. Per rank its report, promise and count being equal, and what it sends in a step, seen below MPI's interface, as is the size of
    the memory that all of this lies in: the peak."""
    with open(f"{base}.json", "w") as f:
        json.dump(config or CONFIGS[family] | {LAYERS[family]: layers}, f)
    shoal.call(["shoal-model", family, "--config", f"{base}.json", "--batch", str(rows), "--seq", str(tokens),
                "--dropout", "off", "-o", f"{base}.mlir"], shoal.COMPILE_LIMIT)
    program = shoal.shoalc(f"{base}.mlir", base, "--mesh", ",".join(f"{a}={n}" for a, n in mesh.items()), "--optimizer",
                           "adamw", "--lr", "0.001", "--report", f"{base}.promise.json", *options)
    data = [a for name in ("input_ids", "labels") for a in ("--data", f"{name}={args.work}/{name}.npy")]
    shoal.run(math.prod(mesh.values()), program, *data, "--steps", str(STEPS), "--local-comm", "mpi", "--report", f"{base}.counted.json",
              env={"LD_PRELOAD": args.pmpi, "SHOAL_PMPI_OUT": f"{base}.pmpi"})
    promised, counted = (shoal.ranks_of_report(f"{base}.{side}.json") for side in ("promise", "counted"))
    if promised != counted:
        sys.exit(f"{base}: promised {promised}, counted {counted}")
    for entry in promised:
        with open(f"{base}.pmpi.{entry['rank']}") as f:
            seen = json.load(f)["arena_bytes"]
        if seen != entry["bytes"]["peak"]:
            sys.exit(f"{base}: rank {entry['rank']} promises a peak of {entry['bytes']['peak']} bytes, has asked for {seen}")
    return [(entry, seen_below(f"{base}.pmpi.{entry['rank']}", entry)) for entry in promised]


def tell_differences(name, sent, want):
    """Prints which of the ranks of `sent` do not send what is wanted of each, and says whether any does not."""
    for rank, mine in enumerate(sent):
        if mine != want:
            print(f"{name}: rank {rank} sends {dict(mine - want)} that it should not, and lacks {dict(want - mine)}")
    return any(mine != want for mine in sent)


def write_rows(work, rows=ROWS, tokens=TOKENS):
    """The data of a step."""
    os.makedirs(work, exist_ok=True)
    ids = [(7 * i + 3) % VOCAB for i in range(rows * tokens)]
    for name, values in ("input_ids", ids), ("labels", ids[1:] + ids[:1]):
        write_npy(f"{work}/{name}.npy", tensor("i64", (rows, tokens), values))


def seen_below(path, promised):
    """The calls of one rank in a step, as `expected` has them; they must add up to what its report promises."""
    with open(path) as f:
        calls = [c for c in json.load(f)["calls"] if c["comm"].startswith("shoal stream")]
    sent, totals = collections.Counter(), collections.Counter()
    for call in calls:
        axis = re.search(r"{(.*)}", call["comm"])[1].replace("tensor.0,tensor.1", "tensor")  # both parts of a split axis
        kind, times = KINDS[call["call"]], call["count"] // STEPS
        elements = call["elements"] * (1 if kind in ("all_reduce", "collective_permute") else call["ranks"])
        if call["count"] % STEPS:
            sys.exit(f"{path}: not the same number of times in each of {STEPS} steps: {call}")
        sent[kind, axis, elements, call["element_bytes"]] += times
        totals[kind, axis, "count"] += times
        totals[kind, axis, "bytes"] += times * bytes_sent(kind, elements, call["element_bytes"], call["ranks"])
    # Messages between pairs are on a communicator of all ranks.
    reported = {(c["kind"], "*" if c["kind"] == "collective_permute" else ",".join(c["axes"]), what): c[what]
                for c in promised["collectives"] for what in ("count", "bytes")}
    if totals != reported:
        sys.exit(f"{path}: MPI saw {dict(totals)}, promised {reported}")
    return sent


def main():
    args = WorkParser(__doc__, "--pmpi").parse_args()
    write_rows(args.work)
    failed = False
    for family in CONFIGS:
        for plan in PLANS_OF[family]:
            for layers in (1, 2):
                want = expected(family, plan, layers)
                failed |= tell_differences(f"{family}, {layers} blocks, {plan}", run(args, family, layers, plan), want)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
