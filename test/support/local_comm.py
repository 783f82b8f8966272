#!/usr/bin/env python3
"""Checks --local-comm: what is used, what is said where windows cannot be had, what is refused.

usage: local_comm.py MODEL.mlir --work FOLDER

The machine without windows is one whose folder for them does not exist, by a setting of Open MPI.
"""

import json
import os
import sys

import shoal
from metrics import read_metrics
from tensor_files import read_safetensors, tensor, write_npy
from work_parser import WorkParser

NOWHERE = {"OMPI_MCA_osc_sm_backing_directory": "/proc/nonexistent"}
REASON = "/proc/nonexistent: No such file or directory"


def main():
    args = WorkParser(__doc__, "model").parse_args()

    def path(name):
        return os.path.join(args.work, name)

    def check(holds, what):
        if not holds:
            sys.exit(what)

    data = []
    for name, columns in (("x", 16), ("y", 10)):
        write_npy(path(f"{name}.npy"), tensor("f32", (128, columns), ((i % 17) / 17 for i in range(128 * columns))))
        data += ["--data", f"{name}={path(name)}.npy"]
    options = ("--optimizer", "sgd", "--lr", "0.01")
    # f32 gradients of 13,834 parameters in one bucket, and the loss as a scalar.
    two = shoal.shoalc(args.model, path("two"), "--mesh", "data=2", "--dtype", "f32", *options)
    one = shoal.shoalc(args.model, path("one"), "--dtype", "f32", *options)

    def run(name, *flags, expect=0, env=None):
        return shoal.run(2, two, *data, "--steps", "4", "--report", path(f"{name}.json"), "--metrics",
                         path(f"{name}.jsonl"), "--dump-params", path(f"{name}.safetensors"), *flags,
                         expect=expect, env=env)

    def transport(name):
        with open(path(f"{name}.json")) as file:
            ranks = json.load(file)["ranks"]
        measured = [{key: value for key, value in entry["measured"].items() if key != "waiting_ms"} for entry in ranks]
        check(measured[0] == measured[1], f"{name}: the ranks measured {measured}")
        return {line["via"]: line["count"] for line in measured[0]["transport"]}, measured[0]

    said = run("chosen")
    check("note:" not in said, f"by size: {said}")
    check(transport("chosen")[0] == {"mpi": 1, "windows": 1}, f"by size: {transport('chosen')}")
    run("windows", "--local-comm", "windows")
    check(transport("windows")[0] == {"windows": 2}, f"windows: {transport('windows')}")
    run("mpi", "--local-comm", "mpi")
    check(transport("mpi")[0] == {"mpi": 2}, f"mpi: {transport('mpi')}")
    check(transport("mpi")[1]["shared_bytes"] == 0, f"mpi shares: {transport('mpi')}")

    # Of two addends every order gives the same bits.
    for name in ("chosen", "windows"):
        ours, theirs = read_safetensors(path(f"{name}.safetensors")), read_safetensors(path("mpi.safetensors"))
        check({k: bytes(v.data) for k, v in ours.items()} == {k: bytes(v.data) for k, v in theirs.items()},
              f"{name} and mpi: parameters differ")
        check([r["loss"] for r in read_metrics(path(f"{name}.jsonl"))]
              == [r["loss"] for r in read_metrics(path("mpi.jsonl"))], f"{name} and mpi: losses differ")

    said = run("nowhere", env=NOWHERE)
    note = f"note: reductions and gathers between ranks of this machine go through MPI: {REASON}"
    check(said.splitlines().count(note) == 1, f"without windows: {said}")
    check(transport("nowhere")[0] == {"mpi": 2}, f"without windows: {transport('nowhere')}")
    check(transport("nowhere")[1]["no_windows"] == REASON, f"without windows: {transport('nowhere')}")

    def refused(line, output):
        errors = [text for text in output.splitlines() if text.startswith("error: ")]
        check(errors == [f"error: {line}"], f"expected the error '{line}', got: {output}")

    refused(f"--local-comm windows cannot be had: {REASON}",
            run("refused", "--local-comm", "windows", expect=1, env=NOWHERE))
    refused("--local-comm must be windows or mpi, got: 'shm'", run("refused", "--local-comm", "shm", expect=2))
    refused("--local-comm does not apply: the program has no all-reduce, all-gather or reduce-scatter between ranks",
            shoal.run(1, one, *data, "--local-comm", "mpi", expect=2))
    check(not os.path.exists(path("refused.json")), "a refused run left a report")


if __name__ == "__main__":
    main()
