#!/usr/bin/env python3
"""Skips the reduction of one gradient at a time in a transformer's local program: --dist-verify-plan must see each.

usage: skipped_reductions.py --work FOLDER

What rounding may amount to is measured along the program. In a model of several layers it must not grow so large that a
gradient which one device never summed up passes for it.
"""

import json
import os
import re
import subprocess
import sys

import shoal
from work_parser import WorkParser

CONFIG = {"model_type": "gpt2", "vocab_size": 16, "n_positions": 8, "n_embd": 8, "n_layer": 4, "n_head": 2}


def main():
    args = WorkParser(__doc__).parse_args()
    model, reference, local, broken = (f"{args.work}/{name}.mlir" for name in ("model", "global", "local", "broken"))
    with open(f"{args.work}/config.json", "w") as file:
        json.dump(CONFIG, file)
    shoal.call(["shoal-model", "gpt2", "--config", f"{args.work}/config.json", "--batch", "4", "--seq", "8", "--dropout", "off",
                "-o", model], shoal.COMPILE_LIMIT)
    shoal.shoalc(model, reference, "--emit", "global", "--mesh", "data=2", "--optimizer", "sgd")
    shoal.shoalc(model, local, "--emit", "local", "--mesh", "data=2", "--optimizer", "sgd")
    with open(local) as file:
        lines = file.read().split("\n")
    buckets = dict(found.groups() for line in lines
                   if (found := re.match(r'\s*(%\w+) = dist\.all_reduce {"data"} sum (%\w+) .*gradient', line)))

    def verify(text):
        with open(broken, "w") as file:
            file.write(text)
        done = subprocess.run(["shoal-opt", broken, f"--dist-verify-plan=reference={reference}", "-o", os.devnull],
                              capture_output=True, text=True, timeout=shoal.COMPILE_LIMIT)
        return done.returncode, done.stderr

    faults = []
    code, said = verify("\n".join(lines))
    if code != 0:
        faults.append(f"the program as it is: {said}")
    tried = 0
    for number, line in enumerate(lines):
        found = re.match(r"\s*%\w+ = dist\.unpack (%\w+)\[", line)
        if not found or found.group(1) not in buckets:
            continue
        tried += 1
        mutant = list(lines)
        mutant[number] = line.replace(f"{found.group(1)}[", f"{buckets[found.group(1)]}[", 1)
        code, said = verify("\n".join(mutant))
        if code == 0 or "the plan differs from one device" not in said:
            faults.append(f"line {number + 1} reads what is not reduced: {said or 'not noticed'}")
    print(f"{tried} gradients, one at a time never reduced: {len(faults)} faults")
    print("\n".join(faults))
    # A parameter has a gradient in a bucket, whole or in parts.
    return 1 if faults or tried < 12 * CONFIG["n_layer"] else 0


if __name__ == "__main__":
    sys.exit(main())
