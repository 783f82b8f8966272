#!/usr/bin/env python3
"""Compiles a model to PTX and checks that every kernel of its rank program is one entry point, with the buffers that its launches pass.

usage: ptx.py MODEL OUTPUT.ptx [shoalc options]
"""

import re
import sys

import shoal


def main():
    model, output, *options = sys.argv[1:]
    shoal.call(["shoalc", model, "--emit", "ptx", "-o", output, *options], shoal.COMPILE_LIMIT)
    program = shoal.call(["shoalc", model, "--emit", "exec", "-o", "-",
                          *(o for k, o in enumerate(options) if "--gpu-arch" not in options[max(k - 1, 0):k + 1])],
                         shoal.COMPILE_LIMIT)
    with open(output) as f:
        text = f.read()
    kernels = re.findall(r"func\.func private @(\w+)", program)
    entries = dict(re.findall(r"^\.visible \.entry (\w+)\(([^)]*)\)", text, re.MULTILINE))
    if not kernels or sorted(entries) != sorted(kernels):
        sys.exit(f"entries {sorted(entries)}, expected the kernels {sorted(kernels)}")
    for name, ins, outs in re.findall(r"exec\.launch @(\w+) ins\(([^:)]*)[^)]*\)(?: outs\(([^:)]*))?", program):
        buffers = len(re.findall("%", ins)) + len(re.findall("%", outs))
        parameters = entries[name].count(".param .u64")
        # What the CPU keeps on the stack, threads may have to share: one more buffer, the workspace.
        if parameters not in (buffers, buffers + 1):
            sys.exit(f"{name} has {parameters} parameters, expected {buffers} buffers and at most a workspace")
    # Everything is in the text: no function of libdevice, no other symbol.
    if unresolved := re.findall(r"^\s*\.extern.*|^\s*call.*", text, re.MULTILINE):
        sys.exit(f"not resolved: {unresolved[0]}")
    print(re.search(r"^\.target \w+", text, re.MULTILINE).group(), f"{len(kernels)} kernels, {len(entries)} entries")


main()
