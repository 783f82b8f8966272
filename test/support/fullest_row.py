#!/usr/bin/env python3
"""Compiles small transformers under many plans and holds the arena against what is in use at its fullest row.

usage: fullest_row.py --work FOLDER

The arena, which is the promised peak, is at most 5% larger than the fullest row of a step, gaps included; where gradients
are reduced in micro-batches there is room for one bucket more, that the latest reduction reads. Both are read off the pages of --report. And at the same plan the peak never rises from stage to stage
of ZeRO. Buckets are a small part of the model, as those of a real one are.
"""

import json
import re
import sys

import shoal
from work_parser import WorkParser

LLAMA = {"model_type": "llama", "vocab_size": 512, "max_position_embeddings": 64, "hidden_size": 64,
         "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 160}
GPT2 = {"model_type": "gpt2", "vocab_size": 500, "n_positions": 64, "n_embd": 64, "n_layer": 6, "n_head": 4}
BUCKET_BYTES = 1 << 17
BUCKET = ["--bucket-mb", str(BUCKET_BYTES / 2**20)]
BF16 = ["--dtype", "bf16", "--grad-dtype"]
PLANS = {
    "micro-batches": ["--mesh", "data=4", "--microbatches", "4"],
    "no micro-batches": ["--mesh", "data=4"],
    "replicas": ["--mesh", "replica=2,data=2", "--microbatches", "2"],
    "tensor and sequence parallel": ["--mesh", "data=4,tensor=2", "--tensor-parallel", "--sequence-parallel",
                                     "--microbatches", "4"],
    "bf16": ["--mesh", "data=4", "--microbatches", "4", *BF16, "bf16"],
    "f32 gradients of bf16": ["--mesh", "data=4", *BF16, "f32"],
    "recompute": ["--mesh", "data=4", "--microbatches", "2", "--recompute", "full"],
}


def number(text):
    return int(re.sub(r"\D", "", text))


def compile_plan(model, base, options):
    """The arena and its fullest row in bytes."""
    shoal.shoalc(model, f"{base}.exec", "--emit", "exec", "--optimizer", "adam", "--report", f"{base}.html", *BUCKET,
                 *options)
    with open(f"{base}.html") as f:
        rows = re.search(r'<table class="classes">.*?</table>', f.read(), re.S).group(0).split("<tr")
    gaps, arena = (number(re.search(r'title="([^"]*)"', next(row for row in rows if name in row)).group(1))
                   for name in ("gaps and alignment", "the arena"))
    return arena, arena - gaps


def main():
    args = WorkParser(__doc__).parse_args()
    faults = 0
    for family, config in ("llama", LLAMA), ("gpt2", GPT2):
        with open(f"{args.work}/{family}.json", "w") as f:
            json.dump(config, f)
        model = f"{args.work}/{family}.mlir"
        shoal.call(["shoal-model", family, "--config", f"{args.work}/{family}.json", "--batch", "32", "--seq", "16",
                    "--dropout", "off", "-o", model], shoal.COMPILE_LIMIT)
        for name, options in PLANS.items():
            peaks = []
            for zero in range(4):
                arena, fullest = compile_plan(model, f"{args.work}/{family}", ["--zero", str(zero), *options])
                peaks.append(arena)
                # In micro-batches what the latest reduction reads is held beside the row until it has ended.
                held = BUCKET_BYTES if zero >= 2 and "--microbatches" in options else 0
                wrong = arena > 1.05 * fullest + held
                faults += wrong
                print(f"{family}, {name}, --zero {zero}: {arena} bytes, fullest row {fullest}"
                      f"{', too large' if wrong else ''}")
            if peaks != sorted(peaks, reverse=True):
                faults += 1
                print(f"{family}, {name}: the peak must not rise from stage to stage of ZeRO")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
