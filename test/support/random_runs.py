#!/usr/bin/env python3
"""Random small models under random plans, compiled and run: losses, gradients and parameters are those of one device.

usage: random_runs.py --work FOLDER [--seed S] [--programs N] [--keep]

A model is a few blocks of odd sizes in float64: embeddings, norms, biases, tables that are tied, weights that are read
several times, parameters that are squashed first, scalars, in layers or in none, targets that are ignored. A plan is a
mesh of up to 4 ranks with a stage of ZeRO, buckets of a few elements, micro-batches, recompute, an optimizer. Both run
for two steps: what they write is equal to 1e-8, and the plan's own counts of bytes are what the compiler promises. A
plan that the compiler refuses with a reason known here is drawn again. A failure prints the seed, which alone makes the
model and its plan again.
"""

import math
import os
import random
import shutil
import sys

import shoal
from metrics import read_metrics
from tensor_files import count, read_safetensors, tensor, write_npy
from work_parser import WorkParser

TOLERANCE = 1e-8
NOISE = 1e-13  # of sums whose terms are of size 1, which is what a gradient that is mathematically 0 consists of
MOST_RANKS = 4
# What a plan drawn at random may ask for and not get.
REFUSALS = [
    "finds nothing to shard",
    "nothing to shard",
    "finds no residual stream",
    "none of its ops has 'nn.layer'",
    "in one run, or shard by one of them",
]


def type_of(shape, element="f64"):
    return "tensor<" + "".join(f"{s}x" for s in shape) + element + ">"


