#!/usr/bin/env python3
"""cross_entropy over classes that are sharded, against values of another framework, and what it sends.

usage: vocabulary.py CASE.json --work FOLDER --pmpi LIBRARY.so [--ranks 1,2,3,4]

The case has rows of logits with a label, a loss and a gradient each. A row with an ignored label, which must count
for nothing, stands between them. With labels as numbers, every rank sends three all-reduces of one number per row
and nothing else: the maximum, the sum of exponentials, the label's logit. With labels as distributions, which lie whole
on every rank, the last is one number, the loss. The reports of shoalc and of the
program, and MPI's profiling interface, must say so.
"""

import json
import os
import sys

import shoal
from golden import Checker
from metrics import read_metrics
from tensor_files import read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser

IGNORED, ELEMENT = -100, 8

MODEL = """
dist.mesh @mesh <["tensor"=RANKS]>
func.func @loss(
    %y: tensor<TARGETS> {nn.input = #nn.input<"y", unbatched>},
    %logits: tensor<ROWSxCLASSESxf64> {nn.param = #nn.param<"logits", init = zeros>,
                                       dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}) {
  %loss, %lse = nn.cross_entropy sum %logits, %y : (tensor<ROWSxCLASSESxf64>, tensor<TARGETS>) -> tensor<f64>
  return %loss : tensor<f64>
}
"""


def ring_all_reduce(elements, ranks):
    """Bytes one rank sends."""
    return 2 * (ranks - 1) * -(-elements // ranks) * ELEMENT


def check_traffic(check, path, ranks, sizes):
    """`sizes` are the numbers of elements that are reduced in a step."""
    sizes = sorted(sizes) if ranks > 1 else []
    for kind in ("promise", "counted"):
        with open(path(f"{kind}.json")) as f:
            entries = json.load(f)["ranks"]
        expected = [{"kind": "all_reduce", "axes": ["tensor"], "count": len(sizes),
                     "bytes": sum(ring_all_reduce(n, ranks) for n in sizes)}] if sizes else []
        for entry in entries:
            if entry["collectives"] != expected:
                check.failures.append(f"rank {entry['rank']} {kind}: {entry['collectives']}, expected {expected}")
    for rank in range(ranks):
        with open(path(f"pmpi.{rank}")) as f:
            calls = [c for c in json.load(f)["calls"] if c["comm"].startswith("shoal stream")]
        made = sorted(c["elements"] for c in calls for _ in range(c["count"]))
        if made != sizes or any(c["call"] != "MPI_Iallreduce" for c in calls):
            check.failures.append(f"rank {rank}: MPI saw {calls}, expected all-reduces of {sizes} numbers")


def run_case(args, rows, targets, ranks):
    def path(name):
        return os.path.join(args.work, f"{targets}-{ranks}-{name}")

    size, classes = len(rows), len(rows[0]["logits"])
    labels = [r["label"] for r in rows]
    if targets == "numbers":
        shape, values = f"{size}xi64", tensor("i64", (size,), labels)
    else:
        shape = f"{size}x{classes}xf64"
        values = tensor("f64", (size, classes), [float(c == label) for label in labels for c in range(classes)])
    text = MODEL.replace("TARGETS", shape).replace("ROWS", str(size)).replace("CLASSES", str(classes))
    with open(path("model.mlir"), "w") as f:
        f.write(text.replace("RANKS", str(ranks)))
    write_npy(path("y.npy"), values)
    logits = [float(x) for r in rows for x in r["logits"]]
    write_safetensors(path("params.safetensors"), {"logits": tensor("f64", (size, classes), logits)})

    program = shoal.shoalc(path("model.mlir"), path("program"), "--lr", "1", "--report", path("promise.json"))
    shoal.run(ranks, program, "--data", f"y={path('y.npy')}", "--load", path("params.safetensors"), "--steps", "1",
              "--metrics", path("metrics.jsonl"), "--dump-grads", path("grads.safetensors"),
              *(["--local-comm", "mpi"] if ranks > 1 else []),
              "--report", path("counted.json"), env={"LD_PRELOAD": args.pmpi, "SHOAL_PMPI_OUT": path("pmpi")})
    check = Checker(1e-14)
    check.series("loss", [r["loss"] for r in read_metrics(path("metrics.jsonl"))], [sum(r["loss"] for r in rows)])
    expected = {"values": [g for r in rows for g in r["grad"]]}
    check.tensor("gradient of logits", read_safetensors(path("grads.safetensors"))["logits"], expected)
    # The largest logit, the sum of exponentials, the target's logit. Distributions lie whole on every rank: what is summed
    # over classes is the loss alone.
    check_traffic(check, path, ranks, [size] * 3 if targets == "numbers" else [size] * 2 + [1])
    return check


def main():
    parser = WorkParser(__doc__, "case", "--pmpi")
    parser.add_argument("--ranks", default="1,2,3,4")
    args = parser.parse_args()
    with open(args.case) as f:
        rows = json.load(f)["rows"]
    classes = len(rows[0]["logits"])
    rows.insert(2, {"logits": [2.5] * classes, "label": IGNORED, "loss": 0.0, "grad": [0.0] * classes})

    failed = False
    for targets in ("numbers", "distributions"):
        for ranks in map(int, args.ranks.split(",")):
            check = run_case(args, rows, targets, ranks)
            failed |= check.fails(f"labels as {targets}, classes over {ranks} ranks")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
