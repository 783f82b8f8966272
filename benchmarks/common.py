"""What the tables of benchmarks share: Markdown, whether a number keeps its bound, times of steps, PyTorch's."""

import os
import subprocess
import sys

from metrics import read_metrics

MB = 1e6
TORCH_PYTHON = os.environ.get("SHOAL_TORCH_PYTHON", "/usr/bin/python3")  # else Debian's python3-torch


_verdicts = []  # whether each bound held, of all tables


def verdict(holds, kept, missed):
    """The text of a bound: every one counts for `exit_status`."""
    _verdicts.append(bool(holds))
    return kept if holds else missed


def at_most(value, bound):
    return verdict(value <= bound, f"≤ {bound:g}", f"> MISSED {bound:g}")


def at_least(value, bound):
    return verdict(value >= bound, f"≥ {bound:g}", f"< MISSED {bound:g}")


def exit_status():
    """1 where a bound of any table was missed, and says of how many."""
    missed = _verdicts.count(False)
    if missed:
        print(f"{missed} of {len(_verdicts)} bounds missed", file=sys.stderr)
    return 1 if missed else 0


def table(title, columns, rows):
    print(f"| {title} | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def step_seconds(metrics):
    """Of each step of a run's --metrics but the first two (page faults, warm-up)."""
    times = [r["wall_s"] for r in read_metrics(metrics)]
    return [b - a for a, b in zip(times, times[1:])][1:]


def torch_lines(command, limit, missing):
    """What a script of PyTorch prints, a number a line; or the line that says why there are none, where it ends with
    status `missing`."""
    done = subprocess.run([TORCH_PYTHON, *command], stdout=subprocess.PIPE, text=True, timeout=limit)
    if done.returncode == missing:
        return done.stdout.strip()
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode}: {TORCH_PYTHON} {' '.join(command)}")
    return [float(line) for line in done.stdout.split()]


def find_torch():
    """Nothing, or the line that says that there is no PyTorch."""
    command = [TORCH_PYTHON, "-c", "import torch"]
    has_torch = os.path.exists(TORCH_PYTHON) and not subprocess.run(command, stderr=subprocess.DEVNULL).returncode
    return None if has_torch else f"not installed in {TORCH_PYTHON}"
