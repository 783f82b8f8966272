#!/usr/bin/env python3
"""Measures compiled programs against what bounds them, and prints Markdown tables with each bound and whether it holds.

usage: measure.py --work FOLDER [--rounds 5] [--only NAME,...]   (tools on PATH, see run.sh)

Every number that has a bound is a ratio of medians whose two sides were measured in turns within this run, because
a shared machine drifts. One thread per rank. A floor of GEMMs is the same library, shapes and thread. The exit status
is 1 when a bound is missed.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "support"))
import compile_scaling  # noqa: E402
import pass_growth  # noqa: E402
import shoal  # noqa: E402
from common import MB, TORCH_PYTHON, at_least, at_most, exit_status, step_seconds, table, verdict  # noqa: E402
from context import context  # noqa: E402
from generate_mlp import generate  # noqa: E402
from gpt2 import gpt2, gpt2_bf16, gpt2_ranks  # noqa: E402
from pipeline import pipeline, pipeline_overhead  # noqa: E402
from tensor_files import tensor, write_npy  # noqa: E402

SGD = ["--optimizer", "sgd", "--lr", "0.01"]


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}"


class Model:
    """A perceptron with its data, compiled as often as plans differ."""

    def __init__(self, work, name, batch, sizes):
        self.base, self.batch, self.sizes = f"{work}/{name}", batch, sizes
        with open(self.base + ".mlir", "w") as f:
            f.write(generate(batch, sizes))
        write_npy(self.base + ".x.npy", tensor("f32", (batch, sizes[0]),
                                               ((i * 37 % 101) / 101 for i in range(batch * sizes[0]))))
        write_npy(self.base + ".y.npy", tensor("i64", (batch,), (i % sizes[-1] for i in range(batch))))
        self.data = ["--data", f"x={self.base}.x.npy", "--data", f"y={self.base}.y.npy", "--threads", "1"]

    def compile(self, name, *options):
        return shoal.shoalc(self.base + ".mlir", f"{self.base}.{name}", *SGD, *options)

    def step_seconds(self, program, ranks, steps):
        """Seconds of each step but the first two (page faults, warm-up)."""
        metrics = program + ".jsonl"
        shoal.run(ranks, program, *self.data, "--steps", str(steps + 2), "--metrics", metrics)
        return step_seconds(metrics)

    def waiting_seconds(self, program, ranks, steps):
        """What the program itself reports: how long a rank stood still for others in a step, the mean of the ranks."""
        report = program + ".report.json"
        shoal.run(ranks, program, *self.data, "--steps", str(steps), "--report", report)
        with open(report) as f:
            return statistics.mean(rank["measured"]["waiting_ms"] for rank in json.load(f)["ranks"]) / 1e3

    def mean_step_seconds(self, program, ranks, steps):
        """The mean of many steps that are too short to be timed one by one: the log's rows per second."""
        output = shoal.run(ranks, program, *self.data, "--steps", str(steps), "--log-every", str(steps))
        last = [line for line in output.splitlines() if line.endswith(" rows/s")][-1]
        return self.batch / float(last.split()[-2])

    def gemm_seconds(self, program, steps):
        return [float(line) for line in shoal.call(["gemms-of-a-step", program, str(steps)], shoal.RUN_LIMIT).split()]

    def torch_seconds(self, ranks, steps):
        sizes = ",".join(map(str, self.sizes))
        output = shoal.call([TORCH_PYTHON, os.path.join(HERE, "torch_mlp.py"), "--batch", str(self.batch), "--sizes",
                             sizes, "--steps", str(steps), "--blocks", "1", "--ranks", str(ranks)], shoal.RUN_LIMIT)
        return float(output.split()[-1])


def large_step(work, rounds):
    model = Model(work, "large", 512, [784, 4096, 4096, 10])
    program = model.compile("one")
    step, gemms = [], []
    for _ in range(rounds):
        gemms += model.gemm_seconds(program, 8)
        step += model.step_seconds(program, 1, 8)
    step, gemms = statistics.median(step), statistics.median(gemms)
    table("MLP 784-4096-4096-10, batch 512, f32, SGD, 1 rank", ["ms a step", "bound"], [
        ["its GEMMs alone", f"{gemms * 1e3:.1f}", ""],
        ["the step", f"{step * 1e3:.1f}", ""],
        ["ratio", f"{step / gemms:.3f}", at_most(step / gemms, 1.15)]])


