#!/usr/bin/env python3
"""Bytes of parameters, gradients and optimizer state per rank under DDP and ZeRO, promised by shoalc and counted by the program.

usage: zero_memory.py --work FOLDER

With P parameters in f32 and Adam over N ranks they are 4P, 4P, 8P (DDP), 4P, 4P, 8P/N (ZeRO-1), 4P, 4P/N, 8P/N (ZeRO-2) and 4P/N, 4P/N,
8P/N (ZeRO-3; Rajbhandari et al. 2020). The sizes of this model's layers divide by 4, so no bucket is padded. Of GPT-2 124M over 4 ranks the
promises alone are read: those of ZeRO-3 by the formula, and a peak that is less than half of DDP's.
"""

import argparse
import json
import math
import os
import sys

import shoal
from tensor_files import tensor, write_npy

ROWS, WIDTHS = 8, (12, 20, 28, 4)
GPT2_PARAMETERS = 124_439_808


def model():
    """A network of three layers, each with its bias, and the number of its parameters."""
    args, lines, value, width, elements = [], [], "%x", WIDTHS[0], 0
    for i, out in enumerate(WIDTHS[1:]):
        args += [f'%w{i}: tensor<{width}x{out}xf32> {{nn.param = #nn.param<"l.{i}.w", init = normal(0.0, 0.2)>}}',
                 f'%b{i}: tensor<{out}xf32> {{nn.param = #nn.param<"l.{i}.b", init = zeros>}}']
        elements += width * out + out
        shape, layer = f"tensor<{ROWS}x{out}xf32>", f'{{nn.layer = "l.{i}"}}'
        lines += [f"%a{i} = nn.matmul {value}, %w{i} {layer} : (tensor<{ROWS}x{width}xf32>, tensor<{width}x{out}xf32>) -> {shape}",
                  f"%c{i} = nn.add %a{i}, %b{i} {layer} : ({shape}, tensor<{out}xf32>) -> {shape}",
                  f"%h{i} = nn.relu %c{i} {layer} : {shape}"]
        value, width = f"%h{i}", out
    shape = f"tensor<{ROWS}x{width}xf32>"
    lines += [f"%loss = nn.mse_loss mean {value}, %y : ({shape}, {shape}) -> tensor<f32>", "return %loss : tensor<f32>"]
    return (f'func.func @mlp(%x: tensor<{ROWS}x{WIDTHS[0]}xf32> {{nn.input = "x"}}, %y: {shape} {{nn.input = "y"}},\n    '
            + ",\n    ".join(args) + ") -> (tensor<f32> {nn.loss}) {\n  " + "\n  ".join(lines) + "\n}\n"), elements


def expected(stage, ranks, elements):
    whole, part = 4 * elements, 4 * elements // ranks
    return {"params": part if stage >= 3 else whole, "grads": part if stage >= 2 else whole,
            "optimizer": 2 * (part if stage >= 1 else whole)}


def promises_of_gpt2(work):
    """What is wrong with the promises for GPT-2 124M."""
    config = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
              "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    with open(f"{work}/gpt2.json", "w") as f:
        json.dump(config, f)
    shoal.call(["shoal-model", "gpt2", "--config", f"{work}/gpt2.json", "--batch", "4", "--seq", "64", "-o", f"{work}/gpt2.mlir"], 60)
    promised = {}
    for stage in (0, 3):
        report = f"{work}/gpt2-{stage}.json"
        shoal.call(["shoalc", f"{work}/gpt2.mlir", "--mesh", "data=4", "--optimizer", "adamw", "--lr", "0.001", "--zero", str(stage),
                    "--report", report, "--emit", "exec", "-o", os.devnull], 120)
        promised[stage] = shoal.ranks_of_report(report)[0]["bytes"]
    for kind, count in expected(3, 4, GPT2_PARAMETERS).items():
        if promised[3][kind] != count:
            yield f"{promised[3][kind]} bytes of {kind} under --zero 3, expected {count}"
    if promised[3]["peak"] > promised[0]["peak"] / 2:
        yield f"a peak of {promised[3]['peak']} bytes under --zero 3, expected less than half of {promised[0]['peak']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", required=True)
    work = parser.parse_args().work
    os.makedirs(work, exist_ok=True)
    text, elements = model()
    with open(f"{work}/mlp.mlir", "w") as f:
        f.write(text)
    for name, width in (("x", WIDTHS[0]), ("y", WIDTHS[-1])):
        write_npy(f"{work}/{name}.npy", tensor("f32", (ROWS, width), (math.sin(0.3 * i) for i in range(ROWS * width))))
    failed = False
    for ranks in (2, 4):
        for stage in range(4):
            path = f"{work}/{ranks}-{stage}"
            program = shoal.shoalc(f"{work}/mlp.mlir", path, "--mesh", f"data={ranks}", "--optimizer", "adam", "--lr", "0.01",
                                   "--zero", str(stage), "--report", f"{path}.promise.json")
            shoal.run(ranks, program, "--data", f"x={work}/x.npy", "--data", f"y={work}/y.npy", "--steps", "1",
                      "--report", f"{path}.counted.json")
            promised, counted = shoal.ranks_of_report(f"{path}.promise.json"), shoal.ranks_of_report(f"{path}.counted.json")
            if promised != counted:
                print(f"--zero {stage} over {ranks}: promised {promised}, counted {counted}")
                failed = True
            wanted = expected(stage, ranks, elements)
            for rank in promised:
                for kind, count in wanted.items():
                    if rank["bytes"][kind] != count:
                        print(f"--zero {stage} over {ranks}, rank {rank['rank']}: {rank['bytes'][kind]} bytes of {kind}, expected {count}")
                        failed = True
    for what in promises_of_gpt2(work):
        print(f"GPT-2 124M: {what}")
        failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