class Model:
    """Text of a training program, built block by block; `value` of `shape` is where it stands."""

    def __init__(self, rng):
        self.rng = rng
        self.arguments, self.ops, self.params, self.inputs = [], [], [], {}
        self.batch = rng.choice([1, 2, 3, 4, 5, 6, 7, 8])
        self.has_layers = rng.random() < 0.6
        self.layer = None
        self.shared = None  # a square weight that several blocks read
        self.table = None
        self.begin()
        for layer in range(rng.choice([0, 1, 1, 2, 3])):
            self.layer = f"h.{layer}" if self.has_layers else None
            before, shape = self.value, self.shape
            for _ in range(rng.randint(1, 3)):
                rng.choice([self.linear, self.linear, self.activation, self.norm, self.scale, self.shift, self.squashed,
                            self.again])()
            if self.shape == shape and rng.random() < 0.5:
                self.binary("add", before, shape)
        self.layer = None
        self.end()

    def param(self, shape):
        name = f"p{len(self.params)}"
        init = self.rng.choice(["uniform(-0.5, 0.5)", "normal(0.0, 0.4)", "uniform(0.2, 0.7)"])
        label = f"{self.layer}.{name}" if self.layer else name
        self.arguments.append([f"%{name}: {type_of(shape)}", f'nn.param = #nn.param<"{label}", init = {init}>'])
        self.params.append((len(self.arguments) - 1, shape))
        return f"%{name}"

    def input(self, name, shape, element="f64"):
        self.inputs[name] = (shape[1:], element)
        self.arguments.append([f"%{name}: {type_of(shape, element)}", f'nn.input = "{name}"'])
        return f"%{name}"

    def op(self, text, types, results=1):
        name = f"%v{len(self.ops)}"
        layer = f' {{nn.layer = "{self.layer}"}}' if self.layer else ""
        self.ops.append(f"  {name}{f':{results}' if results > 1 else ''} = {text}{layer} : {types}")
        return name + ("#0" if results > 1 else "")

    def binary(self, kind, other, other_shape):
        self.value = self.op(f"nn.{kind} {self.value}, {other}",
                             f"({type_of(self.shape)}, {type_of(other_shape)}) -> {type_of(self.shape)}")

    # -- blocks ---------------------------------------------------------------------------

    def begin(self):
        if self.rng.random() < 0.5:
            self.shape = [self.batch, self.rng.choice([1, 2, 3, 4, 5, 7])]
            self.value = self.input("x", self.shape)
            return
        length, width = self.rng.choice([1, 2, 3, 5]), self.rng.choice([2, 3, 4, 6])
        self.vocabulary = self.rng.choice([3, 5, 7, 11])
        ids = self.input("ids", [self.batch, length], "i64")
        self.table = self.param([self.vocabulary, width])
        self.shape = [self.batch, length, width]
        types = f"{type_of([self.vocabulary, width])}, {type_of([self.batch, length], 'i64')}"
        self.value = self.op(f"nn.embedding {self.table}, {ids}", f"({types}) -> {type_of(self.shape)}")
        if self.rng.random() < 0.6:
            self.binary("add", self.param([length, width]), [length, width])

    def matmul(self, weight, columns):
        before, self.shape = self.shape, self.shape[:-1] + [columns]
        self.value = self.op(f"nn.matmul {self.value}, {weight}",
                             f"({type_of(before)}, {type_of([before[-1], columns])}) -> {type_of(self.shape)}")

    def linear(self, columns=None):
        columns = columns or (self.shape[-1] if self.table else self.rng.choice([1, 2, 3, 5, 8]))
        self.matmul(self.param([self.shape[-1], columns]), columns)
        if self.rng.random() < 0.7:
            self.binary("add", self.param([columns]), [columns])

    def again(self):
        if not self.shared:
            self.shared = (self.param([self.shape[-1]] * 2), self.shape[-1])
        if self.shared[1] == self.shape[-1]:
            self.matmul(*self.shared)

    def activation(self):
        kind = self.rng.choice(["relu", "tanh", "sigmoid", "silu", "gelu tanh", "gelu erf"])
        self.value = self.op(f"nn.{kind} {self.value}", type_of(self.shape))

    def norm(self):
        width = [self.shape[-1]]
        types = f"{type_of(self.shape)}, {type_of(width)}"
        if self.rng.random() < 0.5:
            scale, shift = self.param(width), self.param(width)
            self.value = self.op(f"nn.layer_norm {self.value}, {scale}, {shift} eps = 0.01", types, 3)
        else:
            self.value = self.op(f"nn.rms_norm {self.value}, {self.param(width)} eps = 0.01", types, 2)

    def scale(self):
        shape = self.rng.choice([[], [1], self.shape[-1:]])
        self.binary("mul", self.param(shape), shape)

    def shift(self):
        shape = self.rng.choice([[], [1], self.shape[-1:]])
        self.binary(self.rng.choice(["add", "sub"]), self.param(shape), shape)

    def squashed(self):
        width = self.shape[-1:]
        self.binary("add", self.op(f"nn.tanh {self.param(width)}", type_of(width)), width)

    def end(self):
        if self.table and self.rng.random() < 0.5:
            before, self.shape = self.shape, self.shape[:-1] + [self.vocabulary]
            types = f"{type_of(before)}, {type_of([self.vocabulary, before[-1]])}"
            self.value = self.op(f"nn.tensordot {self.value}, {self.table} axes = 1 {{transpose_b}}",
                                 f"({types}) -> {type_of(self.shape)}")
        else:
            self.linear(self.vocabulary if self.table else self.rng.choice([1, 2, 3, 5]))
        how = self.rng.choice(["mean", "mean", "sum"])
        kind = self.rng.choice(["mse", "classes", "classes", "own"])
        if kind == "classes":
            y, self.classes = self.input("y", self.shape[:-1], "i64"), self.shape[-1]
            self.loss = self.op(f"nn.cross_entropy {how} {self.value}, {y}",
                                f"({type_of(self.shape)}, {type_of(self.shape[:-1], 'i64')}) -> tensor<f64>", 2)
            return
        y = self.input("y", self.shape)
        if kind == "mse":
            self.loss = self.op(f"nn.mse_loss {how} {self.value}, {y}",
                                f"({type_of(self.shape)}, {type_of(self.shape)}) -> tensor<f64>")
            return
        self.binary("mul", y, self.shape)
        self.value = self.op(f"nn.tanh {self.value}", type_of(self.shape))
        self.loss = self.op(f"nn.reduce {how} {self.value} dims = {list(range(len(self.shape)))}",
                            f"{type_of(self.shape)} -> tensor<f64>")
        # A term of a parameter alone, which is no sum over the batch.
        at, shape = self.rng.choice(self.params)
        param = self.arguments[at][0].split(":")[0]
        term = self.op(f"nn.tanh {param}", type_of(shape))
        if shape:
            term = self.op(f"nn.reduce sum {term} dims = {list(range(len(shape)))}", f"{type_of(shape)} -> tensor<f64>")
        self.loss = self.op(f"nn.add {self.loss}, {term}", "(tensor<f64>, tensor<f64>) -> tensor<f64>")

    def text(self, shardings=()):
        """`shardings` are of parameters, by the number of their arguments."""
        arguments = ",\n    ".join(
            f"{head} {{{', '.join([role] + ([f'dist.sharding = {shardings[i]}'] if i in shardings else []))}}}"
            for i, (head, role) in enumerate(self.arguments))
        return (f"func.func @model(\n    {arguments})\n    -> (tensor<f64> {{nn.loss}}) {{\n" + "\n".join(self.ops) +
                f"\n  return {self.loss} : tensor<f64>\n}}\n")

    def write_data(self, rows, work):
        """A .npy file for each input; the options that name them."""
        options = []
        for name, (shape, element) in self.inputs.items():
            shape = [rows] + shape
            if name == "ids":
                values = [self.rng.randrange(self.vocabulary) for _ in range(count(shape))]
            elif element == "i64":
                # The first of a batch is never ignored, so that the mean over the others is a number.
                each = count(shape) // rows * self.batch
                values = [-100 if i % each and self.rng.random() < 0.3 else self.rng.randrange(self.classes)
                          for i in range(count(shape))]
            else:
                values = [self.rng.gauss(0, 1) for _ in range(count(shape))]
            write_npy(f"{work}/{name}.npy", tensor(element, shape, values))
            options += ["--data", f"{name}={work}/{name}.npy"]
        return options


