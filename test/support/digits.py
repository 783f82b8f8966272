#!/usr/bin/env python3
"""Judges runs of the digits example: accuracy from a logits file, agreement of two loss curves.

usage: digits.py accuracy LOGITS.npy LABELS.npy [--at-least A] [--at-most A]
       digits.py compare A.jsonl B.jsonl [--first N --step-tolerance T] [--epoch-tolerance T]
                                         [--all-tolerance T] [--names A,B] [--table]
                                         [--falling]
       digits.py same A.npy B.npy --tolerance T
       digits.py shuffle-labels IN.npy OUT.npy

Each bound that is missed is named, and the exit status is 1.
"""

import argparse
import math
import random
import sys

from metrics import epoch_means, largest_relative_difference, read_losses
from tensor_files import read_npy, tensor, write_npy


class Bounds:
    """Collects named bounds so that one run reports all that are missed."""

    def __init__(self):
        self.missed = False

    def check(self, what, value, bound, holds):
        mark = "ok" if holds else "MISSED"
        print(f"  {what:<52} {value:>10.3g}  (bound {bound:g}) {mark}")
        self.missed |= not holds


def accuracy(logits, labels):
    """The share of rows whose largest logit is at the label."""
    rows, classes = logits.shape
    if labels.shape != (rows,):
        sys.exit(f"logits have {rows} rows, labels have shape {labels.shape}")
    hits = 0
    for r in range(rows):
        row = logits.data[r * classes : (r + 1) * classes]
        hits += max(range(classes), key=row.__getitem__) == labels.data[r]
    return hits / rows


def run_accuracy(args):
    bounds = Bounds()
    value = accuracy(read_npy(args.logits), read_npy(args.labels))
    if args.at_least is not None:
        bounds.check("test accuracy, at least", value, args.at_least, value >= args.at_least)
    if args.at_most is not None:
        bounds.check("test accuracy, at most", value, args.at_most, value <= args.at_most)
    if args.at_least is None and args.at_most is None:
        print(f"  test accuracy {value:.4f}")
    return bounds.missed


def print_table(names, a, b):
    """Epoch means of both runs side by side: the first ones, then every fifth."""
    print(f"  {'epoch':>5}  {names[0]:>14}  {names[1]:>14}  {'difference':>10}")
    last = len(a) - 1
    for i, (x, y) in enumerate(zip(a, b)):
        if i < 3 or i == last or (i + 1) % 5 == 0:
            print(f"  {i + 1:>5}  {x:>14.8f}  {y:>14.8f}  {abs(x - y) / abs(y):>10.1e}")


def run_compare(args):
    bounds = Bounds()
    a, b = read_losses(args.a), read_losses(args.b)
    if len(a) != len(b) or not a:
        sys.exit(f"{args.a} has {len(a)} steps, {args.b} has {len(b)}")
    means_a, means_b = epoch_means(args.a), epoch_means(args.b)
    if args.table:
        print_table(args.names.split(","), means_a, means_b)
    if args.step_tolerance is not None:
        d = largest_relative_difference(a[: args.first], b[: args.first])
        bounds.check(f"largest relative difference, first {args.first} steps", d,
                     args.step_tolerance, d <= args.step_tolerance)
    if args.epoch_tolerance is not None:
        d = largest_relative_difference(means_a, means_b)
        bounds.check("largest relative difference, epoch means", d,
                     args.epoch_tolerance, d <= args.epoch_tolerance)
    if args.all_tolerance is not None:
        d = largest_relative_difference(a, b)
        bounds.check(f"largest relative difference, all {len(a)} steps", d,
                     args.all_tolerance, d <= args.all_tolerance)
    if args.falling:
        ratio = means_a[-1] / means_a[0]
        bounds.check("loss of the last epoch over that of the first", ratio, 0.5, ratio <= 0.5)
    return bounds.missed


def run_same(args):
    bounds = Bounds()
    a, b = read_npy(args.a), read_npy(args.b)
    if a.shape != b.shape:
        sys.exit(f"{args.a} has shape {a.shape}, {args.b} has {b.shape}")
    scale = math.sqrt(math.fsum(v * v for v in b.data) / len(b.data))
    d = max(abs(x - y) for x, y in zip(a.data, b.data)) / scale
    bounds.check("largest difference over the root mean square", d, args.tolerance, d <= args.tolerance)
    return bounds.missed


def run_shuffle_labels(args):
    labels = read_npy(args.labels)
    shuffled = list(labels.data)
    random.Random(7).shuffle(shuffled)
    write_npy(args.output, tensor(labels.dtype, labels.shape, shuffled))
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)

    p = commands.add_parser("accuracy")
    p.add_argument("logits")
    p.add_argument("labels")
    p.add_argument("--at-least", type=float)
    p.add_argument("--at-most", type=float)
    p.set_defaults(run=run_accuracy)

    p = commands.add_parser("compare")
    p.add_argument("a")
    p.add_argument("b")
    p.add_argument("--first", type=int, default=50)
    p.add_argument("--step-tolerance", type=float)
    p.add_argument("--epoch-tolerance", type=float)
    p.add_argument("--all-tolerance", type=float)
    p.add_argument("--names", default="a,b")
    p.add_argument("--table", action="store_true")
    p.add_argument("--falling", action="store_true")
    p.set_defaults(run=run_compare)

    p = commands.add_parser("same")
    p.add_argument("a")
    p.add_argument("b")
    p.add_argument("--tolerance", type=float, required=True)
    p.set_defaults(run=run_same)

    p = commands.add_parser("shuffle-labels")
    p.add_argument("labels")
    p.add_argument("output")
    p.set_defaults(run=run_shuffle_labels)

    args = parser.parse_args()
    sys.exit(1 if args.run(args) else 0)


if __name__ == "__main__":
    main()
