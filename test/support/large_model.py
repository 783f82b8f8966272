#!/usr/bin/env python3
"""Compiles a Llama to the rank program, whole and with two layers: the memory it may take, the kernels it has.

usage: large_model.py CONFIG.json --rows ROWS --tokens TOKENS --gib LIMIT --work FOLDER OPTIONS-OF-SHOALC...
"""

import json
import os
import re
import sys

import shoal
from work_parser import WorkParser


def compile_layers(args, config, layers, options):
    """Peak of resident memory in bytes, names of kernels and how many rows launch one."""
    base = f"{args.work}/{layers}"
    with open(f"{base}.json", "w") as f:
        json.dump(config | {"num_hidden_layers": layers}, f)
    shoal.call(["shoal-model", "llama", "--config", f"{base}.json", "--batch", str(args.rows), "--seq",
                str(args.tokens), "-o", f"{base}.mlir"], shoal.COMPILE_LIMIT)
    pid = os.spawnvp(os.P_NOWAIT, "timeout", ["timeout", str(shoal.COMPILE_LIMIT), "shoalc", f"{base}.mlir", "--emit",
                                              "exec", "-o", f"{base}.exec", *options])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{layers} layers: shoalc ends with status {os.waitstatus_to_exitcode(status)}")
    with open(f"{base}.exec") as f:
        text = f.read()
    kernels = re.findall(r"func\.func private @(\w+)\(.*exec\.kernel", text)
    return usage.ru_maxrss * 1024, sorted(kernels), len(re.findall(r"exec\.launch", text))


def main():
    parser = WorkParser(__doc__, "config")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--gib", type=float, required=True)
    args, options = parser.parse_known_args()
    with open(args.config) as f:
        config = json.load(f)
    layers = config["num_hidden_layers"]
    _, few, fewer_launches = compile_layers(args, config, 2, options)
    memory, kernels, launches = compile_layers(args, config, layers, options)
    if memory > args.gib * 2**30:
        sys.exit(f"{layers} layers: {memory / 2**30:.2f} GiB, expected at most {args.gib}")
    if not kernels or len(kernels) != len(few):
        sys.exit(f"{layers} layers have {len(kernels)} kernels, 2 layers {len(few)}")
    if launches < layers / 4 * fewer_launches:
        sys.exit(f"{layers} layers launch {launches} kernels, 2 layers {fewer_launches}")


if __name__ == "__main__":
    main()
