"""A pipeline of two ranks: the step of each schedule beside the work of one rank, its formula, its simulation with
measured costs and PyTorch's; and what a scheduled action costs beside the kernels."""

import json
import os
import re
import statistics

import shoal
from common import at_most, find_torch, step_seconds, table, torch_lines
from generate_blocks import generate
from tensor_files import tensor, write_npy

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS, BLOCKS, WIDTH, BATCH, MICROBATCHES = 2, 8, 512, 512, 8
TINY_WIDTH, TINY_MICROBATCHES = 8, 256
STEPS, TINY_STEPS = 3, 40
SGD = ["--optimizer", "sgd", "--lr", "0.001"]
SIMULATED_BOUND = 1.15
NO_SCHEDULE = 3  # of torch_pipeline.py
IDLE = {  # of F = I = W = 1 with P ranks and two chunks where there are several, from formulas of examples/pipeline
    "naive": lambda M, P: 3 * M * (P - 1), "gpipe": lambda M, P: 3 * (P - 1), "1f1b": lambda M, P: 3 * (P - 1),
    "interleaved": lambda M, P: 3 * (P - 1) / 2, "zb-h1": lambda M, P: P - 1, "zb-h2": lambda M, P: 0,
    "zb-v": lambda M, P: 0}
TORCH_SCHEDULES = ["gpipe", "1f1b", "interleaved", "interleaved-zb", "zb-v"]


class Blocks:
    """Residual blocks with their data, compiled as often as schedules differ."""

    def __init__(self, work, name, width, batch, microbatches):
        self.base, self.width, self.batch, self.microbatches = f"{work}/{name}", width, batch, microbatches
        with open(f"{self.base}.mlir", "w") as f:
            f.write(generate(BLOCKS, width, batch))
        for name, factor in ("x", 37), ("y", 53):
            values = ((i * factor % 101) / 101 - 0.5 for i in range(batch * width))
            write_npy(f"{self.base}.{name}.npy", tensor("f32", (batch, width), values))
        self.data = ["--threads", "1", "--data", f"x={self.base}.x.npy", "--data", f"y={self.base}.y.npy"]

    def options(self, schedule):
        mesh = ["--mesh", f"pipe={RANKS}", "--pipeline-schedule", schedule] if schedule else []
        return [*SGD, *mesh, "--microbatches", str(self.microbatches)]

    def compile(self, schedule=None, *options, suffix=""):
        output = f"{self.base}.{schedule or 'one'}{suffix}"
        return shoal.shoalc(f"{self.base}.mlir", output, *self.options(schedule), *options)

    def run(self, program, ranks, steps, *options):
        shoal.run(ranks, program, *self.data, "--steps", str(steps + 2), "--metrics", f"{program}.jsonl", *options)
        return step_seconds(f"{program}.jsonl")

    def local(self, schedule):
        """The local program, which has the schedule."""
        return self.compile(schedule, "--emit", "local", suffix=".local")

    def simulated_seconds(self, schedule, program):
        """The makespan by the compiler, with what this program's own stages took in the last step of a run."""
        costs, report = f"{program}.timeline.json", f"{program}.report.json"
        self.run(program, RANKS, STEPS, "--timeline", costs)
        self.compile(schedule, "--pipeline-costs", costs, "--emit", "exec", "--report", report, suffix=".exec")
        with open(report) as f:
            simulated = json.load(f)["pipeline"]
        return simulated["makespan"] * {"s": 1, "ms": 1e-3, "us": 1e-6}[simulated["unit"]]

    def torch_seconds(self, ranks, schedule, steps):
        command = [f"{HERE}/torch_pipeline.py", "--blocks", str(BLOCKS), "--width", str(self.width),
                   "--batch", str(self.batch), "--microbatches", str(self.microbatches), "--steps", str(steps),
                   "--ranks", str(ranks)]
        return torch_lines(command + (["--schedule", schedule] if schedule else []), shoal.RUN_LIMIT, NO_SCHEDULE)


