#!/usr/bin/env python3
"""Holds what a rank keeps under the stages of ZeRO, at the row where it is most, against that of data parallelism.

usage: zero_peaks.py --work FOLDER [--full]

GPT-2 and Llama of four blocks under the choices of zero_traffic.py, compiled alone; that runs have the promised peak,
and ask the system for an arena of that size, is shown there. What is in use at each row of the rank program is
counted once more, from its text (arena.py): bytes by class must be those promised, and the arena, the promised peak,
must be the fullest row and gaps between buffers, of at most two fifths. Then, with P parameters of a rank, N ranks, g
bytes of a gradient, b elements of the largest bucket, all gradients or about a sixth:
- At each product of the passes all that is neither parameters, the optimizer's state nor gradients is what data
  parallelism has there, exactly. Where stages 2 and 3 reduce in micro-batches, one of the two gradients of a table that
  is embedding and head waits for the other beside the bucket; stage 3 may have less.
- In one bucket stage 1 keeps in the fullest row of the passes what data parallelism keeps, less what sharding the
  optimizer saves, exactly.
- The workspace of stage 1 is the shard of the gradients and, in f32, that of the new values of one bucket, exactly.
- Stage 2 is stage 1 where gradients are reduced once, exactly. In micro-batches its workspace is what is unreduced and
  the shard of one bucket, g b / N, exactly.
- Unreduced are at most three buckets: one that is filled and two that are sent. A bucket's storage is larger where a
  tensor that is cut stands out of it.
- Under stage 3 two blocks are gathered at a time, exactly, but for GPT-2's vectors of the block before: its last bias
  is added by the next one's first kernel. In one bucket it keeps no more than stage 2, less what sharding parameters
  saves, and these blocks.
With --full all combinations; without it any two choices meet in some.
"""

import json
import math
import re
import sys

import shoal
from arena import Curve
from transformer_traffic import CONFIGS, KV_HEADS, LAYERS, TOKENS, VOCAB, WIDTH, bucket_sizes, parameters
from zero_traffic import (CHOICES, DTYPES, ROWS, TENSOR, all_plans, cover, late_of, options_of, sizes, states,
                          unread_of, words_of)
from work_parser import WorkParser

BLOCKS = 4
BUCKETS = {"one bucket": 1, "six buckets": 6}


def write_model(work, family):
    with open(f"{work}/{family}.json", "w") as f:
        json.dump(CONFIGS[family] | {LAYERS[family]: BLOCKS}, f)
    shoal.call(["shoal-model", family, "--config", f"{work}/{family}.json", "--batch", str(ROWS), "--seq", str(TOKENS),
                "--dropout", "off", "-o", f"{work}/{family}.mlir"], shoal.COMPILE_LIMIT)


