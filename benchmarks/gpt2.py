"""GPT-2 of 124 million parameters: a step beside its products alone and beside PyTorch, and over two ranks."""

import json
import os
import statistics

import shoal
from common import MB, at_most, step_seconds, table, torch_lines
from tensor_files import tensor, write_npy

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
          "layer_norm_epsilon": 1e-5}
ROWS, TOKENS = 4, 256
TITLE = f"GPT-2 124M, batch {ROWS} × {TOKENS}, f32, AdamW"
ADAMW = ["--optimizer", "adamw", "--lr", "0.0001", "--weight-decay", "0.01"]
TORCH_TOO_OLD = 3  # of torch_gpt2.py: it has no torch.compile


class Gpt2:
    def __init__(self, work, rows=ROWS):
        self.base, self.rows = f"{work}/gpt2-{rows}", rows
        self.config = f"{self.base}.json"
        with open(self.config, "w") as f:
            json.dump(CONFIG, f)
        shoal.call(["shoal-model", "gpt2", "--config", self.config, "--batch", str(rows), "--seq", str(TOKENS),
                    "--dropout", "off", "-o", f"{self.base}.mlir"], shoal.COMPILE_LIMIT)
        ids = [i * 7919 % CONFIG["vocab_size"] for i in range(rows * TOKENS)]
        for name, values in ("input_ids", ids), ("labels", ids[1:] + ids[:1]):
            write_npy(f"{self.base}.{name}.npy", tensor("i64", (rows, TOKENS), values))
        self.data = ["--threads", "1"]
        for name in ("input_ids", "labels"):
            self.data += ["--data", f"{name}={self.base}.{name}.npy"]

    def compile(self, name, *options):
        return shoal.shoalc(f"{self.base}.mlir", f"{self.base}.{name}", *ADAMW, *options)

    def run(self, program, ranks, steps):
        """Seconds of each step but the first two (page faults, warm-up), and the report's ranks."""
        shoal.run(ranks, program, *self.data, "--steps", str(steps + 2), "--metrics", f"{program}.jsonl", "--report",
                  f"{program}.report.json")
        with open(f"{program}.report.json") as f:
            return step_seconds(f"{program}.jsonl"), json.load(f)["ranks"]


def torch_seconds(model, steps, *options):
    """Seconds of each step, or the line that says why there are none."""
    command = [f"{HERE}/torch_gpt2.py", "--config", model.config, "--batch", str(model.rows), "--seq", str(TOKENS),
               "--steps", str(steps), *options]
    return torch_lines(command, 10 * shoal.RUN_LIMIT, TORCH_TOO_OLD)


def gpt2(work, rounds):
    model = Gpt2(work)
    program = model.compile("one")
    products, ours, eager, compiled = [], [], [], []
    for _ in range(rounds):
        products += [float(line) for line in shoal.call(["gemms-of-a-step", program, "2"], shoal.RUN_LIMIT).split()]
        ours += model.run(program, 1, 2)[0]
        eager += torch_seconds(model, 2)
        if not isinstance(compiled, str):
            more = torch_seconds(model, 2, "--compile")
            compiled = more if isinstance(more, str) else compiled + more
    floor = statistics.median(products)

    def row(name, times, verdict=""):
        seconds = statistics.median(times)
        return [name, f"{seconds * 1e3:.0f}", f"{ROWS * TOKENS / seconds:.0f}", f"{seconds / floor:.3f}", verdict]

    rows = [row("its GEMMs alone, attention's included", products),
            row("the step", ours, at_most(statistics.median(ours) / floor, 1.25)), row("PyTorch, eager", eager)]
    rows.append(["PyTorch, compiled", "", "", "", compiled] if isinstance(compiled, str) else
                row("PyTorch, compiled", compiled))
    table(f"{TITLE}, 1 rank", ["ms a step", "tokens/s", "to its GEMMs", "bound"], rows)


def gpt2_ranks(work, rounds):
    model = Gpt2(work)
    data, tensor_parallel = ["--mesh", "data=2"], ["--mesh", "tensor=2", "--tensor-parallel"]
    plans = {"DDP": data, "ZeRO-1": [*data, "--zero", "1"], "ZeRO-2": [*data, "--zero", "2"],
             "ZeRO-3": [*data, "--zero", "3"], "tensor parallel": tensor_parallel,
             "tensor and sequence parallel": [*tensor_parallel, "--sequence-parallel"]}
    bounds = {"ZeRO-1": 1.1, "ZeRO-3": 1.35}
    torch_plans = {"PyTorch DDP": "ddp", "PyTorch FSDP2": "fsdp2"}
    programs = {name: model.compile(str(k), *options) for k, (name, options) in enumerate(plans.items())}
    times, waiting = {name: [] for name in [*plans, *torch_plans]}, {name: [] for name in plans}
    sent, peak, missing = {}, {}, {}
    for _ in range(rounds):
        for name, program in programs.items():
            steps, ranks = model.run(program, 2, 2)
            times[name] += steps
            waiting[name].append(statistics.mean(rank["measured"]["waiting_ms"] for rank in ranks))
            sent[name] = sum(c["bytes"] for c in ranks[0]["collectives"])
            peak[name] = max(rank["bytes"]["peak"] for rank in ranks)
        for name, kind in torch_plans.items():
            steps = torch_seconds(model, 2, "--ranks", "2", "--parallel", kind)
            if isinstance(steps, str):
                missing[name] = steps
            else:
                times[name] += steps
    ddp = statistics.median(times["DDP"])
    rows = []
    for name in times:
        if name in missing:
            rows.append([name, "", "", "", "", "", "", missing[name]])
            continue
        seconds = statistics.median(times[name])
        row = [name, f"{seconds * 1e3:.0f}", f"{ROWS * TOKENS / seconds:.0f}", f"{seconds / ddp:.3f}"]
        if name in plans:
            stood = statistics.median(waiting[name])
            row += [f"{sent[name] / MB:.0f}", f"{stood:.0f} ({stood / seconds / 10:.1f}%)", f"{peak[name] / MB:.0f}"]
        else:
            row += [""] * 3
        rows.append([*row, at_most(seconds / ddp, bounds[name]) if name in bounds else ""])
    table(f"{TITLE}, 2 ranks", ["ms a step", "tokens/s", "to DDP", "sent by a rank in a step, MB",
                                "exposed communication: a rank's waiting, ms", "peak of a rank, MB", "bound"], rows)


def gpt2_bf16(work, rounds):
    model = Gpt2(work)
    programs = {"f32": model.compile("f32"), "bf16, gradients in f32": model.compile("bf16", "--dtype", "bf16"),
                "bf16, gradients in bf16": model.compile("narrow", "--dtype", "bf16", "--grad-dtype", "bf16")}
    times, peak = {name: [] for name in programs}, {}
    for _ in range(rounds):
        for name, program in programs.items():
            steps, ranks = model.run(program, 1, 2)
            times[name] += steps
            peak[name] = ranks[0]["bytes"]["peak"]
    floor = statistics.median(times["f32"])
    rows = []
    for name in programs:
        seconds = statistics.median(times[name])
        rows.append([name, f"{seconds * 1e3:.0f}", f"{ROWS * TOKENS / seconds:.0f}", f"{seconds / floor:.3f}",
                     f"{peak[name] / MB:.0f}"])
    table(f"GPT-2 124M, batch {ROWS} × {TOKENS}, AdamW, 1 rank", ["ms a step", "tokens/s", "to f32", "peak, MB"], rows)