def torch_rows(blocks, rounds):
    if missing := find_torch():
        return [["PyTorch", "", "", "", "", "", missing]]
    times, lines = {}, {}
    for _ in range(rounds):
        for name in [None, *TORCH_SCHEDULES]:
            steps = [] if name in lines else blocks.torch_seconds(RANKS if name else 1, name, STEPS)
            if isinstance(steps, str):
                lines[name] = steps
            times[name] = times.get(name, []) + (steps if isinstance(steps, list) else [])
    work = statistics.median(times[None])
    rows = [["PyTorch, one rank: its work", f"{work * 1e3:.0f}", "", "", "", "", ""]]
    for name in TORCH_SCHEDULES:
        if name in lines:
            rows.append([f"PyTorch, {name}", "", "", "", "", "", lines[name]])
            continue
        step = statistics.median(times[name])
        rows.append([f"PyTorch, {name}", f"{step * 1e3:.0f}", f"{step * RANKS / work:.3f}", "", "", "",
                     "to PyTorch's own work"])
    return rows


def pipeline(work, rounds):
    blocks = Blocks(work, "blocks", WIDTH, BATCH, MICROBATCHES)
    one, programs = blocks.compile(), {schedule: blocks.compile(schedule) for schedule in IDLE}
    alone, times, simulated = [], {schedule: [] for schedule in IDLE}, {schedule: [] for schedule in IDLE}
    for _ in range(rounds):
        alone += blocks.run(one, 1, STEPS)
        for schedule, program in programs.items():
            times[schedule] += blocks.run(program, RANKS, STEPS)
            simulated[schedule].append(blocks.simulated_seconds(schedule, program))
    share = statistics.median(alone) / RANKS
    rows = [["one rank: the work", f"{share * RANKS * 1e3:.0f}", "", "", "", "", ""]]
    for schedule in IDLE:
        step, makespan = statistics.median(times[schedule]), statistics.median(simulated[schedule])
        formula = 1 + IDLE[schedule](MICROBATCHES, RANKS) / (3 * MICROBATCHES)
        rows.append([schedule, f"{step * 1e3:.0f}", f"{step / share:.3f}", f"{formula:.3f}", f"{makespan * 1e3:.0f}",
                     f"{step / makespan:.3f}", at_most(step / makespan, SIMULATED_BOUND)])
    table(f"{BLOCKS} residual blocks of width {WIDTH}, {MICROBATCHES} micro-batches of {BATCH // MICROBATCHES}, f32, "
          f"SGD, {RANKS} ranks", ["ms a step", f"to work/{RANKS}", "the formula's", "simulated with measured costs, ms",
                             "to simulated", "bound"], rows + torch_rows(blocks, rounds))


def count_actions(local):
    """Of each rank's line in a local program's schedule: computations and messages."""
    with open(local) as f:
        lines = re.search(r"pipe\.schedule .*? ranks \[(.*?)\]", f.read(), re.S)[1]
    return [len(line.replace("{", "").replace("}", "").split()) for line in re.findall(r'"([^"]*)"', lines)]


def pipeline_overhead(work, rounds):
    blocks = Blocks(work, "tiny", TINY_WIDTH, TINY_MICROBATCHES, TINY_MICROBATCHES)
    rows = []
    for schedule in ("gpipe", "1f1b", "interleaved", "zb-h1"):
        program = blocks.compile(schedule)
        actions = count_actions(blocks.local(schedule))
        times = [seconds for _ in range(rounds) for seconds in blocks.run(program, RANKS, TINY_STEPS)]
        step = statistics.median(times)
        rows.append([schedule, f"{step * 1e6:.0f}", " ".join(map(str, actions)), f"{step / max(actions) * 1e6:.1f}"])
    table(f"{BLOCKS} residual blocks of width {TINY_WIDTH}, {TINY_MICROBATCHES} micro-batches of a row, {RANKS} ranks",
          ["µs a step", "actions of each rank's schedule, messages too", "µs an action, with its kernels"], rows)