class Plan:
    def __init__(self, rng, model):
        while True:
            sizes = {"replica": rng.choice([1, 1, 1, 2]), "data": rng.choice([1, 2, 2, 3, 4]),
                     "tensor": rng.choice([1, 1, 1, 2, 3])}
            self.ranks = math.prod(sizes.values())
            if self.ranks <= MOST_RANKS:
                break
        axes = [f"{axis}={size}" for axis, size in sizes.items() if size > 1 or axis == "data"]
        rng.shuffle(axes)
        self.flags, self.shardings = ["--mesh", ",".join(axes)], {}
        if sizes["tensor"] > 1 and rng.random() < 0.4:
            self.flags.append("--tensor-parallel")
        elif sizes["tensor"] > 1:
            cut = [param for param in model.params if param[1] and rng.random() < 0.6]
            for at, shape in cut or [param for param in model.params if param[1]][-1:]:
                dim = rng.randrange(len(shape))
                dims = ", ".join('{"tensor"}' if d == dim else "{}" for d in range(len(shape)))
                self.shardings[at] = f"#dist.sharding<@mesh, [{dims}]>"
        if zero := rng.choice([0, 1, 2, 3, 3]):
            self.flags += ["--zero", str(zero)]
        if rng.random() < 0.7:
            self.flags += ["--bucket-mb", rng.choice(["0.00001", "0.00005", "0.0001", "0.0003", "1"])]
        if rng.random() < 0.6:
            self.flags += ["--microbatches", str(rng.randint(1, min(4, model.batch)))]
        if model.has_layers and any("nn.layer" in op for op in model.ops) and rng.random() < 0.5:
            self.flags += ["--recompute", rng.choice(["selective", "full"])]
        if rng.random() < 0.2:
            self.flags.append("--no-overlap")
        # A large eps: the noise of a gradient that is mathematically 0 is not divided by itself.
        self.optimizer = rng.choice(["--optimizer sgd --lr 0.05", "--optimizer sgd --lr 0.05 --momentum 0.9",
                                     "--optimizer adam --lr 0.01 --eps 0.001",
                                     "--optimizer adamw --lr 0.01 --eps 0.001 --weight-decay 0.1"]).split()
        if rng.random() < 0.4:
            self.optimizer += ["--clip-grad-norm", rng.choice(["0.05", "1.0"])]
        if rng.random() < 0.4:
            self.optimizer.append("--grad-norm")


def same(got, expected, scale):
    """NaN is itself: the loss of a batch of which nothing is left."""
    if got is None or expected is None or math.isnan(expected):
        return got == expected or (got is not None and math.isnan(got))
    return abs(got - expected) <= TOLERANCE * scale + NOISE


