#!/usr/bin/env python3
"""Random programs under random plans: the local program on all ranks computes what one device does.

usage: random_plans.py --work FOLDER [--opt SHOAL_OPT] [--seed S] [--programs N] [--passes PIPELINE]
                       [--one-axis-per-dimension] [--train]

Each program is a handful of `nn` ops of odd sizes; a random part of its values carries a random
sharding on a random mesh. Some programs are propagated first, the others have a sharding on every
value, so that each op reshards. With --train some arguments are parameters, and what is planned is the
whole training step: gradients, updates, buckets. A failure prints the seed, which alone makes the program again.
"""

import os
import random
import subprocess
import sys

import shoal
from work_parser import WorkParser

MESHES = [
    '<["x"=2]>',
    '<["x"=3]>',
    '<["x"=2, "y"=2]>',
    '<["x"=2, "y"=3]>',
    '<["x"=3, "y"=1, "z"=2]>',
    '<["x"=1]>',
    '<["x"=8]>',
    '<["x"=2, "y"=2, "z"=2]>',
    '<["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>',
]
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 12]


def tensor(shape, dtype="f64"):
    return "tensor<" + "".join(f"{s}x" for s in shape) + dtype + ">"


class Program:
    """Text of a function, built op by op; `values` are (name, shape) of f64 tensors."""

    def __init__(self, rng, one_axis=False, trains=False):
        self.rng = rng
        self.one_axis = one_axis  # per dimension, so that axes can be partitioned in several runs
        self.mesh = rng.choice(MESHES)
        self.axes = [part.split('"')[1] for part in self.mesh.split("=")[:-1] if '"' in part]
        self.axes = [a for a in self.axes if a in "xyz"]
        self.trains = trains
        self.propagates = trains or rng.random() < 0.5
        self.density = rng.choice([0.3, 0.6, 1.0]) if self.propagates else 1.0
        self.values, self.arguments, self.ops, self.parameters = [], [], [], []

    def sharding(self, shape, density=None):
        """A random sharding, or nothing."""
        if self.rng.random() >= (self.density if density is None else density):
            return None
        axes = self.axes[:]
        self.rng.shuffle(axes)
        dims = [[] for _ in shape]
        for axis in axes:
            if dims and self.rng.random() < 0.7:
                dim = self.rng.choice(dims)
                if not (dim and self.one_axis):
                    dim.append(axis)
        text = ", ".join("{" + ", ".join(f'"{a}"' for a in d) + "}" for d in dims)
        return f"#dist.sharding<@mesh, [{text}]>"

    def argument(self, shape, dtype="f64", trained=True):
        name = f"%a{len(self.arguments)}"
        attrs = [f'nn.input = #nn.input<"{name[1:]}", unbatched>']
        if dtype == "f64" and trained and self.trains and (not self.parameters or self.rng.random() < 0.5):
            attrs = [f'nn.param = #nn.param<"{name[1:]}", init = uniform(-1.0, 1.0)>']
            self.parameters.append((name, shape))
        sharding = self.sharding(shape)
        if sharding:
            attrs.append(f"dist.sharding = {sharding}")
        self.arguments.append(f"{name}: {tensor(shape, dtype)} {{{', '.join(attrs)}}}")
        if dtype == "f64":
            self.values.append((name, shape))
        return name

    def op(self, text, types, shape, dtype="f64", attrs=(), more=()):
        """Adds an op; `text` holds {attrs} where its attribute dictionary belongs, `more` the shapes of further results."""
        name = f"%v{len(self.ops)}"
        attrs = list(attrs)
        shardings = [self.sharding(shape)]
        if shardings[0]:
            shardings += [self.sharding(s, density=1.0) for s in more]
            attrs.append(f"dist.shardings = [{', '.join(shardings)}]")
        text = text.replace("{attrs}", "{" + ", ".join(attrs) + "}" if attrs else "")
        results = f"{name}:{1 + len(more)}" if more else name
        self.ops.append(f"  {results} = {text} : {types}")
        if more:
            self.values += [(f"{name}#{i}", s) for i, s in enumerate([shape, *more])]
        elif dtype == "f64":
            self.values.append((name, shape))
        return name

    def any(self, test=lambda shape: True):
        found = [v for v in self.values if test(v[1])]
        return self.rng.choice(found) if found else None

    # -- ops, each returning whether it found operands ------------------------------------

    def unary(self):
        a, shape = self.any()
        kind = self.rng.choice(["relu", "tanh", "neg", "relu", "sigmoid", "silu", "erf", "erfc", "gelu tanh", "gelu erf"])
        self.op(f"nn.{kind} {a} {{attrs}}", tensor(shape), shape)
        return True

    def binary(self):
        a, shape = self.any()
        kind = self.rng.choice(["add", "add", "sub", "mul", "maximum"])
        # Any suffix of the shape broadcasts, also with dimensions of size 1.
        fits = [v for v in self.values if len(v[1]) <= len(shape) and
                all(s in (1, t) for s, t in zip(reversed(v[1]), reversed(shape)))]
        b, other = self.rng.choice(fits)
        if self.rng.random() < 0.3:
            a, shape, b, other = b, other, a, shape
        result = shape if len(shape) > len(other) else other
        if len(shape) == len(other):
            result = [max(s, t) for s, t in zip(shape, other)]
        self.op(f"nn.{kind} {a}, {b} {{attrs}}", f"({tensor(shape)}, {tensor(other)}) -> {tensor(result)}", result)
        return True

    def matmul(self):
        found = self.any(lambda s: len(s) == 2)
        if not found:
            return False
        a, shape = found
        ta, tb = self.rng.random() < 0.3, self.rng.random() < 0.3
        m, k = (shape[1], shape[0]) if ta else shape
        other = self.any(lambda s: len(s) == 2 and s[1 if tb else 0] == k)
        if not other:
            n = self.rng.choice(SIZES)
            b = self.argument([n, k] if tb else [k, n])
            bshape = [n, k] if tb else [k, n]
        else:
            b, bshape = other
        n = bshape[0] if tb else bshape[1]
        attrs = (["transpose_a"] if ta else []) + (["transpose_b"] if tb else [])
        self.op(f"nn.matmul {a}, {b} {{attrs}}", f"({tensor(shape)}, {tensor(bshape)}) -> {tensor([m, n])}",
                [m, n], attrs=attrs)
        return True

    def batch_matmul(self):
        found = self.any(lambda s: len(s) == 3)
        if not found:
            return False
        a, (batch, m, k) = found
        n, shared, summed = self.rng.choice(SIZES), self.rng.random() < 0.5, self.rng.random() < 0.3
        shape = [k, n] if shared and not summed else [batch, k, n]
        b = self.argument(shape)
        result = [m, n] if summed else [batch, m, n]
        self.op(f"nn.matmul {a}, {b} {{attrs}}", f"({tensor([batch, m, k])}, {tensor(shape)}) -> {tensor(result)}",
                result, attrs=["sum_batch"] if summed else [])
        return True

    def tensordot(self):
        found = self.any()
        if not found:
            return False
        a, shape = found
        axes = self.rng.randint(0, min(2, len(shape)))
        ta, tb = self.rng.random() < 0.4, self.rng.random() < 0.4
        split = axes if ta else len(shape) - axes
        inner, outer = (shape[:split], shape[split:]) if ta else (shape[split:], shape[:split])
        columns = [self.rng.choice(SIZES) for _ in range(self.rng.randint(0, 2))]
        b_shape = columns + inner if tb else inner + columns
        if self.elements(b_shape) > 1000 or self.elements(outer + columns) > 3000:
            return False
        b = self.argument(b_shape)
        attrs = (["transpose_a"] if ta else []) + (["transpose_b"] if tb else [])
        result = outer + columns
        self.op(f"nn.tensordot {a}, {b} axes = {axes} {{attrs}}",
                f"({tensor(shape)}, {tensor(b_shape)}) -> {tensor(result)}", result, attrs=attrs)
        return True

    def embedding(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        table, shape = found
        ids_shape = [self.rng.choice(SIZES) for _ in range(self.rng.randint(1, 2))]
        result = ids_shape + shape[1:]
        if self.elements(result) > 3000:
            return False
        ids = self.argument(ids_shape, "i64")
        self.op(f"nn.embedding {table}, {ids} {{attrs}}",
                f"({tensor(shape)}, {tensor(ids_shape, 'i64')}) -> {tensor(result)}", result)
        return True

    def reduce(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        dims = sorted(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))
        keep = self.rng.random() < 0.3
        result = [1 if d in dims else s for d, s in enumerate(shape) if keep or d not in dims]
        self.op(f"nn.reduce {self.rng.choice(['sum', 'sum', 'max'])} {a} dims = {dims} {{attrs}}",
                f"{tensor(shape)} -> {tensor(result)}", result, attrs=["keep_dims"] if keep else [])
        return True

    def reshape(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        elements = 1
        for s in shape:
            elements *= s
        result, left = [], elements
        for _ in range(self.rng.randint(0, 2)):
            divisors = [d for d in range(1, left + 1) if left % d == 0]
            result.append(self.rng.choice(divisors))
            left //= result[-1]
        result.append(left)
        self.op(f"nn.reshape {a} {{attrs}}", f"{tensor(shape)} -> {tensor(result)}", result)
        return True

    def transpose(self):
        found = self.any(lambda s: len(s) >= 2)
        if not found:
            return False
        a, shape = found
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        result = [shape[d] for d in order]
        self.op(f"nn.transpose {a} {order} {{attrs}}", f"{tensor(shape)} -> {tensor(result)}", result)
        return True

    def dropout(self):
        a, shape = self.any()
        self.op(f"nn.dropout {a} rate = 0.4 id = {len(self.ops)} {{attrs}}", tensor(shape), shape)
        return True

    def softmax(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        kind = self.rng.choice(["softmax", "log_softmax"])
        self.op(f"nn.{kind} {a} dim = {self.rng.randrange(len(shape))} {{attrs}}", tensor(shape), shape)
        return True

    def attention(self):
        batch, keys, kv, groups, size = (self.rng.choice(SIZES[:5]) for _ in range(5))
        q = self.any(lambda s: len(s) == 5 and s[1] == s[3])
        q, shape = q or (None, [batch, self.rng.choice([keys, 2]), kv, groups, size])
        q = q or self.argument(shape)
        batch, queries, kv, groups, size = shape
        shape_k = [batch, keys, kv, size]
        k, v = self.argument(shape_k), self.argument(shape_k)
        mask = self.rng.choice(["causal", "window = 2", "causal window = 1", ""]) if queries == keys else ""
        masks, types = f"{mask} scale = 0.5", [shape, shape_k, shape_k]
        if self.rng.random() < 0.5 or self.trains:
            # The log-sum-exp has no gradient, so that nothing may use it.
            shardings = [self.sharding(s, density=1.0) for s in (shape, shape[:-1])]
            name = f"%v{len(self.ops)}"
            self.ops.append(f"  {name}:2 = nn.attention {q}, {k}, {v} {masks} {{dist.shardings = [{', '.join(shardings)}]}} : "
                            f"({', '.join(map(tensor, types))}) -> {tensor(shape)}")
            self.values.append((f"{name}#0", shape))
        else:
            cotangent, o, lse = self.argument(shape), self.argument(shape), self.argument(shape[:-1])
            types = [shape, *types, shape, shape[:-1]]
            self.op(f"nn.attention_grad {cotangent}, {q}, {k}, {v}, {o}, {lse} {masks} {{attrs}}",
                    f"({', '.join(map(tensor, types))}) -> ({', '.join(map(tensor, [shape, shape_k, shape_k]))})",
                    shape, more=[shape_k, shape_k])
        return True

    def norm(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        scale = next((v for v, s in self.values if s == shape[-1:]), None) or self.argument(shape[-1:])
        layer = self.rng.random() < 0.5
        self.op((f"nn.layer_norm {a}, {scale}, {scale}" if layer else f"nn.rms_norm {a}, {scale}") + " eps = 0.1 {attrs}",
                f"{tensor(shape)}, {tensor(shape[-1:])}", shape, more=[shape[:-1]] * (2 if layer else 1))
        return True

    def rope(self):
        found = self.any(lambda s: len(s) >= 3 and s[-1] % 2 == 0)
        if not found:
            return False
        a, shape = found
        of = shape[1:2] if self.rng.random() < 0.5 else shape[:2]
        positions = self.op(f"nn.iota dim = {len(of) - 1} {{attrs}}", tensor(of, "i64"), of, "i64")
        self.op(f"nn.rope {a}, {positions} base = 100.0 {{attrs}}", f"{tensor(shape)}, {tensor(of, 'i64')}", shape,
                attrs=["inverse"] if self.rng.random() < 0.3 else [])
        return True

    def resize(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        d = self.rng.randrange(len(shape))
        result = shape[:]
        if self.rng.random() < 0.5:
            start = self.rng.randrange(shape[d])
            result[d] = self.rng.randint(1, shape[d] - start)
            self.op(f"nn.slice {a} dim = {d} start = {start} {{attrs}}", f"{tensor(shape)} -> {tensor(result)}", result)
        else:
            low = self.rng.randint(0, 2)
            result[d] += low + self.rng.randint(0, 2)
            self.op(f"nn.pad {a} dim = {d} low = {low} {{attrs}}", f"{tensor(shape)} -> {tensor(result)}", result)
        return True

    def concat(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        d = self.rng.randrange(len(shape))
        fits = [v for v in self.values if v[1][:d] + v[1][d + 1 :] == shape[:d] + shape[d + 1 :]
                and len(v[1]) == len(shape)]
        parts = [self.rng.choice(fits) for _ in range(self.rng.randint(1, 3))]
        result = shape[:]
        result[d] = sum(s[d] for _, s in parts)
        self.op(f"nn.concat {', '.join(v for v, _ in parts)} dim = {d} {{attrs}}",
                f"({', '.join(tensor(s) for _, s in parts)}) -> {tensor(result)}", result)
        return True

    def dynamic(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        d = self.rng.randrange(len(shape))
        part = shape[:]
        part[d] = self.rng.randint(1, shape[d])
        # Clamped where it lies outside.
        start = self.op(f"nn.constant {{attrs}} dense<{self.rng.randint(-1, shape[d])}>", "tensor<i64>", [], "i64")
        if self.rng.random() < 0.5:
            self.op(f"nn.dynamic_slice {a} dim = {d} start = {start} {{attrs}}", f"{tensor(shape)} -> {tensor(part)}", part)
        else:
            update = next((v for v, s in self.values if s == part), None) or self.argument(part)
            self.op(f"nn.dynamic_update_slice {a}, {update} dim = {d} start = {start} {{attrs}}",
                    f"{tensor(shape)}, {tensor(part)}", shape)
        return True

    def iota(self):
        shape = [self.rng.choice(SIZES) for _ in range(self.rng.randint(1, 2))]
        element = self.rng.choice(["i32", "i64"])
        index = self.op(f"nn.iota dim = {self.rng.randrange(len(shape))} {{attrs}}", tensor(shape, element), shape, element)
        self.op(f"nn.cast {index} {{attrs}}", f"{tensor(shape, element)} -> {tensor(shape)}", shape)
        return True

    def mask(self):
        found = self.any(lambda s: len(s) >= 1)
        if not found:
            return False
        a, shape = found
        d = self.rng.randrange(len(shape))
        limit = self.op(f"nn.constant {{attrs}} dense<{self.rng.randint(0, shape[d])}>", "tensor<i64>", [], "i64")
        fill = self.rng.choice(["0.0", "1.5"])
        self.op(f"nn.mask {a} dim = {d} limit = {limit} fill = {fill} {{attrs}}", tensor(shape), shape)
        return True

    def broadcast(self):
        a, shape = self.any(lambda s: len(s) <= 2) or (None, None)
        if a is None:
            return False
        result = [self.rng.choice(SIZES)] + [self.rng.choice(SIZES) if s == 1 else s for s in shape]
        self.op(f"nn.broadcast {a} {{attrs}}", f"{tensor(shape)} -> {tensor(result)}", result)
        return True

    def loss(self):
        a, shape = self.any(lambda s: len(s) >= 1) or (None, None)
        if a is None:
            return False
        if self.rng.random() < 0.5:
            b = self.argument(shape)
            self.op(f"nn.mse_loss sum {a}, {b} {{attrs}}", f"({tensor(shape)}, {tensor(shape)}) -> tensor<f64>", [])
        else:
            # Class numbers, or probabilities.
            hard = self.rng.random() < 0.7
            targets = self.argument(shape[:-1], "i64") if hard else self.argument(shape, trained=False)
            types = f"({tensor(shape)}, {tensor(shape[:-1], 'i64') if hard else tensor(shape)}"
            loss = self.op(f"nn.cross_entropy sum {a}, {targets} {{attrs}}", types + ") -> tensor<f64>", [],
                           more=[shape[:-1]])
            if self.trains:
                self.values.pop()  # the log-sum-exp has no gradient, nor has the gradient's op
                return True
            self.op(f"nn.cross_entropy_grad {a}, {targets}, {loss}#1, {loss}#0 {{attrs}}",
                    types + f", tensor<f64>) -> {tensor(shape)}", shape)
        return True

    def text(self):
        ops = [self.unary, self.binary, self.binary, self.matmul, self.matmul, self.batch_matmul, self.tensordot, self.embedding,
               self.reduce, self.reshape, self.transpose, self.softmax, self.norm, self.rope, self.attention, self.resize,
               self.concat, self.dynamic,
               self.iota, self.mask, self.broadcast, self.loss, self.dropout]
        for _ in range(self.rng.randint(1, 3)):
            self.argument([self.rng.choice(SIZES) for _ in range(self.rng.randint(1, 3))])
        count = self.rng.randint(3, 9)
        while len(self.ops) < count:
            if self.values and len(self.values) > 30:
                break
            self.rng.choice(ops)()
            # Keep tensors small: the reference evaluates element by element.
            self.values = [v for v in self.values if self.elements(v[1]) <= 3000]
        results = [v for v in self.values if v[0].startswith("%v")][-3:] or self.values[-1:]
        if self.trains:
            return self.training_text(results)
        types = ", ".join(f"{tensor(s)} {{nn.output = \"{n[1:]}\"" + self.result_sharding(s) + "}" for n, s in results)
        names = ", ".join(n for n, _ in results)
        plain = ", ".join(tensor(s) for _, s in results)
        arguments = ",\n    ".join(self.arguments)
        body = "\n".join(self.ops)
        return (f"dist.mesh @mesh {self.mesh}\nfunc.func @program(\n    {arguments})\n    -> ({types}) {{\n{body}\n"
                f"  return {names} : {plain}\n}}\n")

    def training_text(self, results):
        """The loss: every result and every parameter, squashed and summed."""
        total = None
        for value, shape in results + self.parameters:
            squashed = self.op(f"nn.tanh {value} {{attrs}}", tensor(shape), shape)
            dims = list(range(len(shape)))
            term = self.op(f"nn.reduce sum {squashed} dims = {dims} {{attrs}}", f"{tensor(shape)} -> tensor<f64>", [])
            total = term if total is None else self.op(
                f"nn.add {total}, {term} {{attrs}}", "(tensor<f64>, tensor<f64>) -> tensor<f64>", [])
        arguments, body = ",\n    ".join(self.arguments), "\n".join(self.ops)
        return (f"dist.mesh @mesh {self.mesh}\nfunc.func @program(\n    {arguments})\n    -> (tensor<f64> {{nn.loss}}) {{\n"
                f"{body}\n  return {total} : tensor<f64>\n}}\n")

    @staticmethod
    def elements(shape):
        n = 1
        for s in shape:
            n *= s
        return n

    def result_sharding(self, shape):
        sharding = self.sharding(shape)
        return f", dist.sharding = {sharding}" if sharding else ""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


def passes_on(mesh, passes):
    """The passes; gradients are packed over those of the axes that the mesh has."""
    kept = []
    for text in passes.split():
        if text.startswith("--dist-pack="):
            axes = [axis for axis in text.split("=")[-1].split(",") if f'"{axis}"' in str(mesh)]
            text = axes and "--dist-pack=axes=" + ",".join(axes)
        kept += [text] if text else []
    return kept


def check(args, seed):
    """Whether the program of a seed means the same on all ranks."""
    program = Program(random.Random(seed), args.one_axis_per_dimension, args.train)
    base = os.path.join(args.work, f"program-{seed}")
    with open(base + ".mlir", "w") as f:
        f.write(program.text())
    train = ["--nn-differentiate", "--nn-optimize=clip-grad-norm=0.5"] if args.train else []
    annotate = ["--dist-propagate"] if program.propagates else []
    code, error = run([args.opt, base + ".mlir", "--nn-seed", *train, "--dist-number", *annotate, "-o", base + ".global.mlir"])
    if code == 0:
        verify = f"--dist-verify-plan=reference={base}.global.mlir steps={2 if args.train else 1}"
        code, error = run([args.opt, base + ".global.mlir", *passes_on(program.mesh, args.passes), verify, "-o", base + ".local.mlir"])
    if code == 0:
        for end in (".mlir", ".global.mlir", ".local.mlir"):
            os.remove(base + end)
        return True
    lines = [line for line in error.splitlines() if "error:" in line] or error.splitlines()[:3]
    print(f"seed {seed} ({'propagated' if annotate else 'as annotated'}, {program.mesh}): {lines[0] if lines else code}")
    return False


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--opt", default="shoal-opt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--passes", default="--dist-partition")
    parser.add_argument("--one-axis-per-dimension", action="store_true")
    parser.add_argument("--train", action="store_true")
    args = parser.parse_args()
    if args.programs < 1:
        shoal.wrong_usage(f"--programs must be at least 1, got: {args.programs}")
    failed = sum(not check(args, args.seed + i) for i in range(args.programs))
    print(f"{args.programs - failed} of {args.programs} random plans keep the meaning")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
