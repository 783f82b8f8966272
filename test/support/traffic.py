#!/usr/bin/env python3
"""Checks that what the compiler promises to send is what is sent, on several numbers of ranks.

usage: traffic.py MODEL.mlir --params COUNT --inputs NAME=COLUMNS,... --rows ROWS --work FOLDER
                  --batch ROWS --pmpi LIBRARY.so [--ranks 2,3,4] [--bucket-mb MB,...] [--optimizer sgd,adam]

Three witnesses: the report of shoalc, the report of the program (counted from its
rows and calls), and a library that wraps MPI's profiling interface and counts below both. The
formulas: data parallelism sends 2(N-1)/N times the gradients' bytes in ceil(bytes / bucket)
all-reduces, and the loss as one scalar more; it holds all parameters, gradients and optimizer
state on every rank. Beside that the run itself may send only what WORLD_CALLS lists.

All this with --local-comm mpi. With windows, and with what the program chooses by itself, the same is counted,
and MPI sees no call of those all-reduces that the report says went through windows.
"""

import itertools
import json
import os
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

STEPS = 3
ELEMENT = 4  # f32
STATES = {"sgd": 0, "adam": 2}  # tensors of optimizer state per parameter

# Calls on other communicators: (call, elements, bytes of one), times. The ranks agree three times
# that nothing failed, and rank 0 gets the report of each as text.
WORLD_CALLS = {("MPI_Allreduce", 1, 4): 3, ("MPI_Gather", 1, 4): 1, ("MPI_Gatherv", "text", 1): 1}


