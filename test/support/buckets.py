#!/usr/bin/env python3
"""Parameters, optimizer state and gradients in buckets, written by hand at L2, against the same model without them.

usage: buckets.py --work FOLDER [--full]

A layer with a bias and one more, under SGD with momentum. In the local program all three parameters lie one after another in one
argument, their velocities and gradients in others; the data axis cuts them where it happens to, and the tensor axis shards one of
them, with padding. `sharded` keeps a part of the parameters and gathers it (ZeRO-3), `whole` keeps all and updates a part (ZeRO-1).
First values, --load, --dump-grads and --dump-params are those of the model on one device.
"""

import math
import sys

import shoal
from golden import Checker
from tensor_files import read_safetensors, tensor, write_npy
from work_parser import WorkParser

ROWS, FEATURES, HIDDEN, OUT = 12, 5, 3, 5
RATE, MOMENTUM, STEPS = 0.02, 0.9, 3
MEMBERS = [("w1", "init = normal(0.0, 0.5), file = [15]"), ("b1", "init = constant(0.25)"), ("w2", "init = normal(0.0, 0.5)")]

GLOBAL = f"""
func.func @step(
    %x: tensor<{ROWS}x{FEATURES}xf64> {{nn.input = #nn.input<"x", unbatched>}},
    %w1: tensor<{FEATURES}x{HIDDEN}xf64> {{nn.param = #nn.param<"w1", {MEMBERS[0][1]}>}},
    %b1: tensor<{HIDDEN}xf64> {{nn.param = #nn.param<"b1", {MEMBERS[1][1]}>}},
    %w2: tensor<{HIDDEN}x{OUT}xf64> {{nn.param = #nn.param<"w2", {MEMBERS[2][1]}>}}) -> (tensor<f64> {{nn.loss}}) {{
  %a = nn.matmul %x, %w1 : (tensor<{ROWS}x{FEATURES}xf64>, tensor<{FEATURES}x{HIDDEN}xf64>) -> tensor<{ROWS}x{HIDDEN}xf64>
  %h = nn.add %a, %b1 : (tensor<{ROWS}x{HIDDEN}xf64>, tensor<{HIDDEN}xf64>) -> tensor<{ROWS}x{HIDDEN}xf64>
  %o = nn.matmul %h, %w2 : (tensor<{ROWS}x{HIDDEN}xf64>, tensor<{HIDDEN}x{OUT}xf64>) -> tensor<{ROWS}x{OUT}xf64>
  %oo = nn.mul %o, %o : (tensor<{ROWS}x{OUT}xf64>, tensor<{ROWS}x{OUT}xf64>) -> tensor<{ROWS}x{OUT}xf64>
  %sum = nn.reduce sum %oo dims = [0, 1] : tensor<{ROWS}x{OUT}xf64> -> tensor<f64>
  %n = nn.constant dense<{ROWS}.0> : tensor<f64>
  %loss = nn.div %sum, %n : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss : tensor<f64>
}}
"""


