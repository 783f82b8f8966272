"""What a rank program holds at each of its rows, counted from its text (shoalc --emit exec)."""

import collections
import math
import re

BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "i1": 1}
# Classes of the report. A master of mixed precision is the optimizer's.
ARGUMENTS = {"param": "params", "buffer": "params", "state": "optimizer"}  # others are activations
BUFFERS = {"param": "params", "grad": "grads", "activation": "activations", "workspace": "workspace"}

ARGUMENT = re.compile(r"(%[\w.]+) = exec\.arg (\w+) (.*): <([\w]+)>$")
BUFFER = re.compile(r"(%\w+) = exec\.buffer (\w+) at \d+ : <(\w+)>$")
GATHER = re.compile(r'.*exec\.all_gather .* to (%\w+) .*reason = "the parameters, for the (?:for|back)ward pass')
REDUCTION = re.compile(r'.*exec\.reduce_scatter {"data"} sum (%\w+) to (%\w+)')
VIEW = re.compile(r"(%\w+) = exec\.view (%[\w.]+)\[")


def bytes_of(type_text):
    *sizes, element = type_text.split("x")
    return math.prod(map(int, sizes)) * BYTES[element]


class Curve:
    """`rows`: per row of the training step the bytes in use by class, a buffer from the first row that is given a part
    of it to the last one. Per row, too: `gathered`, those of parameters that ZeRO-3 gathers for a layer; `unreduced`,
    those of each storage of gradients that a reduce-scatter over the data axis reads; `shards`, those that it writes;
    `passing`, the workspace of that row alone. `products`: the rows of matrix products and attention, behind the last
    of which the backward pass ends. `arena`: what the program allocates."""

    def __init__(self, text):
        text = text[text.index("exec.program"):]
        self.arena = int(re.search(r"arena = (\d+)", text)[1])
        storage, lives, always, row, self.products = {}, {}, collections.Counter(), 0, []
        gathers, packed, shards = set(), set(), set()
        for line in map(str.strip, text[: text.index("\n  }")].splitlines()[1:]):
            if found := ARGUMENT.match(line):
                is_master = found[3].startswith("master ")
                always["optimizer" if is_master else ARGUMENTS.get(found[2], "activations")] += bytes_of(found[4])
            elif found := BUFFER.match(line):
                storage[found[1]] = found[1]
                lives[found[1]] = [BUFFERS[found[2]], bytes_of(found[3]), None, None]
            elif found := VIEW.match(line):
                storage[found[1]] = storage.get(found[2])
            elif not line.startswith("exec.wait"):
                for name in re.findall(r"%[\w.]+", line):
                    if buffer := storage.get(name):
                        life = lives[buffer]
                        life[2], life[3] = row if life[2] is None else life[2], row
                if found := GATHER.match(line):
                    gathers.add(storage[found[1]])
                if found := REDUCTION.match(line):
                    packed.add(storage[found[1]])
                    shards.add(storage[found[2]])
                if "exec.gemm " in line or "exec.attention" in line:
                    self.products.append(row)
                row += 1
        self.rows = [always.copy() for _ in range(row)]
        self.gathered, self.shards, self.passing = [0] * row, [0] * row, [0] * row
        self.unreduced = [[] for _ in range(row)]
        for name, (kind, size, first, last) in lives.items():
            for at in range(first, last + 1) if first is not None else ():
                self.rows[at][kind] += size
                self.gathered[at] += size if name in gathers else 0
                self.shards[at] += size if name in shards else 0
                self.passing[at] += size if kind == "workspace" and first == last else 0
                if name in packed:
                    self.unreduced[at].append(size)

    def most(self, kind):
        return max(row[kind] for row in self.rows)

    def most_kept(self):
        """Bytes of workspace, less what one row alone uses."""
        return max(row["workspace"] - passing for row, passing in zip(self.rows, self.passing))

    def beside_states(self):
        """At each product the bytes in use, less parameters, gathered ones, the optimizer's state, and gradients. Those
        of data parallelism are reduced where they lie."""
        scattered = [sum(unreduced) + shards for unreduced, shards in zip(self.unreduced, self.shards)]
        gradients = scattered if any(scattered) else [row["grads"] for row in self.rows]
        return [sum(self.rows[at].values()) - self.rows[at]["params"] - self.rows[at]["optimizer"] - self.gathered[at] -
                gradients[at] for at in self.products]

    def fullest(self):
        """Bytes in use at the row with the most."""
        return max(sum(row.values()) for row in self.rows)

    def fullest_of_passes(self):
        """The same up to the end of the backward pass, with all parameters: single ones may come late and go early."""
        return self.most("params") + max(sum(row.values()) - row["params"] for row in self.rows[: self.products[-1] + 1])