def ring_all_reduce(elements, ranks):
    """Bytes one rank sends; a buffer is cut in `ranks` chunks, so elements are rounded up."""
    return 2 * (ranks - 1) * -(-elements // ranks) * ELEMENT


def report(path):
    with open(path) as f:
        return json.load(f)


class Findings:
    def __init__(self):
        self.failures = []

    def equal(self, what, got, expected):
        if got != expected:
            self.failures.append(f"{what}: got {got}, expected {expected}")

    def at_least(self, what, got, least):
        if got < least:
            self.failures.append(f"{what}: got {got}, expected at least {least}")


def check_bytes(find, entry, params, optimizer, inputs):
    """Model states by the formulas of DDP in f32; the rest is bounded from below."""
    who, held = f"rank {entry['rank']}", entry["bytes"]
    find.equal(f"{who}: bytes of parameters", held["params"], params * ELEMENT)
    find.equal(f"{who}: bytes of gradients", held["grads"], params * ELEMENT)
    find.equal(f"{who}: bytes of optimizer state", held["optimizer"], STATES[optimizer] * params * ELEMENT)
    find.at_least(f"{who}: bytes of activations", held["activations"], inputs)
    lasting = held["params"] + held["optimizer"] + inputs
    find.at_least(f"{who}: peak bytes", held["peak"], lasting + held["grads"])
    find.at_least(f"{who}: all bytes", sum(held.values()) - held["peak"], lasting)


def check_formula(find, promise, params, ranks, bucket_bytes):
    buckets = -(-params * ELEMENT // bucket_bytes)
    for entry in promise["ranks"]:
        who = f"rank {entry['rank']}"
        lines = entry["collectives"]
        find.equal(f"{who}: kinds", [(c["kind"], c["axes"]) for c in lines], [("all_reduce", ["data"])])
        find.equal(f"{who}: all-reduces of gradients and loss", lines[0]["count"], buckets + 1)
        gradients = lines[0]["bytes"] - ring_all_reduce(1, ranks)
        if buckets == 1:
            find.equal(f"{who}: bytes sent for gradients", gradients, ring_all_reduce(params, ranks))
            continue
        # Each bucket rounds up to a multiple of the ranks on its own.
        least = 2 * (ranks - 1) * params * ELEMENT / ranks
        most = least + buckets * 2 * (ranks - 1) * ELEMENT
        if not least <= gradients <= most:
            find.failures.append(f"{who}: bytes sent for gradients: got {gradients}, expected {least}..{most}")


def check_pmpi(find, base, promise, ranks):
    """What MPI was given on the program's communicators, over all steps, put into the ring's formula."""
    for entry in promise["ranks"]:
        made = report(f"{base}.{entry['rank']}")["calls"]
        calls = [c for c in made if c["comm"].startswith("shoal stream")]
        who = f"rank {entry['rank']}, below MPI"
        find.equal(f"{who}: calls", {(c["call"], c["ranks"]) for c in calls}, {("MPI_Iallreduce", ranks)})
        promised = entry["collectives"][0]
        find.equal(f"{who}: all-reduces", sum(c["count"] for c in calls), STEPS * promised["count"])
        sent = sum(c["count"] * 2 * (ranks - 1) * -(-c["elements"] // ranks) * c["element_bytes"] for c in calls)
        find.equal(f"{who}: bytes", sent, STEPS * promised["bytes"])
        outside = {}
        for c in made:
            if c not in calls:
                elements = "text" if c["call"] == "MPI_Gatherv" else c["elements"]
                key = (c["call"], elements, c["element_bytes"])
                outside[key] = outside.get(key, 0) + c["count"]
        find.equal(f"{who}: calls outside of the program", outside, WORLD_CALLS)


def check_windows(find, how, base, counted, expected):
    """Counters do not depend on what carries the data, and what MPI did not see went through windows."""
    for entry, theirs in zip(counted["ranks"], expected["ranks"], strict=True):
        who = f"rank {entry['rank']}, {how}"
        for key in ("coords", "bytes", "collectives"):
            find.equal(f"{who}: {key}", entry[key], theirs[key])
        carried = {"mpi": 0, "windows": 0}
        for line in entry["measured"]["transport"]:
            carried[line["via"]] += line["count"]
        find.equal(f"{who}: all-reduces", sum(carried.values()), theirs["collectives"][0]["count"])
        find.at_least(f"{who}: all-reduces in windows", carried["windows"], 1)
        find.equal(f"{who}: through MPI although windows are asked for", how == "windows" and carried["mpi"], 0)
        find.at_least(f"{who}: bytes shared", entry["measured"]["shared_bytes"], theirs["bytes"]["grads"])
        calls = [c for c in report(f"{base}.{entry['rank']}")["calls"] if c["comm"].startswith("shoal stream")]
        find.equal(f"{who}: calls that MPI saw", sum(c["count"] for c in calls), STEPS * carried["mpi"])


def run_case(args, ranks, bucket_mb, optimizer):
    def path(name):
        return os.path.join(args.work, f"{ranks}-{bucket_mb}-{optimizer}-{name}")

    program = shoal.shoalc(args.model, path("program"), "--mesh", f"data={ranks}", "--dtype", "f32",
                           "--optimizer", optimizer, "--lr", "0.01", "--bucket-mb", bucket_mb,
                           "--report", path("promise.json"))
    data = [a for name in args.inputs for a in ("--data", f"{name}={args.work}/{name}.npy")]

    def run(how, *options):
        shoal.run(ranks, program, *data, "--steps", str(STEPS), "--report", path(f"{how}.json"), *options,
                  env={"LD_PRELOAD": args.pmpi, "SHOAL_PMPI_OUT": path(f"{how}-pmpi")})
        return report(path(f"{how}.json"))

    find = Findings()
    counted = run("mpi", "--local-comm", "mpi")
    check_windows(find, "windows", path("windows-pmpi"), run("windows", "--local-comm", "windows"), counted)
    check_windows(find, "chosen", path("chosen-pmpi"), run("chosen"), counted)
    promise = report(path("promise.json"))
    find.equal("ranks", [r["rank"] for r in promise["ranks"]], list(range(ranks)))
    for ours, theirs in zip(promise["ranks"], counted["ranks"]):
        for key in ("coords", "bytes", "collectives"):
            find.equal(f"rank {ours['rank']}: {key} counted and promised", theirs[key], ours[key])
        find.equal(f"rank {ours['rank']}: transport", {c["via"] for c in theirs["measured"]["transport"]}, {"mpi"})
    # A megabyte of --bucket-mb is 2^20 bytes.
    local_rows = -(-args.batch // ranks)
    for entry in counted["ranks"]:
        check_bytes(find, entry, args.params, optimizer, local_rows * sum(args.inputs.values()) * ELEMENT)
    check_formula(find, promise, args.params, ranks, int(float(bucket_mb) * (1 << 20)))
    check_pmpi(find, path("mpi-pmpi"), promise, ranks)
    return find


def main():
    parser = WorkParser(__doc__, "model", "--inputs", "--pmpi")
    parser.add_argument("--params", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--bucket-mb", default="25")
    args = parser.parse_args()

    args.inputs = {name: int(n) for name, n in (i.split("=") for i in args.inputs.split(","))}
    for name, columns in args.inputs.items():
        values = ((i % 17) / 17 for i in range(args.rows * columns))
        write_npy(f"{args.work}/{name}.npy", tensor("f32", (args.rows, columns), values))

    failed = False
    for ranks in map(int, args.ranks.split(",")):
        for bucket_mb, optimizer in itertools.product(args.bucket_mb.split(","), args.optimizer.split(",")):
            find = run_case(args, ranks, bucket_mb, optimizer)
            name = f"{ranks} ranks, buckets of {bucket_mb} MB, {optimizer}"
            for line in find.failures[:8]:
                print(f"{name}: {line}")
            failed |= bool(find.failures)
            if not find.failures:
                print(f"{name}: promise, count, PMPI and formulas agree")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
