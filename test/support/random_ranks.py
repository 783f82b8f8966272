#!/usr/bin/env python3
"""Random local programs (L2) with control flow over the rank: what is folded computes what was written, and so does what
is compiled; one end of a message less, and the program is refused.

usage: random_ranks.py --work FOLDER [--seed S] [--programs N] [--runs R]

Messages have both ends by construction: they are written one after another, each between two ranks that are both in the
region. Outside of all regions some say themselves who runs them (`dist.at`), as do rings of a part of the ranks. The first R programs are also compiled and run. A failure prints the seed, which alone makes the program again.
"""

import os
import random
import subprocess
import sys

import shoal
from work_parser import WorkParser

TYPE = "tensor<3xf32>"


class Program:
    """Text of a function, statement by statement; `active` is the set of ranks in the region."""

    DEPTH = 2  # of regions in each other

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.ranks = self.rng.choice([2, 3, 4])
        self.lines, self.counter, self.ends, self.constants = [], 0, [], {}
        mesh, axes = f'["x"={self.ranks}]', '{"x"}'
        if self.ranks == 4 and self.rng.random() < 0.5:
            mesh, axes = '["y"=2, "x"=2]', '{"y", "x"}'
        self.axes = axes
        self.head = f"dist.mesh @mesh <{mesh}>\n"
        body = self.block(set(range(self.ranks)), ["%base"], self.DEPTH, 6)
        self.results = body

    @staticmethod
    def at(ranks):
        return f"{{dist.at = array<i64: {', '.join(map(str, sorted(ranks)))}>}}"

    def name(self):
        self.counter += 1
        return f"%v{self.counter}"

    def emit(self, depth, text):
        self.lines.append("  " * (4 - depth) + text)

    def index(self, value):
        self.constants[value] = None
        return f"%c{value}"

    def is_rank(self, depth, predicate, rank):
        name = self.name()
        self.emit(depth, f"{name} = arith.cmpi {predicate}, %i, {self.index(rank)} : index")
        return name

    def block(self, active, values, depth, size):
        """Statements that add to the values; gives those that are known at its end."""
        values = list(values)
        for _ in range(self.rng.randint(1, size)):
            kinds = ["pure", "message", "message", "exchange"]
            if depth:
                kinds += ["branch", "loop"]
            if len(active) == self.ranks:
                kinds += ["reduce"]
            values.append(getattr(self, self.rng.choice(kinds))(active, values, depth))
        return values

    def pure(self, active, values, depth):
        a, b, name = self.rng.choice(values), self.rng.choice(values), self.name()
        op = self.rng.choice(["add", "sub", "maximum", "minimum"])
        self.emit(depth, f"{name} = nn.{op} {a}, {b} : ({TYPE}, {TYPE}) -> {TYPE}")
        return name

    def end(self, depth, text):
        """One end of a message, which may be taken away later."""
        self.ends.append(len(self.lines))
        self.emit(depth, text)

    def message(self, active, values, depth):
        if len(active) < 2:
            return self.pure(active, values, depth)
        source, target = self.rng.sample(sorted(active), 2)
        value, name, got = self.rng.choice(values), self.name(), self.name()
        if depth == self.DEPTH and self.rng.random() < 0.5:
            receives = self.is_rank(depth, "eq", target)
            self.end(depth, f"dist.send {self.axes} {value} to {self.index(target)} {self.at([source])} : {TYPE}")
            self.emit(depth, f"{got} = dist.recv {self.axes} from {self.index(source)} {self.at([target])} : {TYPE}")
            self.emit(depth, f"{name} = arith.select {receives}, {got}, {self.rng.choice(values)} : {TYPE}")
            return name
        sends = self.is_rank(depth, "eq", source)
        self.emit(depth, f"scf.if {sends} {{")
        self.end(depth - 1, f"dist.send {self.axes} {value} to {self.index(target)} : {TYPE}")
        self.emit(depth, "}")
        receives = self.is_rank(depth, "eq", target)
        self.emit(depth, f"{name} = scf.if {receives} -> ({TYPE}) {{")
        self.emit(depth - 1, f"{got} = dist.recv {self.axes} from {self.index(source)} : {TYPE}")
        self.emit(depth - 1, f"scf.yield {got} : {TYPE}")
        self.emit(depth, "} else {")
        self.emit(depth - 1, f"scf.yield {self.rng.choice(values)} : {TYPE}")
        self.emit(depth, "}")
        return name

    def exchange(self, active, values, depth):
        """All ranks of the region send around a ring at once; outside of all regions it may be some of them."""
        ring = sorted(active)
        self.rng.shuffle(ring)
        says = depth == self.DEPTH and self.rng.random() < 0.5
        if says:
            ring = ring[:self.rng.randint(1, len(ring))]
        value, group, got = self.rng.choice(values), self.name(), self.name()
        to, back = self.name(), self.name()
        for name, shift in ((to, 1), (back, -1)):
            self.emit(depth, f"{name} = scf.index_switch %i -> index")
            for k, rank in enumerate(ring):
                self.emit(depth, f"case {rank} {{")
                self.emit(depth - 1, f"scf.yield {self.index(ring[(k + shift) % len(ring)])} : index")
                self.emit(depth, "}")
            self.emit(depth, "default {")
            self.emit(depth - 1, f"scf.yield {self.index(0)} : index")
            self.emit(depth, "}")
        chosen = self.is_rank(depth, "ule", self.rng.randint(0, self.ranks - 1))
        self.emit(depth, f"{group} = dist.group {{")
        if self.rng.random() < 0.5:
            value, one, other = self.name(), value, self.rng.choice(values)
            self.emit(depth - 1, f"{value} = scf.if {chosen} -> ({TYPE}) {{")
            self.emit(depth - 2, f"scf.yield {one} : {TYPE}")
            self.emit(depth - 1, "} else {")
            self.emit(depth - 2, f"scf.yield {other} : {TYPE}")
            self.emit(depth - 1, "}")
        self.end(depth - 1, f"dist.send {self.axes} {value} to {to} : {TYPE}")
        self.emit(depth - 1, f"{got} = dist.recv {self.axes} from {back} : {TYPE}")
        self.emit(depth - 1, f"dist.yield {got} : {TYPE}")
        self.emit(depth, f"}} {self.at(ring) if says else ''} : {TYPE}")
        if not says:
            return group
        name, other = self.name(), self.rng.choice(values)
        self.emit(depth, f"{name} = scf.index_switch %i -> {TYPE}")
        for rank in ring:
            self.emit(depth, f"case {rank} {{")
            self.emit(depth - 1, f"scf.yield {group} : {TYPE}")
            self.emit(depth, "}")
        self.emit(depth, "default {")
        self.emit(depth - 1, f"scf.yield {other} : {TYPE}")
        self.emit(depth, "}")
        return name

    def reduce(self, active, values, depth):
        name = self.name()
        kind = self.rng.choice(["max", "min"])
        self.emit(depth, f"{name} = dist.all_reduce {self.axes} {kind} {self.rng.choice(values)} : {TYPE}")
        return name

    def branch(self, active, values, depth):
        name, split = self.name(), self.rng.randint(0, self.ranks - 1)
        condition = self.is_rank(depth, "ule", split)
        self.emit(depth, f"{name} = scf.if {condition} -> ({TYPE}) {{")
        for number, part in enumerate(({r for r in active if r <= split}, {r for r in active if r > split})):
            if number:
                self.emit(depth, "} else {")
            inner = self.block(part, values, depth - 1, 3) if part else values
            self.emit(depth - 1, f"scf.yield {self.rng.choice(inner[-2:])} : {TYPE}")
        self.emit(depth, "}")
        return name

    def loop(self, active, values, depth):
        """Bounds that all ranks share, or their own, below which nothing can be exchanged."""
        name, counter, carried = self.name(), self.name(), self.name()
        alike = self.rng.random() < 0.5
        first = self.index(self.rng.randint(0, 1)) if alike else "%i"
        self.emit(depth, f"{name} = scf.for {counter} = {first} to {self.index(3)} step {self.index(1)} "
                         f"iter_args({carried} = {self.rng.choice(values)}) -> ({TYPE}) {{")
        inside = values + [carried]
        inner = self.block(active, inside, depth - 1, 3) if alike else inside + [self.pure(active, inside, depth - 1)]
        self.emit(depth - 1, f"scf.yield {inner[-1]} : {TYPE}")
        self.emit(depth, "}")
        return name

    def text(self, without=None):
        results = self.results[-3:]
        named = ", ".join(f'{TYPE} {{nn.output = "r{k}"}}' for k in range(len(results)))
        text = self.head + f"func.func @ranks() -> ({named}) {{\n"
        text += f"  %i = dist.axis_index {self.axes} * 1 : index\n"
        for value in sorted(self.constants):
            text += f"  %c{value} = arith.constant {value} : index\n"
        text += f"  %scaled = dist.axis_index {self.axes} * 5 : tensor<i64>\n"
        text += "  %float = nn.cast %scaled : tensor<i64> -> tensor<f32>\n"
        text += f"  %count = nn.constant dense<[1.0, -2.0, 3.0]> : {TYPE}\n"
        text += f"  %base = nn.add %count, %float : ({TYPE}, tensor<f32>) -> {TYPE}\n"
        text += "".join(line + "\n" for number, line in enumerate(self.lines) if number != without)
        return text + f"  return {', '.join(results)} : {', '.join([TYPE] * len(results))}\n}}\n"


