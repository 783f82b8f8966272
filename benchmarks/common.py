"""What the tables of benchmarks share: Markdown, whether a number keeps its bound, the Python that has PyTorch."""

import os
import sys

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
