#!/usr/bin/env python3
"""What --offload optimizer promises beside the same plan without it: state leaves the device and nothing else changes there, what crosses
between the memories is the gradient's shard, what of the parameters the update reads, and the new parameters (ZeRO-Offload, Ren et al. 2021), and
PTX has every kernel but the host's.

usage: offload.py MODEL --work FOLDER
"""

import json
import re

import shoal
from work_parser import WorkParser

args = WorkParser(__doc__, "model").parse_args()


def shoalc(emit, *flags):
    output, report = f"{args.work}/program.{emit}", f"{args.work}/report.json"
    more = ["--report", report] if emit == "exec" else []
    shoal.call(["shoalc", args.model, "--target", "cuda", "--optimizer", "adamw", "--emit", emit, "-o", output, *more, *flags],
               shoal.COMPILE_LIMIT)
    with open(output) as f:
        text = f.read()
    if not more:
        return text, None
    with open(report) as f:
        return text, json.load(f)["ranks"][0]


def aligned(size):
    return -(-size // 64) * 64


# One parameter of N elements, so that a bucket is it and its padding.
N = 24 * 10
for flags, ranks, is_sharded in (
    ([], 1, False),
    (["--mesh", "data=2"], 2, False),
    (["--mesh", "data=2", "--zero", "1"], 2, True),
    (["--mesh", "data=7", "--zero", "1"], 7, True),
    (["--mesh", "data=4", "--zero", "3"], 4, True),
):
    held = -(-N // ranks) if is_sharded else N
    # Moments of f32, and masters in bf16; the update reads the gradient and the step, and the parameter where that is no master.
    for dtypes, on_host, to_host, to_device in (
        (["--dtype", "f32"], 2 * 4, (4, 4), 4),
        (["--dtype", "bf16", "--grad-dtype", "f32"], 3 * 4, (4,), 2),
        (["--dtype", "bf16", "--grad-dtype", "bf16"], 3 * 4, (2,), 2),
    ):
        plan = [*flags, *dtypes]
        _, plain = shoalc("exec", *plan)
        text, offloaded = shoalc("exec", *plan, "--offload", "optimizer")
        found = {line["to"]: (line["count"], line["bytes"]) for line in offloaded["transfers"]}
        what = f"{' '.join(plan)}: "
        expect = {"host": (1 + len(to_host), sum(to_host) * held + 8), "device": (1, to_device * held)}
        assert found == expect, f"{what}transfers are {found}, expected {expect}"
        assert "transfers" not in plain and "host" not in plain["bytes"], what
        assert offloaded["collectives"] == plain["collectives"], what
        assert offloaded["bytes"]["optimizer"] == 0 and plain["bytes"]["optimizer"] == on_host * held, what
        assert offloaded["bytes"]["params"] == plain["bytes"]["params"], what
        saved = plain["bytes"]["peak"] - offloaded["bytes"]["peak"]
        assert saved >= on_host // 4 * aligned(4 * held), f"{what}the device saves {saved} bytes"
        assert offloaded["bytes"]["host"] >= on_host // 4 * aligned(4 * held), what
        kernels = re.findall(r"func.func private @(k_\w+)\(.*attributes {(.*)}", text)
        host = {name for name, attributes in kernels if "exec.host" in attributes}
        assert any("adam_update" in name for name in host), what
        ptx, _ = shoalc("ptx", *plan, "--offload", "optimizer")
        entries = set(re.findall(r"\.entry (\w+)", ptx))
        assert entries == {name for name, _ in kernels} - host, f"{what}{entries}"
print("15 plans: what crosses is what the update reads and makes")
