#!/usr/bin/env python3
"""Compiles small transformers whose buckets cut tensors, and holds what is copied for that against what the buckets say.

usage: cut_buckets.py --work FOLDER

Which ranges of which tensors a bucket holds is read off the probes of its gradient. Neighbours of which more than half is one
tensor share a storage, any other bucket has its own; a gradient lies in the storage that has most of it, and exactly what is
left of it is copied. Sums over micro-batches share one storage, so nothing is copied. Parameters that are gathered for the step
are copied, for each pass, only where a run of buckets ends, 16 times as large as the tensor that is cut there: so at most an
eighth of their bytes. A schedule of the learning rate changes no bucket.
"""

import collections
import json
import math
import re
import sys

import shoal
from arena import BYTES
from work_parser import WorkParser

GPT2 = {"model_type": "gpt2", "vocab_size": 500, "n_positions": 32, "n_embd": 32, "n_layer": 3, "n_head": 4}
LLAMA = {"model_type": "llama", "vocab_size": 300, "max_position_embeddings": 32, "hidden_size": 32, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 80}
BUCKETS = (1 << 13, 1 << 15, 3 << 14)  # a part of most matrices; a few of them; most of a block
BF16 = ["--dtype", "bf16", "--grad-dtype", "f32"]
SCHEDULE = ["--lr-schedule", "cosine", "--warmup-steps", "2", "--decay-steps", "9"]

PROBE = re.compile(r'exec\.probe grad "([^"]*)".* bucket = <\[(.*)\]> : <')
MEMBER = re.compile(r'<"([^"]*)", tensor<(?:([\dx]+)x)?(\w+)>(?:\[(\d+):(\d+)\])?')
COPY = re.compile(r'exec\.copy .*\{.*name = "(\w+)".*\} : <(?:([\dx]+)x)?(\w+)>')


def elements_of(sizes):
    return math.prod(map(int, sizes.split("x"))) if sizes else 1


def buckets_of(text):
    """Of each bucket the ranges that it holds: tensor, begin, end."""
    buckets = []
    for _, members in PROBE.findall(text):
        buckets.append([(name, int(begin or 0), int(end) if end else elements_of(sizes))
                        for name, sizes, _, begin, end in MEMBER.findall(members)])
    return buckets


def left_over(buckets):
    """Elements of gradients that lie in another storage than most of their tensor, and how many tensors are cut."""
    parts = collections.defaultdict(list)  # of each tensor: begin, elements, whether it is most of the bucket
    for bucket in buckets:
        size = sum(end - begin for _, begin, end in bucket)
        for name, begin, end in bucket:
            parts[name].append((begin, end - begin, 2 * (end - begin) > size))
    left = 0
    for pieces in parts.values():
        pieces.sort()
        storages, was_most = [], False
        for _, size, is_most in pieces:
            if is_most and was_most:
                storages[-1] += size
            else:
                storages.append(size)
            was_most = is_most
        left += sum(storages) - max(storages)
    return left, sum(len(pieces) > 1 for pieces in parts.values())


def copied(text):
    """Bytes that are copied, by the name of the row."""
    copies = collections.Counter()
    for name, sizes, element in COPY.findall(text):
        copies[name] += elements_of(sizes) * BYTES[element]
    return copies


def check(work, family, bucket, zero, options):
    """The faults of a plan, how many tensors are cut, and bytes of parameters that are copied."""
    def compile_step(*more):
        shoal.shoalc(f"{work}/{family}.mlir", f"{work}/step.exec", "--emit", "exec", "--mesh", "data=4", "--optimizer", "adamw",
                     "--bucket-mb", str(bucket / 2**20), "--zero", str(zero), *options, *more)
        with open(f"{work}/step.exec") as f:
            text = f.read()
        text = text[text.index("exec.program"):]
        return text[: text.index("\n  }")]

    text, faults = compile_step(), []
    buckets = buckets_of(text)
    left, cut = left_over(buckets)
    got, parameters = copied(text), sum(end - begin for bucket_ in buckets for _, begin, end in bucket_)
    if got["pack"] != (0 if "--microbatches" in options else 4 * left) or got.keys() - {"pack", "unpack"}:
        faults.append(f"copies {dict(got)}, expected {4 * left} bytes of gradients")
    if got["unpack"] > (2 * parameters / 8 if options == BF16 else 0):
        faults.append(f"copies {got['unpack']} bytes of {parameters} parameters")
    if buckets_of(compile_step(*SCHEDULE)) != buckets:
        faults.append("the schedule of the learning rate changes what lies in which bucket")
    words = f"{family}, buckets of {bucket} bytes, --zero {zero} {' '.join(options)}"
    print(f"{words}: {len(buckets)} buckets cut {cut} tensors, copied {dict(got)}", flush=True)
    return [f"{words}: {fault}" for fault in faults], cut, got["unpack"]


def main():
    args = WorkParser(__doc__).parse_args()
    faults = []
    for family, config in ("gpt2", GPT2), ("llama", LLAMA):
        with open(f"{args.work}/{family}.json", "w") as f:
            json.dump(config, f)
        shoal.call(["shoal-model", family, "--config", f"{args.work}/{family}.json", "--batch", "8", "--seq", "8", "--dropout",
                    "off", "-o", f"{args.work}/{family}.mlir"], shoal.COMPILE_LIMIT)
        cuts = copies = 0
        for bucket in BUCKETS:
            for zero, options in (1, []), (1, BF16), (2, []), (1, ["--microbatches", "2"]):
                wrong, cut, unpacked = check(args.work, family, bucket, zero, options)
                faults += wrong
                cuts += cut
                copies += unpacked
        if cuts == 0 or copies == 0:
            faults.append(f"{family}: no tensor is cut, or no run of buckets ends in one, so nothing is shown")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