def compare_files(what, got, expected):
    if sorted(got) != sorted(expected):
        return [f"{what} are {sorted(got)}, one device has {sorted(expected)}"]
    wrong = []
    for name, whole in expected.items():
        scale = max(map(abs, whole.data), default=0)
        if got[name].shape != whole.shape:
            wrong.append(f"{what}: {name} is of shape {got[name].shape}, one device's of {whole.shape}")
        elif at := [i for i, (g, e) in enumerate(zip(got[name].data, whole.data)) if not same(g, e, scale)]:
            wrong.append(f"{what}: {name}[{at[0]}] is {got[name].data[at[0]]!r}, one device has {whole.data[at[0]]!r}")
    return wrong


def compare_steps(got, expected):
    for g, e in zip(got, expected):
        for name in e.keys() - {"wall_s"}:
            if name not in g or not same(g[name], e[name], max(1.0, abs(e[name] or 0))):
                return [f"step {e['step']}: {name} is {g.get(name)!r}, one device has {e[name]!r}"]
    return [] if len(got) == len(expected) == 2 else [f"{len(got)} steps, one device has {len(expected)}, expected 2"]


def check(work, seed):
    """What is wrong with the run of a seed, or None when the compiler refuses its plan; and its flags."""
    rng = random.Random(seed)
    model = Model(rng)
    plan = Plan(rng, model)
    rows = rng.choice([model.batch, model.batch + 1, 2 * model.batch + 1, max(1, model.batch - 1)])
    os.makedirs(work, exist_ok=True)
    for name, text in (("one.mlir", model.text()), ("plan.mlir", model.text(plan.shardings))):
        with open(f"{work}/{name}", "w") as f:
            f.write(text)
    data = model.write_data(rows, work)
    words = " ".join(plan.flags + plan.optimizer) + f" on {rows} rows"
    try:
        try:
            shoal.shoalc(f"{work}/plan.mlir", f"{work}/plan", *plan.flags, *plan.optimizer,
                         "--report", f"{work}/promised.json")
        except SystemExit as end:
            if any(refusal in str(end) for refusal in REFUSALS):
                return None, words
            raise
        shoal.shoalc(f"{work}/one.mlir", f"{work}/one", *plan.optimizer)
        for name, ranks in (("one", 1), ("plan", plan.ranks)):
            shoal.run(ranks, f"{work}/{name}", *data, "--steps", "2", "--seed", str(seed),
                      "--metrics", f"{work}/{name}.jsonl", "--dump-grads", f"{work}/{name}.grads",
                      "--dump-params", f"{work}/{name}.params", "--report", f"{work}/{name}.json")
    except SystemExit as end:
        return [str(end)], words
    wrong = compare_steps(read_metrics(f"{work}/plan.jsonl"), read_metrics(f"{work}/one.jsonl"))
    for kind, what in (("grads", "gradients"), ("params", "parameters")):
        wrong += compare_files(what, read_safetensors(f"{work}/plan.{kind}"), read_safetensors(f"{work}/one.{kind}"))
    promised, counted = shoal.ranks_of_report(f"{work}/promised.json"), shoal.ranks_of_report(f"{work}/plan.json")
    wrong += [f"rank {c['rank']}: promised {p}, counted {c}" for p, c in zip(promised, counted) if p != c]
    if len(promised) != len(counted):
        wrong.append(f"promised {len(promised)} ranks, counted {len(counted)}")
    return wrong, words


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=12)
    parser.add_argument("--keep", action="store_true", help="the files of programs that are right, too")
    args = parser.parse_args()
    if args.programs < 1:
        shoal.wrong_usage(f"--programs must be at least 1, got: {args.programs}")
    seed, right, failed, refused = args.seed, 0, 0, 0
    while right + failed < args.programs:
        work = os.path.join(args.work, f"run-{seed}")
        wrong, words = check(work, seed)
        if wrong:
            print(f"seed {seed}, {words}:", *wrong[:4], sep="\n  ", flush=True)
        elif not args.keep:
            shutil.rmtree(work)
        refused += wrong is None
        failed += bool(wrong)
        right += wrong == []
        if refused > 2 * args.programs:
            sys.exit(f"the compiler refuses {refused} plans, more than twice as many as are to run: {args.programs}")
        seed += 1
    print(f"{right} of {args.programs} random runs are those of one device, {refused} plans drawn again")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
