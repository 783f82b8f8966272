"""Runs test/EndToEnd/activation_tails.mlir and compares with the functions' definitions in 160 decimal digits.

usage: activation_tails.py PROGRAM f32|f64
"""

import sys
from decimal import Decimal, getcontext

import shoal
from tensor_files import read_safetensors, tensor, write_npy, write_safetensors

getcontext().prec = 160
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
ONE, HALF, ROOT_PI, ROOT_2 = Decimal(1), Decimal("0.5"), PI.sqrt(), Decimal(2).sqrt()
POINTS = 193
# The least and the largest argument; in f32 the tails end at 0.
RANGES = {
    "f32": {"gelu": (-14, 12), "silu": (-109, 12), "sigmoid": (-104, 12), "erfc": (-4, 10.125)},
    "f64": {"gelu": (-12, 12), "silu": (-752, 12), "sigmoid": (-746, 12), "erfc": (-12, 12)},
}
TOLERANCES = {"f32": 1e-6, "f64": 1e-14}
SMALLEST = {"f32": 2.0**-149, "f64": 5e-324}


def erfc(x):
    """By the Taylor series of erf: its terms reach e^144, which the digits hold."""
    term, total, n = x, x, 0
    while n < x * x or abs(term) > Decimal("1e-150"):
        n += 1
        term *= -x * x / n
        total += term / (2 * n + 1)
    return 1 - 2 * total / ROOT_PI


def sigmoid(x):
    return ONE / (1 + (-x).exp())


# Name: value and slope, each with the sum of the magnitudes of what it is added up from.
def gelu(x):
    cdf, pdf = HALF * erfc(-x / ROOT_2), (-x * x / 2).exp() / (ROOT_2 * ROOT_PI)
    return x * cdf, abs(x * cdf), cdf + x * pdf, cdf + abs(x) * pdf


def silu(x):
    s = sigmoid(x)
    return x * s, abs(x * s), s + x * s * (1 - s), s + abs(x) * s * (1 - s) + (s if x > 0 else 0)


def only_sigmoid(x):
    s = sigmoid(x)
    return s, s, s * (1 - s), s * (1 - s) + (s if x > 0 else 0)


def only_erfc(x):
    slope = 2 / ROOT_PI * (-x * x).exp()
    return erfc(x), erfc(x), -slope, slope


FUNCTIONS = {"gelu": gelu, "silu": silu, "sigmoid": only_sigmoid, "erfc": only_erfc}


def main():
    program, dtype = sys.argv[1:]
    tensors = {}
    for name, (low, high) in RANGES[dtype].items():
        # Multiples of 1/64, which both types hold.
        values = [round((low + (high - low) * i / (POINTS - 1)) * 64) / 64 for i in range(POINTS)]
        tensors[name] = tensor(dtype, (POINTS,), values)
        tensors[f"{name}.weight"] = tensor(dtype, (POINTS,), [1] * POINTS)
    write_npy(f"{program}.x.npy", tensor(dtype, (1, 1), [1]))
    write_safetensors(f"{program}.in.safetensors", tensors)
    shoal.run(1, program, "--data", f"x={program}.x.npy", "--load", f"{program}.in.safetensors",
              "--dump-grads", f"{program}.grads.safetensors")
    gradients = read_safetensors(f"{program}.grads.safetensors")
    wrong = 0
    for name, function in FUNCTIONS.items():
        for i, x in enumerate(tensors[name].data):
            value, size, slope, slope_size = function(Decimal(x))
            for what, got, want, scale in (("value", gradients[f"{name}.weight"].data[i], value, size),
                                           ("slope", gradients[name].data[i], slope, slope_size)):
                allowed = TOLERANCES[dtype] * float(scale) + 2 * SMALLEST[dtype]
                if not abs(Decimal(got) - want) <= Decimal(allowed):
                    wrong += 1
                    print(f"{what} of {name} at {x} is {got!r}, expected: {float(want)!r}", file=sys.stderr)
    if wrong:
        sys.exit(f"{wrong} values are wrong")


main()
