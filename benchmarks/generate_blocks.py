#!/usr/bin/env python3
"""Writes a model of residual perceptron blocks, x + relu(x w1) w2 with a hidden width of four times x's, as L1 IR to
standard output.

usage: generate_blocks.py --blocks 8 --width 128 --batch 32
"""

import argparse


def generate(blocks, width, batch):
    stream, hidden = f"tensor<{batch}x{width}xf32>", f"tensor<{batch}x{4 * width}xf32>"
    up, down = f"tensor<{width}x{4 * width}xf32>", f"tensor<{4 * width}x{width}xf32>"
    lines = [f"// {blocks} residual perceptron blocks of width {width}, as benchmarks/generate_blocks.py writes them.",
             "func.func @blocks(",
             f'    %x: {stream} {{nn.input = "x"}},',
             f'    %y: {stream} {{nn.input = "y"}},']
    params = []
    for i in range(blocks):
        params.append(f'    %u{i}: {up} {{nn.param = #nn.param<"blocks.{i}.w1", init = kaiming_uniform>}}')
        params.append(f'    %d{i}: {down} {{nn.param = #nn.param<"blocks.{i}.w2", init = normal(0.0, 0.02)>}}')
    lines += [",\n".join(params) + ")", "    -> (tensor<f32> {nn.loss}) {"]
    value = "%x"
    for i in range(blocks):
        layer = f'{{nn.layer = "blocks.{i}"}}'
        lines += [f"  %a{i} = nn.matmul {value}, %u{i} {layer} : ({stream}, {up}) -> {hidden}",
                  f"  %r{i} = nn.relu %a{i} {layer} : {hidden}",
                  f"  %b{i} = nn.matmul %r{i}, %d{i} {layer} : ({hidden}, {down}) -> {stream}",
                  f"  %x{i} = nn.add {value}, %b{i} {layer} : ({stream}, {stream}) -> {stream}"]
        value = f"%x{i}"
    lines += [f"  %loss = nn.mse_loss mean {value}, %y : ({stream}, {stream}) -> tensor<f32>",
              "  return %loss : tensor<f32>", "}"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("blocks", "width", "batch"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    print(generate(args.blocks, args.width, args.batch), end="")


if __name__ == "__main__":
    main()
