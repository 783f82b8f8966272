"""Runs test/EndToEnd/special_values.mlir: 1/sqrt(x) at 0, infinity, a subnormal number and between."""

import math
import sys

import shoal
from tensor_files import read_npy, tensor, write_npy

PATTERN = [0.0, math.inf, 1e-40, 4.0, 1.0]


def main():
    program = sys.argv[1]
    values = [PATTERN[i % len(PATTERN)] for i in range(37)]
    write_npy(f"{program}.a.npy", tensor("f32", (37,), values))
    outputs = {name: f"{program}.{name}.npy" for name in ("rsqrt", "quotient")}
    flags = [flag for name, path in outputs.items() for flag in ("--output", f"{name}={path}")]
    shoal.run(1, program, "--data", f"a={program}.a.npy", *flags)
    expected = {0.0: math.inf, math.inf: 0.0, 1e-40: 1e20, 4.0: 0.5, 1.0: 1.0}
    for name, path in outputs.items():
        for i, (x, got) in enumerate(zip(values, read_npy(path).data)):
            want = expected[x]
            # A subnormal f32 holds few bits of 1e-40.
            if got != want and not abs(got - want) <= 1e-4 * want:
                sys.exit(f"{name}({x}) at {i} is {got}, expected: {want}")


main()
