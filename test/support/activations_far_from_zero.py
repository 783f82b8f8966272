"""Runs test/EndToEnd/activations_far_from_zero.mlir: gradients where exponentials, squares and cubes leave the type.

usage: activations_far_from_zero.py PROGRAM f32|f64
"""

import sys

import shoal
from tensor_files import read_safetensors, tensor, write_npy, write_safetensors

# The last ones are near the largest number of the type, those before them near the root of it.
DISTANCES = {"f32": [200, 1e4, 1e13, 1.8e19, 1e20, 3e38], "f64": [800, 1e4, 1e20, 1.3e154, 1e160, 1.7e308]}
# Name: the gradient far below and far above zero.
SLOPES = {"gelu_tanh": (0, 1), "gelu_erf": (0, 1), "silu": (0, 1), "sigmoid": (0, 0)}


def main():
    program, dtype = sys.argv[1:]
    points = [sign * distance for distance in DISTANCES[dtype] for sign in (1, -1)]
    values = [points[i % len(points)] for i in range(37)]
    write_npy(f"{program}.x.npy", tensor(dtype, (1, 1), [1]))
    write_safetensors(f"{program}.in.safetensors", {name: tensor(dtype, (37,), values) for name in SLOPES})
    shoal.run(1, program, "--data", f"x={program}.x.npy", "--load", f"{program}.in.safetensors",
              "--dump-grads", f"{program}.grads.safetensors")
    gradients = read_safetensors(f"{program}.grads.safetensors")
    for name, slopes in SLOPES.items():
        for i, (x, got) in enumerate(zip(values, gradients[name].data, strict=True)):
            if got != slopes[x > 0]:
                sys.exit(f"gradient of {name} at {x}, element {i}, is {got}, expected: {slopes[x > 0]}")


main()