def opt(path, *passes):
    return subprocess.run(["shoal-opt", path, *passes, "-o", os.devnull], capture_output=True, text=True, timeout=120)


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=0)
    args = parser.parse_args()
    if args.programs < 1:
        shoal.wrong_usage(f"--programs must be at least 1, got: {args.programs}")
    interpret = "--interpret=all-ranks outputs"
    broken = 0
    for number in range(args.programs):
        seed = args.seed + number
        program = Program(seed)
        path = os.path.join(args.work, f"{seed}.mlir")
        with open(path, "w") as file:
            file.write(program.text())
        written = opt(path, interpret)
        if written.returncode or not written.stdout:
            sys.exit(f"seed {seed}: {written.stderr}")
        for passes in (["--dist-fold-control-flow"], ["--dist-fold-control-flow", "--dist-expand-collectives",
                                                      "--canonicalize", "--cse"]):
            folded = opt(path, *passes, interpret)
            if folded.stdout != written.stdout:
                sys.exit(f"seed {seed}, {passes}: {folded.stderr}\n{folded.stdout}\nas written:\n{written.stdout}")
        lowered = opt(path, "--shoal-exec")
        if lowered.returncode:
            sys.exit(f"seed {seed}: {lowered.stderr}")
        if number < args.runs:
            printed = shoal.run(program.ranks, shoal.shoalc(path, path[:-5]), "--print")
            if sorted(shoal.printed(printed)) != sorted(written.stdout.splitlines()):
                sys.exit(f"seed {seed}: the program prints\n{printed}the interpreter\n{written.stdout}")
        if not program.ends:
            continue
        # Without one of the sends somebody waits for ever: the compiler says so, as does the interpreter.
        with open(path, "w") as file:
            file.write(program.text(without=program.rng.choice(program.ends)))
        for passes in ("--shoal-exec", interpret):
            refused = opt(path, passes)
            if refused.returncode != 1 or "error:" not in refused.stderr:
                sys.exit(f"seed {seed}, a send less, {passes}: exit status {refused.returncode}\n{refused.stderr}")
        broken += 1
    print(f"{args.programs} programs, {broken} of them also with a send less")


if __name__ == "__main__":
    main()
