#!/usr/bin/env python3
"""Kills a run that saves after each step, at random moments of a save, again and again; each run goes on where the one before
left off.

usage: checkpoint_torture.py --work FOLDER --kills N [--plan "MESH FLAGS"]

After each kill (SIGKILL to every rank) the newest complete checkpoint must be whole; a run loads it, and has the parameters of
a run that nobody stopped at that step, bit for bit; so has the file the optimizer's state. The next run goes on from it, until
N kills have hit a save, which its unfinished folder shows. At least half of all kills must. Of these folders one at least, named as
a complete one, must be refused: else no kill came before a save had all its files. In the end losses and parameters are those of a run
that nobody stopped.
"""

import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import shoal
from checkpoints import ROWS, WIDE, Model
from tensor_files import tensor, write_npy
from uneven_batches import wave
from work_parser import WorkParser

OPTIMIZER = ("--optimizer", "adam", "--lr", "0.0001")
SEED = 20
LIMIT = 60  # seconds until a run has saved


def ranks_under(pid, program):
    """The processes below `pid` that run `program`."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    parents[int(entry)] = int(f.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass  # it has ended
    found = []
    for child in parents:
        at = child
        while at in parents and at != pid:
            at = parents[at]
        try:
            if at == pid and os.readlink(f"/proc/{child}/exe") == program:
                found.append(child)
        except OSError:
            pass
    return found


def unfinished(folder):
    """The folder of a save that is under way, or was when its run was killed."""
    return next((name for name in os.listdir(folder) if name.startswith(".step-")), None)


def is_saving(folder):
    return unfinished(folder) is not None


def check_newest(model, plan, folder, step):
    """The newest checkpoint, of `step`, loads, and is what a run without a kill has there."""
    model.run(plan, "--steps", str(step), "--resume", folder, tag="loaded")
    never = model.path("never-killed")
    shutil.rmtree(never, ignore_errors=True)
    model.run(plan, "--steps", str(step), "--save", never, tag="whole")
    if model.steps("loaded") or model.params("loaded") != model.params("whole"):
        sys.exit(f"step {step}: what is loaded is not what a run without a kill has")
    merged = [f"{model.path(name)}-{step}.safetensors" for name in ("killed", "whole")]
    for source, file in zip((folder, never), merged):
        shoal.call(["shoal-ckpt", "merge", source, "-o", file, "--with-state"], 60)
    if not filecmp.cmp(*merged, shallow=False):
        sys.exit(f"step {step}: the optimizer's state is not that of a run without a kill")
    for file in merged:
        os.unlink(file)


def is_refused(model, folder, name):
    """Whether the rest of a save is no checkpoint, even if it is named as one."""
    alone = model.path("rest")
    shutil.rmtree(alone, ignore_errors=True)
    shutil.copytree(f"{folder}/{name}", f"{alone}/{name[1:].removesuffix('.tmp')}")
    return subprocess.run(["shoal-ckpt", "verify", alone], capture_output=True, timeout=60).returncode != 0


def killed_run(command, program, folder, part):
    """Starts a run, waits until it has saved once, sees how long a quick save takes, and kills its ranks when they have done `part` of
    another one."""
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said, end = [], time.monotonic() + LIMIT
    for line in run.stdout:
        said.append(line)
        if "  saved " in line or time.monotonic() > end:
            break
    else:
        run.wait()
        sys.exit(f"a run ended by itself: {''.join(said)}")
    ranks = ranks_under(run.pid, program)

    def wait_until(saving):
        while is_saving(folder) != saving:
            if run.poll() is not None or time.monotonic() > end:
                sys.exit(f"a run saves no more: {''.join(said)}")
        return time.monotonic()

    def time_save():
        begin = wait_until(True)
        return wait_until(False) - begin

    wait_until(False)
    takes = min(time_save() for _ in range(3))
    wait_until(True)
    time.sleep(part * takes)
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=LIMIT)
    if run.returncode == 0:
        sys.exit("a killed run ended well")


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--kills", type=int, required=True, help="that hit a save")
    parser.add_argument("--plan", default="data=2")
    args = parser.parse_args()
    if args.kills < 1:
        shoal.wrong_usage(f"--kills must be at least 1, got: {args.kills}")
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    write_npy(f"{args.work}/x.npy", tensor("f64", (ROWS, 7), wave(ROWS * 7, 1)))
    write_npy(f"{args.work}/y.npy", tensor("f64", (ROWS, 3), wave(ROWS * 3, 2)))
    model, folder = Model(args.work, "wide", WIDE, OPTIMIZER), f"{args.work}/runs"
    program = os.path.realpath(model.program(args.plan))
    draw = random.Random(SEED)
    model.run(args.plan, "--steps", "1", "--save", folder)
    ranks = model.ranks(args.plan)
    command = ["shoal-run", "-n", str(ranks), program, "--no-progress", "--data", f"x={args.work}/x.npy", "--data",
               f"y={args.work}/y.npy", "--steps", "1000000", "--resume", folder, "--save", folder, "--save-every", "1", "--keep", "2"]
    during, kills, newest, refused = 0, 0, 1, 0
    while during < args.kills:
        if kills == 2 * args.kills:
            sys.exit(f"{during} of {kills} kills hit a save, expected at least half of them")
        # Early moments more often: one save takes longer than the next, and late kills may miss it.
        killed_run(command, program, folder, draw.random() ** 2)
        kills += 1
        if rest := unfinished(folder):
            during += 1
            refused += is_refused(model, folder, rest)
        said = shoal.call(["shoal-ckpt", "verify", folder], 60)
        step = int(said.split(": step ")[1].split(",")[0])
        if step <= newest or "each in one of" not in said:
            sys.exit(f"kill {kills}: step {step} after {newest}: {said}")
        newest = step
        check_newest(model, args.plan, folder, step)
    if not refused:
        sys.exit(f"{during} kills during saves, and each left all files of a checkpoint")
    total = str(newest + 1)
    model.run(args.plan, "--steps", total, "--resume", folder, "--save", folder, "--keep", "1", tag="end")
    model.run(args.plan, "--steps", total, tag="whole")
    if model.params("end") != model.params("whole") or model.steps("end") != model.steps("whole")[-1:]:
        sys.exit(f"after {kills} kills the training differs from one without")
    if os.listdir(folder) != [f"step-{newest + 1:06d}"]:
        sys.exit(f"left behind: {os.listdir(folder)}")
    print(f"{kills} kills, {during} of them during a save, {refused} of which left less than a checkpoint; the newest one loaded "
          f"{kills} times as a run without has it; step {total} is that of a run without")


if __name__ == "__main__":
    main()
