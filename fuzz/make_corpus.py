#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets: small files of each kind, right ones and wrong ones.

usage: make_corpus.py FOLDER [shoalc]

Without shoalc it writes what is committed as corpus/. With it, what is made anew in each build because it
follows the compiler: rank programs, compiled from models of test/EndToEnd, the modules of all .mlir tests, one a
file, and the attributes and types in them. Inputs that a fuzzer has found are added to corpus/ by hand, under the name of the fault.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "test")
MODELS = os.path.join(TESTS, "EndToEnd")

sys.path.append(os.path.join(TESTS, "support"))
from buckets import local_program  # noqa: E402
from pipelined_step import step as pipelined_step  # noqa: E402
from tensor_files import crc32c  # noqa: E402


def npy(descr, shape, data, major=1, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if major == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([major, 0]) + size + text + data


def safetensors(header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


NPY = {
    "f32": npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))),
    "f64": npy("<f8", "(2,)", struct.pack("<2d", 1.5, float("nan"))),
    "f16": npy("<f2", "(3,)", b"\0\x3c\0\x7c\1\0"),
    "i64": npy("<i8", "()", struct.pack("<q", -(2**62))),
    "u64": npy("<u8", "(1,)", struct.pack("<Q", 2**64 - 1)),
    "bool": npy("|b1", "(4,)", b"\0\1\2\xff", major=2),
    "empty": npy("<i4", "(0, 5)", b"", major=3),
    "big-endian": npy(">f4", "(1,)", b"\0\0\0\0"),
    "fortran": npy("<f4", "(2, 2)", bytes(16), order="True"),
    "overflow": npy("<f4", "(4294967296, 4294967296)", bytes(16)),
    "cut": npy("<f4", "(2, 3)", bytes(24))[:40],
}
SAFETENSORS = {
    "two": safetensors({"w": entry("F32", [2, 2], 0, 16), "b": entry("I64", [1], 16, 24)}, bytes(24)),
    "metadata": safetensors({"__metadata__": {"a": "b"}, "w": entry("BF16", [3], 0, 6)}, bytes(6)),
    "small-types": safetensors({"a": entry("BOOL", [2], 0, 2), "b": entry("F16", [1], 2, 4),
                                "c": entry("U8", [], 4, 5)}, b"\1\0\0\x3c\7"),
    "no-tensors": safetensors({}, b""),
    "overlap": safetensors({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, bytes(4)),
    "outside": safetensors({"a": entry("F32", [1], 4, 8)}, bytes(4)),
    "overflow": safetensors({"a": entry("F64", [2**63, 2**63], 0, 0)}, b""),
    "negative": safetensors({"a": entry("F32", [-1], 0, -4)}, b""),
    "twice": safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{}}', b"\0"),
    "deep": safetensors(b"[" * 200 + b"]" * 200, b""),
    "long": safetensors(b"{}", b"", length=2**63),
    "nan": safetensors(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,0]}}', b""),
}


def index(weights):
    return json.dumps({"metadata": {"total_size": 6}, "weight_map": weights})


INDEX = {
    "two-files": index({"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"}),
    "one-file": index({"c": "2.safetensors"}),
    "missing-tensor": index({"c": "2.safetensors", "d": "2.safetensors"}),
    "other-file": index({"a": "2.safetensors"}),
    "no-file": index({"a": "3.safetensors"}),
    "parent": index({"a": "../1.safetensors"}),
    "itself": index({"a": "index.json"}),
    "twice": '{"weight_map": {"c": "2.safetensors", "c": "2.safetensors"}}',
    "deep": "[" * 200,
    "no-map": '{"weight_map": []}',
}


def checkpoint(tensors, version=2, **changes):
    """The index of a checkpoint of two files."""
    model = "".join(f"{name} {t['dtype']} [{', '.join(map(str, t['shape']))}]\n" for name, t in sorted(tensors.items())
                    if t["kind"] in ("param", "buffer"))
    fields = {"format": "shoal checkpoint", "version": version, "program": "mlp", "plan": "mesh data=2", "ranks": 2, "step": 7,
              "seed": 0, "data": {"epoch": 1, "batch": 2, "rows": 30, "batch_rows": 8, "shuffle": True},
              "fingerprint": crc32c(model.encode()), "tensors": tensors,
              "files": {name: {"bytes": 100, "crc32c": "e3069283"} for name in ("a", "b")}, **changes}
    text = "{\n" + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in fields.items())
    return text + f'"index_crc32c": "{crc32c(text.encode())}"\n}}\n'


