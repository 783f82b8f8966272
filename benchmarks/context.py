"""Rows shared by two ranks: the step of each mode of context parallelism beside half of one rank's, and what of its
messages computation does not hide, with and without overlap."""

import json
import statistics

import shoal
from common import at_most, step_seconds, table
from tensor_files import tensor, write_npy

RANKS, TOKENS, VOCAB, STEPS = 2, 8192, 256, 2
CONFIG = {"model_type": "llama", "vocab_size": VOCAB, "max_position_embeddings": TOKENS, "hidden_size": 256,
          "intermediate_size": 704, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
MODES = ["zigzag", "ring", "allgather", "ulysses"]  # hybrid of two ranks is ring or ulysses
ZIGZAG_BOUND = 1.3


class Rows:
    """A causal transformer of long rows with its data."""

    def __init__(self, work):
        self.base = f"{work}/rows"
        with open(f"{self.base}.json", "w") as f:
            json.dump(CONFIG, f)
        shoal.call(["shoal-model", "llama", "--config", f"{self.base}.json", "--batch", "1", "--seq", str(TOKENS),
                    "-o", f"{self.base}.mlir"], shoal.RUN_LIMIT)
        for name, shift in ("input_ids", 0), ("labels", 1):
            ids = ((i + shift) * 37 % 251 for i in range(TOKENS))
            write_npy(f"{self.base}.{name}.npy", tensor("i64", (1, TOKENS), ids))
        self.data = [word for name in ("input_ids", "labels") for word in ("--data", f"{name}={self.base}.{name}.npy")]

    def compile(self, name, *options):
        return shoal.shoalc(f"{self.base}.mlir", f"{self.base}.{name}", "--optimizer", "sgd", "--lr", "0.001", *options)

    def run(self, program, ranks):
        """Seconds of each step, and how long a rank stood still for others in one."""
        shoal.run(ranks, program, *self.data, "--threads", "1", "--steps", str(STEPS + 2), "--metrics",
                  f"{program}.jsonl", "--report", f"{program}.report.json")
        with open(f"{program}.report.json") as f:
            waiting = [rank["measured"]["waiting_ms"] for rank in json.load(f)["ranks"]]
        return step_seconds(f"{program}.jsonl"), waiting


def context(work, rounds):
    rows_of = Rows(work)
    one = rows_of.compile("one")
    programs = {}
    for mode in MODES:
        plan = ["--mesh", f"context={RANKS}", "--context-parallel", mode]
        programs[mode] = rows_of.compile(mode, *plan)
        programs[f"{mode}, --no-overlap"] = rows_of.compile(f"{mode}.alone", *plan, "--no-overlap")
    alone, times, waiting = [], {name: [] for name in programs}, {name: [] for name in programs}
    for _ in range(rounds):
        alone += rows_of.run(one, 1)[0]
        for name, program in programs.items():
            steps, waits = rows_of.run(program, RANKS)
            times[name] += steps
            waiting[name].append(waits)
    share = statistics.median(alone) / RANKS
    rows = [["one rank", f"{share * RANKS * 1e3:.0f}", "", "", ""]]
    for name in programs:
        step = statistics.median(times[name])
        waits = [statistics.median(of_rank) for of_rank in zip(*waiting[name])]
        rows.append([name, f"{step * 1e3:.0f}", f"{step / share:.3f}", " ".join(f"{w:.0f}" for w in waits),
                     at_most(step / share, ZIGZAG_BOUND) if name == "zigzag" else ""])
    table(f"a causal transformer of 2 layers, 4 heads of 64, rows of {TOKENS} tokens, f32, SGD, {RANKS} ranks",
          ["ms a step", f"to one rank/{RANKS}", "ranks 0 and 1 wait in a step, ms", "bound"], rows)
