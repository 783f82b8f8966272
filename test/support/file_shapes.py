#!/usr/bin/env python3
"""Parameters that files hold in another shape, and numbers that index nothing.

usage: file_shapes.py --work FOLDER

A model whose projection has heads as dimensions, sharded over them, and the same model with plain matrices start from the same
values, take each other's files, and train to the same ones: initial distribution, weight decay, gradients and files all go by the
shape in files. A file of another shape, and a number outside the vocabulary, are refused.
"""

import math
import sys

import shoal
from tensor_files import read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser

MODEL = """
dist.mesh @mesh <["data"=DATA, "tensor"=TENSOR]>
func.func @model(
    %ids: tensor<4x3xi64> {nn.input = "ids"},
    %t: tensor<9x4xf64> {nn.param = #nn.param<"t", init = normal(0.0, 1.0)>},
    %w: tensor<4xHEADSxf64> {nn.param = #nn.param<"w", init = xavier_uniformFILE_W>SHARD_W},
    %b: tensor<HEADSxf64> {nn.param = #nn.param<"b", init = kaiming_uniformFILE_B>SHARD_B})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.embedding %t, %ids : (tensor<9x4xf64>, tensor<4x3xi64>) -> tensor<4x3x4xf64>
  %1 = nn.tensordot %0, %w axes = 1 : (tensor<4x3x4xf64>, tensor<4xHEADSxf64>) -> tensor<4x3xHEADSxf64>
  %2 = nn.add %1, %b : (tensor<4x3xHEADSxf64>, tensor<HEADSxf64>) -> tensor<4x3xHEADSxf64>
  %3 = nn.tanh %2 : tensor<4x3xHEADSxf64>
  %loss = nn.reduce mean %3 dims = [DIMS] : tensor<4x3xHEADSxf64> -> tensor<f64>
  return %loss : tensor<f64>
}
"""


def model(heads, data, tensors):
    text = MODEL.replace("DATA", str(data)).replace("TENSOR", str(tensors))
    shape = "3x2" if heads else "6"
    files = (", file = [4, 6]", ", file = [6]") if heads else ("", "")
    shards = ("", "")
    if heads and tensors > 1:
        shards = (', dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}, {}]>',
                  ', dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>')
    for word, value in (("HEADS", shape), ("FILE_W", files[0]), ("FILE_B", files[1]), ("SHARD_W", shards[0]),
                        ("SHARD_B", shards[1]), ("DIMS", "0, 1, 2, 3" if heads else "0, 1, 2")):
        text = text.replace(word, value)
    return text


def main():
    work = WorkParser(__doc__).parse_args().work
    faults = []

    def check(name, holds):
        if not holds:
            faults.append(name)

    def compile_model(name, heads, data, tensors):
        with open(f"{work}/{name}.mlir", "w") as f:
            f.write(model(heads, data, tensors))
        return shoal.shoalc(f"{work}/{name}.mlir", f"{work}/{name}", "--optimizer", "adamw", "--lr", "0.1",
                            "--weight-decay", "0.5")

    plain = compile_model("plain", False, 1, 1)
    plans = [(compile_model("one", True, 1, 1), 1), (compile_model("two", True, 1, 2), 2),
             (compile_model("four", True, 2, 2), 4)]
    ids = [i * i % 9 for i in range(24)]
    write_npy(f"{work}/ids.npy", tensor("i64", (8, 3), ids))

    def train(ranks, program, steps, *words):
        """Parameters at the end and the first gradients."""
        grads = ["--dump-grads", f"{work}/grads.safetensors"] if steps else []
        shoal.run(ranks, program, "--data", f"ids={work}/ids.npy", "--steps", str(steps), *(words or ("--seed", "5")),
                  "--dump-params", f"{work}/params.safetensors", *grads)
        return (read_safetensors(f"{work}/params.safetensors"),
                read_safetensors(f"{work}/grads.safetensors") if steps else None)

    def near(got, expected):
        return got.keys() == expected.keys() and all(
            got[n].shape == expected[n].shape and
            all(math.isclose(a, b, rel_tol=1e-10, abs_tol=1e-12) for a, b in zip(got[n].data, expected[n].data))
            for n in got)

    first, _ = train(1, plain, 0)
    trained, gradients = train(1, plain, 3)
    write_safetensors(f"{work}/first.safetensors", first)
    for program, ranks in plans:
        check(f"first values of {ranks}", near(train(ranks, program, 0)[0], first))
        params, grads = train(ranks, program, 3)
        check(f"trained by {ranks}", near(params, trained))
        check(f"gradients of {ranks}", near(grads, gradients))
        params, _ = train(ranks, program, 3, "--load", f"{work}/first.safetensors")
        check(f"loaded by {ranks}", near(params, trained))

    program, ranks = plans[1]
    heads = tensor("f64", (4, 3, 2), first["w"].data)
    write_safetensors(f"{work}/heads.safetensors", {**first, "w": heads})
    text = shoal.run(ranks, program, "--data", f"ids={work}/ids.npy", "--steps", "1", "--load",
                     f"{work}/heads.safetensors", expect=2)
    check("a file of the program's own shape", "'w' has shape [4, 3, 2], expected [4, 6]" in text)
    write_safetensors(f"{work}/short.safetensors", {"t": first["t"], "w": first["w"]})
    text = shoal.run(ranks, program, "--data", f"ids={work}/ids.npy", "--steps", "1", "--load",
                     f"{work}/short.safetensors", expect=2)
    check("a file without a tensor", "'b' is missing, expected shape [6]" in text)

    # A number outside, in a row that another rank than the first has, and in a second batch.
    for row, value in ((3, 9), (6, -1), (7, 2**40)):
        bad = ids[:]
        bad[row * 3 + 1] = value
        write_npy(f"{work}/bad.npy", tensor("i64", (8, 3), bad))
        for program, ranks in [plans[0], plans[2]]:
            text = shoal.run(ranks, program, "--data", f"ids={work}/bad.npy", "--steps", "2", expect=2)
            lines = [line for line in text.splitlines() if "bad.npy" in line]
            wanted = f"bad.npy: row {row} holds {value}, but input 'ids' expects 0 to 8"
            check(f"{value} in row {row} by {ranks}: {text}", lines and all(wanted in line for line in lines))

    print(f"{1 + len(plans)} programs:", ", ".join(faults) or "files, values and refusals as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