def sizes_of_tensors(work, family, tensor):
    """Elements of the parameters, as a rank may have them."""
    with open(f"{work}/{family}.mlir") as f:
        shapes = re.findall(r"tensor<([0-9x]+)xf32> \{[^\n]*nn\.param", f.read())
    counts = {math.prod(map(int, shape.split("x"))) for shape in shapes}
    return counts | {count // tensor for count in counts}


def compile_stage(work, plan, bucket, number):
    """The curve of one stage, and what of it is not as promised."""
    tensor, options = TENSOR[plan["tensor"]]
    mesh = f"data={plan['data']}" + (f",tensor={tensor}" if tensor > 1 else "")
    base = f"{work}/{number}"
    shoal.call(["shoalc", f"{work}/{plan['family']}.mlir", "--emit", "exec", "-o", f"{base}.exec", "--report",
                f"{base}.json", "--mesh", mesh, "--optimizer", "adamw", "--lr", "0.001", "--bucket-mb",
                repr(bucket / 2**20), *options_of(plan), *options], shoal.COMPILE_LIMIT)
    with open(f"{base}.exec") as f:
        curve = Curve(f.read())
    promised = shoal.ranks_of_report(f"{base}.json")[0]["bytes"]
    counted = {kind: curve.most(kind) for kind in promised if kind != "peak"} | {"peak": curve.arena}
    faults = []
    if counted != promised:
        faults.append(f"the rows hold {counted}, promised {promised}")
    if not curve.fullest() <= curve.arena <= curve.fullest() * 7 / 5:
        faults.append(f"an arena of {curve.arena} bytes for at most {curve.fullest()}")
    return curve, faults


def check(work, plan, number):
    """The faults of a plan under all stages."""
    tensor, data, parts, family = TENSOR[plan["tensor"]][0], plan["data"], plan["microbatches"], plan["family"]
    of_parameter, of_gradient, _, _ = DTYPES[plan["dtype"]]
    count, _ = sizes(family, tensor, BLOCKS)
    late = late_of(plan, BLOCKS)
    kept = [states(stage, plan["dtype"], count, data) for stage in range(4)]
    bucket = -(-count * of_gradient // BUCKETS[plan["buckets"]])
    is_one, elements = plan["buckets"] == "one bucket", max(bucket_sizes(count, bucket, data, of_gradient))
    curves, faults = [], []
    for stage in range(4):
        curve, wrong = compile_stage(work, plan | {"zero": stage}, bucket, f"{number}-{stage}")
        curves.append(curve)
        faults += [f"stage {stage}: {fault}" for fault in wrong]
    full = [curve.fullest_of_passes() for curve in curves]

    def equal(what, got, expected):
        if got != expected:
            faults.append(f"{what}: got {got}, expected {expected}")

    beside = [curve.beside_states() for curve in curves]
    table = of_gradient * VOCAB // tensor * WIDTH if family == "gpt2" and parts > 1 else 0
    copies = set()
    if plan["dtype"] != "f32" and parts == 1 and not is_one:
        copies = {of_parameter * count for count in sizes_of_tensors(work, family, tensor)}
    for stage in 1, 2, 3:
        if len(beside[stage]) != len(beside[0]):
            faults.append(f"stage {stage}: {len(beside[stage])} products, expected {len(beside[0])}")
        more = {got - expected for got, expected in zip(beside[stage], beside[0])}
        allowed = {0} | (copies if stage < 3 else set()) | ({table} if stage > 1 else set())
        if not {each for each in more if stage < 3 or each > 0} <= allowed:
            faults.append(f"stage {stage}: {more} bytes more beside the states than under data parallelism")
        is_sum, largest = stage == 1 and parts > 1, bucket + of_gradient * 3 * WIDTH * WIDTH
        for unreduced in curves[stage].unreduced if not (is_one or is_sum) else ():
            if len(unreduced) > 3 or max(unreduced, default=0) > largest:
                faults.append(f"stage {stage}: {unreduced} bytes are unreduced, expected three times at most {largest}")
                break
    if is_one:
        saved = kept[0]["optimizer"] - kept[1]["optimizer"]
        # In micro-batches data parallelism keeps the sums over the sequence until the end.
        equal("data parallelism less stage 1", full[0] - full[1], saved + (of_gradient * late if parts > 1 else 0))
    if tensor == 1:
        new_values = of_parameter * elements // data if plan["dtype"] == "f32" else 0
        workspace = curves[1].most("workspace") if is_one else curves[1].most_kept()
        equal("workspace of stage 1", workspace, of_gradient * count // data + new_values)
    if parts == 1:
        equal("stage 2 less stage 1", full[2] - full[1], 0)
    elif is_one:
        whole, shard = of_gradient * count, of_gradient * (count - late) // data
        equal("workspace of stage 2", curves[2].most("workspace"), whole + shard)
    elif tensor == 1:
        unreduced = max(map(sum, curves[2].unreduced))
        equal("workspace of stage 2", curves[2].most_kept(), unreduced + of_gradient * elements // data)
    blocks = 2 * of_parameter * parameters(family, tensor, min(tensor, KV_HEADS[family]))["block"]
    gathered, before = max(curves[3].gathered), of_parameter * unread_of(family, tensor)
    if family == "gpt2" and tensor > 1:  # those whose gradients come late are a bucket of their own
        before = of_parameter * 4 * WIDTH
    if gathered not in (blocks, blocks + before):
        faults.append(f"stage 3 gathers {gathered} bytes, two blocks are {blocks}, another one's vectors {before}")
    most = full[2] - (kept[2]["params"] - kept[3]["params"]) + gathered
    if is_one and full[3] > most:
        faults.append(f"stage 3 keeps {full[3]} bytes, expected at most {most}")
    if not faults:
        rows = ", ".join(map(str, full))
        print(f"{words_of(plan)}: fullest row {rows} under stages 0 to 3, gathered {gathered}")
    return [f"{words_of(plan)}: {fault}" for fault in faults]


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    choices = {kind: values for kind, values in CHOICES.items() if kind != "zero"}
    plans = all_plans(choices | {"buckets": tuple(BUCKETS)})
    plans = plans if args.full else cover(plans)
    for family in CONFIGS:
        write_model(args.work, family)
    faults = [fault for number, plan in enumerate(plans) for fault in check(args.work, plan, number)]
    print("\n".join([*faults, f"{len(plans)} plans, each under 4 stages"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
