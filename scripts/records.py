#!/usr/bin/env python3
"""Writes what the long tests printed to files beside them, from the results of a run of lit.

usage: records.py RESULTS.json --commit NAME --load N [--tests FOLDER]

RESULTS.json is what lit --output wrote, NAME the commit that ran, N the load average when lit began. Of each test of
FOLDER (test/) that needs the feature `long` and has passed, TEST.txt is written: what it tests, when, where and how
long it ran, and its lines. One that has not passed keeps its record, which is an error. scripts/test.sh --full calls
this, also for one test: scripts/test.sh --full --filter EndToEnd/long-zero.
"""

import argparse
import collections
import json
import os
import platform
import re
import sys
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 120
PASSED = {"PASS", "FLAKYPASS"}


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    return f"{os.cpu_count()} cores of {model[1] if model else platform.machine()}"


def is_long(text):
    return re.search(r"REQUIRES:.*\blong\b", text) is not None


def printed(output):
    """What the commands of a test wrote to the standard output."""
    found = re.search(r"^Command Output \(stdout\):\n--\n(.*?)\n--\n(?:Command Output \(stderr\):|\Z)", output,
                      re.M | re.S)
    return found[1].strip("\n") if found else ""


def record_of(name, text, test, results, args):
    """The record of a test of lit's results, whose file is `text`."""
    comment = " ".join(line.lstrip("# ") for line in text[: text.index("REQUIRES:")].splitlines() if line.strip("# "))
    codes = collections.Counter(each["code"].lower() for each in results["tests"])
    counts = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    when = time.strftime("%Y-%m-%d", time.gmtime(os.path.getmtime(args.results)))
    head = [
        f"Lines printed by {name} on {when} at commit {args.commit}: {comment}",
        f"It took {test['elapsed']:.0f} s on {machine()}.",
        f"That run of lit ({counts}) took {results['elapsed']:.0f} s; the load average was {args.load} when it began.",
    ]
    return "\n".join(textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False) for part in head)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results")
    parser.add_argument("--commit", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--tests", default=os.path.join(HERE, "..", "test"))
    args = parser.parse_args()
    if not os.path.exists(args.results):
        sys.exit(f"{args.results}: not there, expected what lit --output writes when it ends")
    with open(args.results) as f:
        results = json.load(f)
    found = failed = 0
    for test in sorted(results["tests"], key=lambda test: test["name"]):
        name = test["name"].split(" :: ", 1)[1]
        path = os.path.join(args.tests, name)
        with open(path, errors="replace") as f:
            text = f.read()
        if not is_long(text):
            continue
        found += 1
        lines = printed(test["output"])
        if test["code"] not in PASSED or not lines:
            failed += 1
            print(f"records.py: {name} keeps its record, expected a test that passed and printed lines, got: "
                  f"{test['code']}")
            continue
        record = os.path.splitext(path)[0] + ".txt"
        with open(record, "w") as f:
            f.write(f"{record_of(name, text, test, results, args)}\n\n{lines}\n")
        print(f"{os.path.relpath(record)}: {test['elapsed']:.0f} s")
    if not found:
        print(f"records.py: no test of {args.results} needs the feature 'long'")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
