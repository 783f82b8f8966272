#!/usr/bin/env python3
"""Checks that the totals of `shoalc --explain` are those of `shoalc --report`, that entries sum to them, and that the
page has the same entries.

usage: explain.py MODEL.mlir --work FOLDER --plan "FLAGS" ...
"""

import json
import os
import re
import shlex
import sys

import shoal
from work_parser import WorkParser

ENTRY = re.compile(r'(\w+) (\{[^}]*\}), (\d+) ranks?, .*?: (\d+) bytes?(?: in (\d+) messages)?(?: in (\d+) micro-batches)?'
                   r'(?:, (\d+) times: \d+ bytes)?$')
TOTAL = re.compile(r'  (\w+)(?: (\{[^}]*\}))?: (\d+) times?, (\d+) bytes?$')


def explained(text):
    """Per kind and axes (count, bytes): as the entries sum, and as the totals say."""
    entries, totals = {}, {}
    for line in text.splitlines():
        if match := ENTRY.match(line):
            kind, axes, _, sent, messages, micro, times = match.groups()
            count, old = entries.get((kind, axes), (0, 0))
            times = int(times or 1)
            entries[kind, axes] = (count + times * int(messages or 1) * int(micro or 1), old + times * int(sent))
        if match := TOTAL.match(line):
            kind, axes, count, sent = match.groups()
            totals[kind, axes] = (int(count), int(sent))
    return entries, totals


def main():
    parser = WorkParser(__doc__, "model")
    parser.add_argument("--plan", action="append", required=True)
    args = parser.parse_args()
    report = os.path.join(args.work, "report.json")
    for plan in args.plan:
        text = shoal.call(["shoalc", args.model, "--emit", "exec", "-o", os.path.join(args.work, "exec.mlir"),
                           "--explain", "--report", report, *shlex.split(plan)], shoal.COMPILE_LIMIT)
        entries, totals = explained(text)
        promised = {}
        for line in shoal.ranks_of_report(report)[0]["collectives"]:
            axes = "{" + ", ".join(f'"{axis}"' for axis in line["axes"]) + "}"
            promised[line["kind"], axes] = (line["count"], line["bytes"])
        if not promised:
            sys.exit(f"{plan}: the report has no collective to compare")
        if not entries == totals == promised:
            sys.exit(f"{plan}: entries sum to {entries}, totals are {totals}, the report has {promised}\n{text}")
        told = sum(ENTRY.match(line) is not None for line in text.splitlines())
        for words in ("because", "removed by"):
            if (said := len(re.findall(rf"^  {words} +\S", text, re.MULTILINE))) != told:
                sys.exit(f"{plan}: {told} entries, but {said} say '{words}'\n{text}")
        page = os.path.join(args.work, "page.html")
        shoal.call(["shoalc", args.model, "--emit", "exec", "-o", os.path.join(args.work, "exec.mlir"), "--report", page,
                    *shlex.split(plan)], shoal.COMPILE_LIMIT)
        with open(page) as file:
            if (shown := file.read().count('<article class="collective">')) != told:
                sys.exit(f"{plan}: {told} entries, but {shown} on the page\n{text}")
        print(f"{plan}: {len(totals)} totals are the report's, {told} entries the page's")


if __name__ == "__main__":
    main()