def box(file, start, shape):
    """The target's files hold tensors of some shapes, each with a name."""
    names = {(1, 4): "row", (1, 2): "half", (): "step"}
    return {"file": file, "tensor": names.get(tuple(shape), "t"), "start": start, "shape": shape}


def kept(kind, shape, *boxes, dtype="f32", **more):
    return {"kind": kind, "dtype": dtype, "shape": shape, "boxes": list(boxes), **more}


WEIGHT = kept("param", [3, 4], box("a", [0, 0], [1, 4]), box("a", [1, 0], [1, 2]), box("b", [1, 2], [1, 2]),
              box("b", [2, 0], [1, 4]), file_shape=[12])
STEP = kept("step", [], box("a", [], []), dtype="i64")


def model(states=1, step=STEP, kind="state", **of):
    return {"w": {**WEIGHT, "states": states}, "w.m": kept(kind, [1, 4], box("b", [0, 0], [1, 4]), **of), "step": step}


MODEL = model(of="w")
STAIRS = [box("ab"[i % 2], [i, i], [4 - i, 1]) for i in range(4)] + [box("ba"[i % 2], [i, i + 1], [1, 3 - i]) for i in range(3)]
NO_BATCHES = {"epoch": 0, "batch": 0, "rows": 0, "batch_rows": 0, "shuffle": False}
CHECKPOINT = {
    "rows": checkpoint(MODEL),
    "end-of-epoch": checkpoint(MODEL, data={"epoch": 2, "batch": 0, "rows": 9, "batch_rows": 3, "shuffle": True}),
    "far": checkpoint(MODEL, step=2**63 - 1, data={"epoch": 2**63 - 3, "batch": 2, "rows": 30, "batch_rows": 8, "shuffle": False}),
    "too-far": checkpoint(MODEL, step=2**64 - 1),
    "no-batches": checkpoint(MODEL, data=NO_BATCHES),
    "batch-of-none": checkpoint(MODEL, data={**NO_BATCHES, "batch": 1}),
    "columns": checkpoint({"w": kept("param", [2, 4], box("a", [0, 0], [2, 1]), box("b", [0, 1], [2, 3]))}),
    # Boxes that all reach to the end of one dimension: right ones, and a hole that as many elements in an overlap hide.
    "stairs": checkpoint({"w": kept("param", [4, 4], *STAIRS)}),
    "hidden-hole": checkpoint({"w": kept("param", [4, 4], *STAIRS[:-1], box("b", [2, 2], [1, 1]))}),
    "cut-everywhere": checkpoint({"w": kept("param", [2] * 11, box("a", [0] * 11, [1] * 11), box("b", [1] * 11, [1] * 11))}),
    "nothing": checkpoint({}),
    "overlap": checkpoint({"w": kept("param", [4], box("a", [0], [3]), box("b", [2], [2]))}),
    "hole": checkpoint({"w": kept("param", [4], box("a", [0], [1]), box("b", [2], [2]))}),
    "outside": checkpoint({"w": kept("param", [4], box("a", [2**64 - 1], [2]))}),
    "overflow": checkpoint({"w": kept("param", [2**32, 2**32], box("a", [0, 0], [2**32, 2**32]))}),
    "empty-tensor": checkpoint({"w": kept("buffer", [0, 3])}),
    "newer": checkpoint({}, version=3),
    "older": checkpoint({"w": WEIGHT, "step": STEP}, version=1),
    "no-state": checkpoint({"w": WEIGHT}),
    "state-of-nobody": checkpoint(model()),
    "state-of-none": checkpoint(model(of="u")),
    "state-of-itself": checkpoint(model(of="w.m")),
    "state-of-step": checkpoint(model(of="step")),
    "part-of-state": checkpoint(model(states=2**64 - 1, of="w")),
    "uncounted-state": checkpoint(model(states=0, of="w")),
    "step-of": checkpoint(model(of="w", step={**STEP, "of": "w"})),
    "step-with-states": checkpoint(model(of="w", step={**STEP, "states": 1})),
    "unknown-kind": checkpoint(model(of="w", kind="grad")),
    "other-file": checkpoint({"w": kept("param", [1], box("../a", [0], [1]))}),
    "cut": checkpoint({"w": WEIGHT})[:200],
    "deep": checkpoint({}, step=[[[[[[[[[[]]]]]]]]]]),
}
GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.0, "resid_pdrop": 0.1,
        "embd_pdrop": 0.1, "architectures": ["GPT2LMHeadModel"], "n_inner": None, "use_cache": True}