def small_step(work, rounds):
    model = Model(work, "small", 32, [16, 512, 10])
    programs = {1: model.compile("one"), 2: model.compile("two", "--mesh", "data=2")}
    gemms, ours, torch = [], {1: [], 2: []}, {1: [], 2: []}
    for _ in range(rounds):
        # Means on every side: what interrupts a step of microseconds counts for all of them or for none.
        gemms.append(statistics.mean(model.gemm_seconds(programs[1], 20000)))
        for ranks, program in programs.items():
            ours[ranks].append(model.mean_step_seconds(program, ranks, 20000))
            torch[ranks].append(model.torch_seconds(ranks, 1000))
    gemms = statistics.median(gemms)
    ours = {ranks: statistics.median(times) for ranks, times in ours.items()}
    torch = {ranks: statistics.median(times) for ranks, times in torch.items()}
    rows = [["its GEMMs alone", f"{gemms * 1e6:.1f}", f"{1 / gemms:.0f}", ""]]
    for ranks in programs:
        rows.append([f"Shoal, {ranks} rank{'s' if ranks > 1 else ''}", f"{ours[ranks] * 1e6:.1f}",
                     f"{1 / ours[ranks]:.0f}", ""])
        rows.append([f"PyTorch, {ranks} rank" + ("s (DDP, gloo)" if ranks > 1 else ""), f"{torch[ranks] * 1e6:.1f}",
                     f"{1 / torch[ranks]:.0f}", f"Shoal is {torch[ranks] / ours[ranks]:.1f} times as fast"])
    rows.append(["Shoal, 1 rank, to its GEMMs", f"{ours[1] / gemms:.2f}", "", at_most(ours[1] / gemms, 3)])
    table("MLP 16-512-10, batch 32, f32, SGD", ["µs a step", "steps/s", "bound"], rows)


def attention(work, rounds):
    rows = []
    for mask in ("full", "causal"):
        lines = shoal.call(["attention", "4096", "8", "64", mask, str(rounds)], shoal.RUN_LIMIT).splitlines()
        workspace = int(lines[0].split()[1])
        forward, backward, products = (statistics.median(column) for column in zip(*(map(float, line.split()) for line in lines[1:])))
        ratio = (forward + backward) / products
        rows.append([mask, f"{forward * 1e3:.0f}", f"{backward * 1e3:.0f}", f"{products * 1e3:.0f}", f"{ratio:.2f}", at_most(ratio, 1.6),
                     f"{workspace / MB:.2f}", f"{4 * 8 * 4096 ** 2 / MB:.0f}"])
    table("attention, 4096 tokens, 8 heads of 64, f32, 1 thread", ["forward, ms", "backward, ms", "its GEMMs alone in blocks of 1024, ms", "ratio",
                                                                   "bound", "workspace, MB", "its scores would be, MB"], rows)


def all_reduce(work, rounds):
    rows = []
    for size in (64 << 20, 4 << 10):
        output = shoal.call(["shoal-run", "-n", "2", "all-reduce", str(size), str(4 * rounds)], shoal.RUN_LIMIT)
        columns = zip(*(map(float, line.split()) for line in output.splitlines() if line))
        windows, mpi, blocking, copy = map(statistics.median, columns)
        bound = at_least(copy / windows, 0.9) if size > 1 << 20 else at_most(windows / blocking, 4)
        ratio = f"{copy / windows:.2f} of memcpy's rate" if size > 1 << 20 else f"{windows / blocking:.2f} × MPI_Allreduce"
        rows.append([f"{size >> 10} KiB", f"{windows:.1f}", f"{mpi:.1f}", f"{blocking:.1f}", f"{copy:.1f}", ratio,
                     bound])
    table("all-reduce of f32, 2 local ranks, µs", ["windows", "--local-comm mpi", "MPI_Allreduce", "memcpy", "ratio", "bound"], rows)


