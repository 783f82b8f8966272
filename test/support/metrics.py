"""Reads what a training program writes with --metrics: one JSON object a line, for each step and each evaluation."""

import json


def read_lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def read_metrics(path):
    """The records of steps in order; each has at least step, epoch and loss."""
    return [r for r in read_lines(path) if "loss" in r]


def read_evaluations(path):
    """The records of evaluations in order; each has at least step, epoch and eval_loss."""
    return [r for r in read_lines(path) if "eval_loss" in r]


def read_losses(path):
    return [r["loss"] for r in read_metrics(path)]


def epoch_means(path):
    """The mean loss of the steps of each epoch, in order."""
    sums = {}
    for r in read_metrics(path):
        total, n = sums.get(r["epoch"], (0.0, 0))
        sums[r["epoch"]] = (total + r["loss"], n + 1)
    return [total / n for _, (total, n) in sorted(sums.items())]


def largest_relative_difference(a, b):
    """max |a_i - b_i| / |b_i|; infinite when the lengths differ, nothing is compared, or a value is not finite."""
    if len(a) != len(b) or not a:
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        d = abs(x - y)
        if not d < float("inf"):
            return float("inf")
        if d > 0:
            worst = max(worst, d / abs(y) if y else float("inf"))
    return worst