def local_program(data, tensor_ranks, sharded):
    """One device's step on a mesh of data x tensor; `sharded`: a rank has its part of the parameters only."""
    rows, out = ROWS // data, -(-OUT // tensor_ranks)
    sizes = [FEATURES * HIDDEN, HIDDEN, HIDDEN * out]
    elements = sum(sizes)
    whole = -(-elements // data) * data
    part = whole // data
    types = [f"tensor<{FEATURES}x{HIDDEN}xf64>", f"tensor<{HIDDEN}xf64>", f"tensor<{HIDDEN}x{out}xf64>"]
    pieces = ["", "", f' of <3, tensor<{HIDDEN}x{OUT}xf64>, <@mesh, [{{}}, {{"tensor"}}]>>']

    def bucket(roles):
        members = ", ".join(f"<{role}, {type_}{piece}>" for role, type_, piece in zip(roles, types, pieces))
        return f"dist.bucket = #dist.bucket<[{members}]>"

    def piece(index, cut):
        axes = '{"data"}' if cut else "{}"
        return f"dist.global = #dist.global<{index}, tensor<{whole}xf64>, <@mesh, [{axes}]>>"

    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    kept = part if sharded else whole
    lines = []
    if sharded:
        lines.append(f'%all = dist.all_gather {{"data"}} dim = 0 %p {{exec.class = "workspace", reason = "by hand"}} : tensor<{part}xf64> -> tensor<{whole}xf64>')
    source = "%all" if sharded else "%p"
    for (name, _), begin, size, type_ in zip(MEMBERS, begins, sizes, types):
        lines.append(f"%{name} = dist.unpack {source}[{begin}:{begin + size}] : (tensor<{whole}xf64>) -> {type_}")
    x, h, o = (f"tensor<{rows}x{n}xf64>" for n in (FEATURES, HIDDEN, out))
    lines += [
        f"%a = nn.matmul %x, %w1 : ({x}, {types[0]}) -> {h}",
        f"%h = nn.add %a, %b1 : ({h}, {types[1]}) -> {h}",
        f"%o = nn.matmul %h, %w2 : ({h}, {types[2]}) -> {o}",
        f"%oo = nn.mul %o, %o : ({o}, {o}) -> {o}",
        f"%mine = nn.reduce sum %oo dims = [0, 1] : {o} -> tensor<f64>",
        '%sum = dist.all_reduce {"data", "tensor"} sum %mine {reason = "by hand"} : tensor<f64>',
        f"%n = nn.constant dense<{ROWS}.0> : tensor<f64>",
        "%loss = nn.div %sum, %n : (tensor<f64>, tensor<f64>) -> tensor<f64>",
        f"%scale = nn.constant dense<{2 / ROWS}> : tensor<f64>",
        f"%do = nn.mul %o, %scale : ({o}, tensor<f64>) -> {o}",
        f"%dw2 = nn.matmul %h, %do {{transpose_a}} : ({h}, {o}) -> {types[2]}",
        f"%dhp = nn.matmul %do, %w2 {{transpose_b}} : ({o}, {types[2]}) -> {h}",
        f'%dh = dist.all_reduce {{"tensor"}} sum %dhp {{reason = "by hand"}} : {h}',
        f"%dw1 = nn.matmul %x, %dh {{transpose_a}} : ({x}, {h}) -> {types[0]}",
        f"%db1 = nn.reduce sum %dh dims = [0] : {h} -> {types[1]}",
    ]
    packed, inputs = [f"%d{name}[0:{size}]" for (name, _), size in zip(MEMBERS, sizes)], list(types)
    if whole > elements:
        lines.append(f"%zeros = nn.constant dense<0.0> : tensor<{whole - elements}xf64>")
        packed.append(f"%zeros[0:{whole - elements}]")
        inputs.append(f"tensor<{whole - elements}xf64>")
    lines += [
        f"%packed = dist.pack {', '.join(packed)} group 0 at 0 : ({', '.join(inputs)}) -> tensor<{whole}xf64>",
        f'%g = dist.reduce_scatter {{"data"}} sum dim = 0 %packed {{reason = "by hand"}} : tensor<{whole}xf64> -> tensor<{part}xf64>',
        f"%rate = nn.constant dense<{RATE}> : tensor<f64>",
    ]
    if not sharded:
        lines.append(f'%q = dist.all_slice {{"data"}} dim = 0 %p {{reason = "by hand"}} : tensor<{whole}xf64> -> tensor<{part}xf64>')
    old = "%p" if sharded else "%q"
    lines.append(f"%new, %newv = nn.momentum_update {old}, %g, %v lr = %rate "
                 f"{{momentum = {MOMENTUM} : f64, weight_decay = 0.0 : f64}} : tensor<{part}xf64>, tensor<f64>")
    result = "%new"
    if not sharded:
        lines.append(f'%whole = dist.all_gather {{"data"}} dim = 0 %new {{reason = "by hand"}} : tensor<{part}xf64> -> tensor<{whole}xf64>')
        result = "%whole"
    params = [f'#nn.param<"{name}", {init}>' for name, init in MEMBERS]
    state = [f'#nn.state<"{name}.velocity", of = "{name}", init = 0.0>' for name, _ in MEMBERS]
    grads = [f'"{name}"' for name, _ in MEMBERS]
    body = "\n".join("  " + line for line in lines)
    return f"""
dist.mesh @mesh <["data"={data}, "tensor"={tensor_ranks}]>
func.func @step(
    %x: {x} {{nn.input = #nn.input<"x", unbatched>, dist.global = #dist.global<0, tensor<{ROWS}x{FEATURES}xf64>, <@mesh, [{{"data"}}, {{}}]>>}},
    %p: tensor<{kept}xf64> {{nn.param = #nn.param<"bucket.0", init = zeros>, {piece(1, sharded)}, {bucket(params)}}},
    %v: tensor<{part}xf64> {{nn.state = #nn.state<"bucket.0.velocity", of = "bucket.0", init = 0.0>, {piece(2, True)}, {bucket(state)}}})
    -> (tensor<f64> {{nn.loss}}, tensor<{kept}xf64> {{nn.updates = "bucket.0", {piece(1, sharded)}}},
        tensor<{part}xf64> {{nn.updates = "bucket.0.velocity", {piece(2, True)}}},
        tensor<{part}xf64> {{nn.grad = "bucket.0", {piece(3, True)}, {bucket(grads)}}}) {{
{body}
  return %loss, {result}, %newv, %g : tensor<f64>, tensor<{kept}xf64>, tensor<{part}xf64>, tensor<{part}xf64>
}}
""", whole


def equal(check, what, path, wanted):
    found, reference = read_safetensors(path), read_safetensors(wanted)
    if sorted(found) != sorted(reference):
        check.failures.append(f"{what} are of {sorted(found)}, expected {sorted(reference)}")
        return
    for name, values in reference.items():
        if found[name].shape != values.shape:
            check.failures.append(f"{what} of {name} have shape {found[name].shape}, expected {values.shape}")
        check.tensor(f"{what} of {name}", found[name], {"values": list(values.data)})


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--full", action="store_true", help="every mesh with both layouts")
    args = parser.parse_args()
    work = args.work
    values = [math.sin(0.7 * (i + 1)) for i in range(ROWS * FEATURES)]
    write_npy(f"{work}/x.npy", tensor("f64", (ROWS, FEATURES), values))
    data = ["--data", f"x={work}/x.npy", "--steps", str(STEPS), "--seed", "5"]

    def train(ranks, program, name):
        """From drawn parameters, and on from these."""
        dumped = f"{work}/{name}.params", f"{work}/{name}.grads", f"{work}/{name}.more"
        shoal.run(ranks, program, *data, "--dump-params", dumped[0], "--dump-grads", dumped[1],
                  "--report", f"{work}/{name}.counted.json")
        shoal.run(ranks, program, *data[:-2], "--load", f"{work}/one.params", "--dump-params", dumped[2])
        return dumped

    with open(f"{work}/one.mlir", "w") as f:
        f.write(GLOBAL)
    reference = train(1, shoal.shoalc(f"{work}/one.mlir", f"{work}/one", "--optimizer", "sgd", "--lr", str(RATE),
                                      "--momentum", str(MOMENTUM)), "one")
    plans = [(1, 1, True), (2, 1, False), (3, 1, True), (4, 1, True), (2, 2, False), (2, 2, True)]
    if args.full:
        plans = [(d, t, sharded) for d in (1, 2, 3, 4) for t in (1, 2, 3) for sharded in (False, True) if d * t <= 6]
    failed = False
    for ranks, tensor_ranks, sharded in plans:
        name = f"{ranks}x{tensor_ranks}-{'sharded' if sharded else 'whole'}"
        text, elements = local_program(ranks, tensor_ranks, sharded)
        with open(f"{work}/{name}.mlir", "w") as f:
            f.write(text)
        program = shoal.shoalc(f"{work}/{name}.mlir", f"{work}/{name}", "--report", f"{work}/{name}.promise.json")
        dumped = train(ranks * tensor_ranks, program, name)
        check = Checker(1e-12)
        for what, path, wanted in zip(("parameters", "gradients", "parameters after --load"), dumped, reference):
            equal(check, what, path, wanted)
        promised = shoal.ranks_of_report(f"{work}/{name}.promise.json")
        if promised != shoal.ranks_of_report(f"{work}/{name}.counted.json"):
            check.failures.append("the report of the run is not what shoalc promised")
        part = elements // ranks * 8
        states = {"params": part if sharded else elements * 8, "optimizer": part}
        for kind, wanted in states.items():
            if promised[0]["bytes"][kind] != wanted:
                check.failures.append(f"{promised[0]['bytes'][kind]} bytes of {kind}, expected {wanted}")
        failed |= check.fails(name)
    text = shoal.call([f"{work}/2x2-sharded", "--help"], 60)
    if "param    w1  [15] f64" not in text or "bucket.0" in text:
        print(f"--help must name the tensors of a bucket, got:\n{text}")
        failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
