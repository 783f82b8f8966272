#!/usr/bin/env python3
"""Parameters from several files, of the types that checkpoints are kept in, and with their names.

usage: several_files.py --work FOLDER

The parameters of a program are written, cut into two files with an index, and loaded by it: they come back as they
were. The same from bf16 and f16, whose values are those of f32 that fit, and from a file that names its tensors
without the base model's prefix, beside tensors that the program has no use for.
"""

import json
import struct
import sys

import shoal
from tensor_files import count, read_safetensors, tensor, write_npy, write_safetensors
from work_parser import WorkParser

MODEL = """
func.func @model(
    %x: tensor<2x3xf32> {nn.input = "x"},
    %w: tensor<3x5xf32> {nn.param = #nn.param<"transformer.h.0.weight", init = normal(0.0, 1.0)>},
    %b: tensor<5xf32>   {nn.param = #nn.param<"transformer.h.0.bias", init = normal(0.0, 1.0)>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  %1 = nn.add %0, %b : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  %loss = nn.reduce mean %1 dims = [0, 1] : tensor<2x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
"""


def write_halves(path, dtype, tensors):
    """Writes tensors as BF16 or F16; returns what their elements are worth then."""
    header, data, worth = {}, b"", {}
    for name, t in tensors.items():
        if dtype == "F16":
            raw = struct.pack(f"<{len(t.data)}e", *t.data)
            worth[name] = list(struct.unpack(f"<{len(t.data)}e", raw))
        else:
            bits = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for value in t.data]
            raw = struct.pack(f"<{len(bits)}H", *bits)
            worth[name] = [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in bits]
        header[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return worth


def main():
    work = WorkParser(__doc__).parse_args().work
    with open(f"{work}/model.mlir", "w") as f:
        f.write(MODEL)
    program = shoal.shoalc(f"{work}/model.mlir", f"{work}/model", "--mesh", "data=2")
    write_npy(f"{work}/x.npy", tensor("f32", (2, 3), [0.0] * 6))
    faults = []

    def check(name, holds):
        if not holds:
            faults.append(name)

    def dump(*words):
        """The parameters that a run begins with, and what it says."""
        path = f"{work}/back.safetensors"
        text = shoal.run(2, program, "--data", f"x={work}/x.npy", "--steps", "0", "--dump-params", path, *words)
        return read_safetensors(path), text

    first, _ = dump("--seed", "7")
    names = sorted(first)
    check("two parameters", names == ["transformer.h.0.bias", "transformer.h.0.weight"])
    for name, file in zip(names, ("1.safetensors", "2.safetensors")):
        write_safetensors(f"{work}/{file}", {name: first[name]})
    index = f"{work}/model.safetensors.index.json"
    with open(index, "w") as f:
        json.dump({"metadata": {}, "weight_map": dict(zip(names, ("1.safetensors", "2.safetensors")))}, f)
    back, text = dump("--load", index)
    check("two files", back == first and "no use" not in text)
    text = shoal.run(2, program, "--load", index, "--dump-params", f"{work}/2.safetensors", expect=2)
    check("a file that is loaded is not replaced", "--dump-params and --load name the same file" in text)
    text = shoal.run(2, program, "--load", index, "--dump-params", index, expect=2)
    check("an index is not replaced", "--dump-params and --load name the same file" in text)

    for dtype in ("BF16", "F16"):
        worth = write_halves(f"{work}/half.safetensors", dtype, first)
        back, _ = dump("--load", f"{work}/half.safetensors")
        check(dtype, all(list(back[name].data) == worth[name] for name in names))

    bare = {name.removeprefix("transformer."): first[name] for name in names}
    masks = {f"h.{i}.attn.mask": tensor("u8", (1,), [1]) for i in range(12)}
    write_safetensors(f"{work}/bare.safetensors", {**bare, **masks})
    back, text = dump("--load", f"{work}/bare.safetensors")
    check("names without the prefix", back == first)
    check("tensors without use", "holds 12 tensors that this program has no use for: h.*.attn.mask (12)" in text)

    write_safetensors(f"{work}/larger.safetensors", {**first, "transformer.h.1.bias": first["transformer.h.0.bias"]})
    text = shoal.run(2, program, "--load", f"{work}/larger.safetensors", "--data", f"x={work}/x.npy", expect=2)
    check("a checkpoint of more layers", "larger.safetensors: holds 'transformer.h.1.bias' beside 'transformer.h.0.bias', of which "
                                         "this program has only the latter: it is a smaller model" in text)

    elements = sum(count(t.shape) for t in first.values())
    print(f"{elements} parameters from 5 files:", ", ".join(faults) or "all as they were")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
