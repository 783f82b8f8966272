"""What the tables of examples share: reports and results of runs, how far a program is from that of one rank, and what
is another than expected."""

import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "support"))
from metrics import largest_relative_difference, read_losses  # noqa: E402
from tensor_files import read_safetensors  # noqa: E402

TOLERANCE = 1e-10  # of f64


class Faults:
    """Remembers what was another than expected; `mark` is what a line shows."""

    def __init__(self):
        self.found = []

    def mark(self, holds, what):
        if not holds:
            self.found.append(what)
        return "ok" if holds else "MISSED"


def read_ranks(path):
    """The ranks of a report, in which promise and count are equal, and what was measured besides."""
    with open(path) as f:
        ranks = json.load(f)["ranks"]
    return ranks, [rank.pop("measured", None) for rank in ranks]


def farthest_parameter(path, reference):
    """The largest difference of an element, relative to its tensor's root mean square."""
    ours, one = read_safetensors(path), read_safetensors(reference)
    if ours.keys() != one.keys():
        return math.inf
    worst = 0.0
    for name, tensor in one.items():
        rms = math.sqrt(sum(v * v for v in tensor.data) / len(tensor.data))
        difference = max(abs(a - b) for a, b in zip(ours[name].data, tensor.data))
        worst = max(worst, difference / rms) if difference < math.inf else math.inf
    return worst


def table(title, columns, rows):
    print(f"== {title}")
    widths = [max(map(len, column)) for column in zip(columns, *rows)]
    for row in [columns, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def equality(work, what, names, faults):
    """The table of losses and parameters of programs (`what` they differ by) beside those of program `one`."""
    def losses_of(name):  # null: not finite
        return [math.nan if loss is None else loss for loss in read_losses(f"{work}/{name}.jsonl")]

    one, rows = losses_of("one"), []
    if not one[-1] < one[0]:
        faults.found.append(f"one rank does not learn: {one[0]} to {one[-1]}")
    for name in names:
        losses = losses_of(name)
        apart = (largest_relative_difference(losses, one),
                 farthest_parameter(f"{work}/{name}.safetensors", f"{work}/one.safetensors"))
        rows.append([name, f"{losses[-1]:.6f}", *(f"{a:.1e}" for a in apart),
                     faults.mark(max(apart) <= TOLERANCE, f"{name}: not equal to one rank")])
    table(f"losses of all steps and parameters behind the last, relative to one rank (bound {TOLERANCE:.0e})",
          [what, "last loss", "losses", "parameters", ""], rows)
