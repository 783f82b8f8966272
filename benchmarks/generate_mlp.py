#!/usr/bin/env python3
"""Writes a multi-layer perceptron as L1 IR to standard output.

usage: generate_mlp.py --batch 512 --sizes 784,4096,4096,10

Each layer but the last ends in relu; the loss is cross entropy on class indices.
`--sizes 256x97` is short for 97 equal sizes, that is, 96 equal layers. With `--linear` a layer is
its matmul alone.
"""

import argparse


def parse_sizes(text):
    sizes = []
    for part in text.split(","):
        size, _, times = part.partition("x")
        sizes += [int(size)] * int(times or 1)
    return sizes


def generate(batch, sizes, linear=False):
    lines = [f"// A perceptron of {len(sizes) - 1} layers, written by generate_mlp.py.", "func.func @mlp("]
    lines.append(f'    %x: tensor<{batch}x{sizes[0]}xf32> {{nn.input = "x"}},')
    lines.append(f'    %y: tensor<{batch}xi64> {{nn.input = "y"}},')
    params = []
    for i, (m, n) in enumerate(zip(sizes, sizes[1:]), 1):
        params.append(f'    %w{i}: tensor<{m}x{n}xf32> {{nn.param = #nn.param<"w{i}", init = kaiming_uniform>}}')
        if not linear:
            params.append(f'    %b{i}: tensor<{n}xf32> {{nn.param = #nn.param<"b{i}", init = zeros>}}')
    lines.append(",\n".join(params) + ")")
    logits = f"tensor<{batch}x{sizes[-1]}xf32>"
    lines.append(f'    -> (tensor<f32> {{nn.loss}}, {logits} {{nn.output = "logits"}}) {{')
    value = "%x"
    for i, (m, n) in enumerate(zip(sizes, sizes[1:]), 1):
        out = f"tensor<{batch}x{n}xf32>"
        lines.append(f"  %m{i} = nn.matmul {value}, %w{i} : (tensor<{batch}x{m}xf32>, tensor<{m}x{n}xf32>) -> {out}")
        value = f"%m{i}"
        if linear:
            continue
        lines.append(f"  %a{i} = nn.add %m{i}, %b{i} : ({out}, tensor<{n}xf32>) -> {out}")
        value = f"%a{i}"
        if i < len(sizes) - 1:
            lines.append(f"  %r{i} = nn.relu %a{i} : {out}")
            value = f"%r{i}"
    lines.append(f"  %loss, %lse = nn.cross_entropy mean {value}, %y : ({logits}, tensor<{batch}xi64>) -> tensor<f32>")
    lines.append(f"  return %loss, {value} : tensor<f32>, {logits}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sizes", type=parse_sizes, required=True)
    parser.add_argument("--linear", action="store_true")
    args = parser.parse_args()
    print(generate(args.batch, args.sizes, args.linear), end="")


if __name__ == "__main__":
    main()