def concurrently(copies, measure):
    """Runs `measure` as so many processes would run beside each other; the medians' median."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(copies) as pool:
        return statistics.median(statistics.median(times) for times in pool.map(measure, range(copies)))


def overlap(work, rounds):
    """64 MB of gradients: what communication adds to a step that computes the same without any."""
    sizes = [2048] * 5 + [10]
    model, share = Model(work, "overlap", 256, sizes), Model(work, "share", 128, sizes)
    plans = [("overlap, buckets of 25 MB", []), ("--no-overlap", ["--no-overlap"])]
    plans += [(f"overlap, buckets of {mb} MB", ["--bucket-mb", str(mb)]) for mb in (1, 4, 100)]
    programs = [(name, model.compile(str(k), "--mesh", "data=2", *options)) for k, (name, options) in enumerate(plans)]
    alone = [share.compile(f"alone{k}") for k in range(2)]
    base, times, waiting = [], {name: [] for name, _ in programs}, {name: [] for name, _ in programs}
    for _ in range(rounds):
        base.append(concurrently(2, lambda k: share.step_seconds(alone[k], 1, 6)))
        for name, program in programs:
            times[name] += model.step_seconds(program, 2, 6)
            waiting[name].append(model.waiting_seconds(program, 2, 6))
    base = statistics.median(base)
    rows = [["computation alone: 2 programs of 1 rank, half the batch each", f"{base * 1e3:.1f}", "", ""]]
    for name, _ in programs:
        step = statistics.median(times[name])
        rows.append([name, f"{step * 1e3:.1f}", f"{max(step - base, 0) * 1e3:.1f}",
                     f"{statistics.median(waiting[name]) * 1e3:.1f}"])
    gradients = sum(m * n + n for m, n in zip(sizes, sizes[1:])) * 4
    table(f"2 ranks, {gradients / MB:.0f} MB of gradients, batch 256", 
          ["ms a step", "exposed communication: the step less computation alone, ms", "a rank's waiting, ms"], rows)


def memory(work, rounds):
    model = Model(work, "memory", 512, [784, 4096, 4096, 10])
    rows = []
    for name, options in [("sgd", []), ("adam", ["--optimizer", "adam", "--lr", "0.001"])]:
        program = f"{model.base}.{name}"
        shoal.shoalc(model.base + ".mlir", program, *(options or SGD), "--report", program + ".promised.json")
        command = [program, *model.data, "--steps", "4", "--no-progress", "--report", program + ".counted.json"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{program}: wait status {status}")
        peak = {}
        for side in ("promised", "counted"):
            with open(f"{program}.{side}.json") as f:
                peak[side] = json.load(f)["ranks"][0]["bytes"]["peak"]
        resident = usage.ru_maxrss * 1024
        allowed = 0.1 * peak["counted"] + 60 * MB
        rows.append([f"{name}", f"{peak['promised'] / MB:.1f}", f"{peak['counted'] / MB:.1f}", f"{resident / MB:.1f}",
                     verdict(peak["promised"] == peak["counted"], "equal", "MISSED: not equal"),
                     verdict(abs(resident - peak["counted"]) <= allowed, "within", "MISSED: not within") +
                     f" {allowed / MB:.1f}"])
    table("MLP 784-4096-4096-10, batch 512, 1 rank, MB", ["peak promised", "peak counted", "resident (VmHWM)", "promise and count", "resident to peak: 10% + 60 MB"], rows)


def compile_time(work, rounds):
    layers = f"{work}/layers.mlir"
    with open(layers, "w") as f:
        f.write(generate(32, [256] * 97))
    digits = os.path.join(HERE, "../examples/digits/digits.mlir")
    rows = []
    for name, model, options, bound in [
            ("digits", digits, [], 2), ("digits, `--mesh data=4`", digits, ["--mesh", "data=4"], 2),
            ("MLP of 96 layers 256×256", layers, [], 10), ("the same, `--mesh data=4`", layers, ["--mesh", "data=4"], 10)]:
        times = []
        for _ in range(rounds):
            start = time.monotonic()
            shoal.call(["shoalc", model, "-o", f"{work}/compiled", *SGD, *options], shoal.COMPILE_LIMIT)
            times.append(time.monotonic() - start)
        rows.append([name, f"{min(times):.2f}", f"{statistics.median(times):.2f}", at_most(statistics.median(times), bound),
                     f"{os.path.getsize(f'{work}/compiled') / MB:.1f}"])
    table("shoalc, source to executable", ["best, s", "median, s", "bound, s", "executable, MB"], rows)
    compile_scaling.print_tables(work)
    pass_growth.print_table(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = [large_step, small_step, gpt2, gpt2_bf16, gpt2_ranks, pipeline, pipeline_overhead, context, attention,
             all_reduce, overlap, memory, compile_time]
    names = [part.__name__ for part in parts]
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, help="of " + ", ".join(names))
    args = parser.parse_args()
    if unknown := [name for name in args.only if name not in names]:
        parser.error(f"--only must name some of {', '.join(names)}, got: {unknown[0]}")
    os.makedirs(args.work, exist_ok=True)
    print(f"Measured {time.strftime('%Y-%m-%d')} on {machine()}; load {os.getloadavg()[0]:.1f} when it began.\n", flush=True)
    for part in parts:
        if part.__name__ in args.only:
            part(args.work, args.rounds)
    sys.exit(exit_status())


if __name__ == "__main__":
    main()