LLAMA = {"model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 8192, "hidden_size": 8192,
         "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "intermediate_size": 28672,
         "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": None, "attention_bias": False,
         "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
CONFIG = {
    "gpt2": json.dumps(GPT2),
    "gpt2-dropout": json.dumps({**GPT2, "attn_pdrop": 0.1}),
    "gpt2-untied": json.dumps({**GPT2, "tie_word_embeddings": False, "scale_attn_by_inverse_layer_idx": True}),
    "gpt2-heads": json.dumps({**GPT2, "n_head": 7}),
    "llama": json.dumps(LLAMA),
    "llama-bias": json.dumps({**LLAMA, "attention_bias": True, "mlp_bias": True, "head_dim": 64}),
    "llama-rope": json.dumps({**LLAMA, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}),
    "llama-rope-parameters": json.dumps({**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}),
    "mistral": json.dumps({**LLAMA, "model_type": "mistral", "sliding_window": 4096}),
    "unknown-type": json.dumps({**LLAMA, "model_type": "a\nb\u007f"}),
    "unknown-field": json.dumps({**LLAMA, "quantization_config\n": {"bits": 4}}),
    "huge": json.dumps({**LLAMA, "hidden_size": 2**64 - 1, "rope_theta": 1e300}),
    "negative": json.dumps({**LLAMA, "num_hidden_layers": -1}),
    "fraction": json.dumps({**GPT2, "n_layer": 1.5}),
    "twice": '{"model_type": "gpt2", "model_type": "llama"}',
    "deep": "[" * 200,
    "number": "1e999",
}


def checksum(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


def payload(data, size=None, front=b"\x7fELF runtime"):
    footer = struct.pack("<QQ", len(data) if size is None else size, checksum(data)) + b"SHOALPA2"
    return front + data + footer


PAYLOAD = {
    "no-object": payload(b"no shared object"),
    "cut-object": payload(b"\x7fELF\2\1\1" + bytes(57)),
    "long": payload(b"abc", size=2**63),
    "damaged": payload(b"abc")[:-20] + bytes(4) + payload(b"abc")[-16:],
    "none": b"\x7fELF",
}
RUN_OPTIONS = {
    "train": "--data\nx=x.npy\n--steps\n10\n--seed\n3\n--shuffle\n--log-every\n2\n--threads\n4",
    "files": "--data\nx=a\n--load\np\n--dump-params\np\n--dump-grads\ng\n--metrics\nm\n--report\nr",
    "infer": "--data=x=x.npy\n--output\nout=out.npy\n--no-progress",
    "help": "--help",
    "version": "--version",
    "resume": "--data\nx=x.npy\n--resume\nruns\n--save\nruns\n--save-every\n10\n--keep\n2",
    "epochs": "--epochs\n18446744073709551616",
    "names": "--data\ny=y.npy\n--data\nx\n--data\n=",
    "unknown": "--bogus\n-x\n--\nextra",
}
COMPILER_OPTIONS = {
    "plan": "m.mlir\n-o\nout\n--mesh\ndata=2,tensor=4\n--bucket-mb\n1.5\n--no-overlap\n--verify-plan",
    "adam": "m.mlir\n-o\nout\n--optimizer\nadamw\n--lr\n1e-3\n--betas\n0.9,0.99\n--eps\n1e-8\n--weight-decay\n0.1",
    "text": "m.mlir\n--emit\nexec\n--report\nr.json\n--dtype\nf64\n--mode\ninfer",
    "mesh": "m.mlir\n--mesh\ndata=99999999999999999999,=1,,",
    "numbers": "m.mlir\n--lr\nnan\n--momentum\n-0\n--clip-grad-norm\ninf",
    "help": "--help",
    "version": "--version",
}



def board(ranks, entry=b"", version=1, entry_bytes=448, count=None):
    """A progress board: a header of 64 bytes, then an entry a rank; see core/board.h."""
    header = struct.pack("<8sIIII40x", b"SHOALBRD", version, ranks, entry_bytes, 0)
    return header + entry.ljust(entry_bytes, b"\0") * (ranks if count is None else count)


def board_entry(state, phase, text, step=3):
    place = struct.pack("<IIIIQQ96s", 2, phase, 0, 0, 0, 0, text)
    return struct.pack("<iIIIQ40x", 1234, state, 0, 2000, step) + struct.pack("<16Q", *range(16)) + place + place


BOARD = {
    "starting": board(3),
    "computing": board(2, board_entry(2, 0, b"kernel 'k'")),
    "waiting": board(4, board_entry(2, 2, b"all_reduce 'g'")),
    "evaluating": board(1, board_entry(3, 1, b"\xff\n\0after", step=2**64 - 1)),
    "unknown-state": board(1, board_entry(2**32 - 1, 2**32 - 1, b"x" * 96)),
    "cut": board(3)[:-1],
    "no-ranks": board(0),
    "many-ranks": board(2**32 - 1, count=1),
    "version": board(1, version=2),
    "entry-bytes": board(1, entry_bytes=64),
    "short": b"SHOALBRD",
}


def symbol(path, name):
    """The bytes of a data symbol of a shared object."""
    with open(path, "rb") as f:
        data = f.read()
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            text, _, _, index, value, length = struct.unpack_from("<IBBHQQ", data, at)
            end = data.index(b"\0", names + text)
            if data[names + text:end] == name:
                home = sections[index]
                start = value - home[3] + home[4]
                return data[start:start + length]
    raise KeyError(name)


def program(shoalc, model, *options):
    """The blob of a model of test/EndToEnd, or of one given as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(MODELS, model)
        if "\n" in model:
            path = os.path.join(folder, "model.mlir")
            with open(path, "w") as file:
                file.write(model)
        out = os.path.join(folder, "payload.so")
        subprocess.run([shoalc, path, "--emit", "obj", "-o", out, *options], check=True)
        return symbol(out, b"shoal_program")


def modules():
    """Each module of each test, without comments; the mesh that tests of plans leave open is filled in."""
    found = {}
    for path, _, names in sorted(os.walk(TESTS)):
        for name in sorted(n for n in names if n.endswith(".mlir")):
            with open(os.path.join(path, name)) as f:
                text = f.read().replace("<MESH>", '<["data"=2, "tensor"=2]>')
            for i, module in enumerate(text.split("// -----")):
                lines = [line for line in module.splitlines() if line.strip() and not line.lstrip().startswith("//")]
                if lines:
                    found[f"{name[:-5]}-{i}.mlir"] = "\n".join(lines) + "\n"
    return found


def attributes(texts):
    """What of our dialects stands between the brackets of an attribute or type of the tests, one a file."""
    found = set()
    for text in texts:
        for match in re.finditer(r"[#!](?:nn|dist|exec)[.]\w+", text):
            end = match.end()
            if text[end:end + 1] == "<":
                depth = 0
                for end in range(end, len(text)):
                    depth += (text[end] == "<") - (text[end] == ">" and text[end - 1] != "-")
                    if depth == 0:
                        break
                end += 1
            found.add(text[match.start():end])
    return {f"{i}": text for i, text in enumerate(sorted(found))}


def write(folder, target, inputs):
    path = os.path.join(folder, target)
    os.makedirs(path, exist_ok=True)
    for name, data in inputs.items():
        with open(os.path.join(path, name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())


def main():
    folder = sys.argv[1]
    if len(sys.argv) == 2:
        write(folder, "npy", NPY)
        write(folder, "safetensors", SAFETENSORS)
        write(folder, "index", INDEX)
        write(folder, "checkpoint", CHECKPOINT)
        write(folder, "config", CONFIG)
        write(folder, "payload", PAYLOAD)
        write(folder, "board", BOARD)
        write(folder, "run-options", RUN_OPTIONS)
        write(folder, "compiler-options", COMPILER_OPTIONS)
    else:
        shoalc = sys.argv[2]
        made = modules()
        write(folder, "mlir", made)
        write(folder, "attributes", attributes(made.values()))
        write(folder, "program", {
            "one-device": program(shoalc, "reused_weight.mlir"),
            "data-parallel": program(shoalc, "reused_weight.mlir", "--mesh", "data=2"),
            "infer": program(shoalc, "special_values.mlir", "--mode", "infer"),
            "buckets": program(shoalc, local_program(2, 2, sharded=True)[0]),
            "stages": program(shoalc, pipelined_step(data=2, stages=2)),
            "padded": program(shoalc, "mlp_mse_odd_sizes.mlir", "--mesh", "data=3", "--optimizer", "adam"),
        })


if __name__ == "__main__":
    main()
