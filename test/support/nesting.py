#!/usr/bin/env python3
"""Gives shoal-opt and shoalc files that are nested 20,000 deep, in every way that MLIR's parser recurses, and one
whose operand its own region defines: each is refused with one line and the right exit status. One of a hundred
levels is read.

usage: nesting.py
"""

import os
import subprocess
import sys
import tempfile

DEPTH = 20000


def attribute(text):
    return "module attributes {a.x = " + text + "} {}"


def aliases(sigil, first, wrap):
    lines = [f"{sigil}a0 = {first}"]
    lines += [f"{sigil}a{i + 1} = {wrap[0]}{sigil}a{i}{wrap[1]}" for i in range(DEPTH)]
    return "\n".join(lines + [attribute(f"{sigil}a{DEPTH}")])


NESTED = "nesting must be at most 256 levels deep"
LONG = "a sum must have at most 1000 terms"
CASES = {
    "regions": ("module {" * DEPTH + "}" * DEPTH, NESTED),
    "arrays": (attribute("[" * DEPTH + "]" * DEPTH), NESTED),
    "dictionaries": (attribute("{a = " * DEPTH + "1" + "}" * DEPTH), NESTED),
    "types": (attribute("tuple<" * DEPTH + "i1" + ">" * DEPTH), NESTED),
    "functions": (attribute("(() -> " * DEPTH + "i1" + ")" * DEPTH), NESTED),
    "vectors": (attribute("vector<2x" * DEPTH + "i1" + ">" * DEPTH), NESTED),
    "elements": (attribute("dense<" + "[" * DEPTH + "1" + "]" * DEPTH + "> : tensor<1xi32>"), NESTED),
    "affine": (attribute("affine_map<() -> (" + "(" * DEPTH + "1" + ")" * DEPTH + ")>"), NESTED),
    "negations": (attribute("affine_map<(d0) -> (" + "-" * DEPTH + "d0)>"), LONG),
    "sums": (attribute("affine_map<(d0) -> (" + "d0 + " * DEPTH + "d0)>"), LONG),
    "type aliases": (aliases("!", "i1", ("tuple<", ">")), NESTED),
    "an operand of its own region": (
        "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = scf.if %c -> tensor<2xf32> {\n    %c = arith.constant true\n  }\n}",
        "value '%c' is used outside of the region that defines it"),
    "attribute aliases": (aliases("#", "1", ("[", "]")), NESTED),
}

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.mlir")

    def run(text, *command):
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr.splitlines()

    def expect(name, tool, got, code, rule):
        if got[0] != code or len(got[1]) != 1 or rule not in got[1][0]:
            sys.exit(f"{name}: {tool} ended with {got[0]}, {got[1][:3]}, expected {code} and '{rule}'")

    for name, (text, rule) in CASES.items():
        expect(name, "shoal-opt", run(text, "shoal-opt", path, "-o", os.devnull), 1, rule)
        expect(name, "shoalc", run(text, "shoalc", path, "--emit", "exec"), 2, rule)
    # Brackets in strings and comments do not count, arrows and comparisons are no brackets.
    shallow = "module attributes {a.x = \"" + "(" * DEPTH + "\"} {} // " + "[" * DEPTH
    shallow += "\n" + "func.func private @f() -> ()\n" + "module {" * 100 + "}" * 100
    if (code := run(shallow, "shoal-opt", path, "-o", os.devnull)) != (0, []):
        sys.exit(f"a file of 100 levels is refused: {code}")
