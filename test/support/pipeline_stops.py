#!/usr/bin/env python3
"""A pipeline whose middle stage is killed, or whose last stage has a loss that is no number, ends on all ranks with one line.

usage: pipeline_stops.py MODEL.mlir --work FOLDER --data NAME=FILE...
"""

import os
import subprocess
import sys
import time

import shoal
from work_parser import WorkParser

RANKS = 3


def errors_of(text):
    return [line for line in text.splitlines() if line.startswith("error: ")]


def kill_middle(program, data, metrics):
    running = subprocess.Popen(["shoal-run", "-n", str(RANKS), program, "--no-progress", "--steps", "100000000", *data,
                                "--metrics", metrics], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not (os.path.exists(metrics) and os.path.getsize(metrics)):
        time.sleep(0.01)
    shoal.kill_rank(program, 1)
    _, said = running.communicate(timeout=60)
    lines = errors_of(said)
    if running.returncode != 1 or len(lines) != 1 or "rank 1 ended by signal 9 (Killed)" not in lines[0]:
        return [f"a killed stage: exit status {running.returncode}, {lines}"]
    return []


def stop_on_nan(program, data):
    said = shoal.run(RANKS, program, *data, "--steps", "50", "--stop-on-nan", expect=1)
    lines = errors_of(said)
    good = len(lines) == 1 and "and --stop-on-nan ends the run" in lines[0]
    return [] if good else [f"a loss that is no number: {said}"]


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("--data", action="append", required=True)
    args = parser.parse_args()
    work = os.path.abspath(args.work)
    plan = ["--mesh", f"pipe={RANKS}", "--microbatches", "3", "--pipeline-schedule", "zb-h1", "--optimizer", "sgd"]
    data = [word for pair in args.data for word in ("--data", pair)]
    metrics = f"{work}/metrics.jsonl"
    if os.path.exists(metrics):
        os.remove(metrics)
    faults = kill_middle(shoal.shoalc(args.model, f"{work}/program", *plan, "--lr", "0.01"), data, metrics)
    faults += stop_on_nan(shoal.shoalc(args.model, f"{work}/diverges", *plan, "--lr", "1e200"), data)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
