#!/usr/bin/env python3
"""How the compiler's own passes grow with a model, as Markdown tables: time and memory from source to rank program.

usage: compile_scaling.py --work FOLDER [--only chain,perceptron,transformer,llama_70b,schedules]
(tools on PATH, see run.sh)

Tiny layers under Adam, in three kinds: matmuls alone (three arguments and three results of the step per layer, hardly
any kernels), perceptrons with bias and relu, where fusion has most to try, both over two ranks, and blocks of Llama
with their sequence sharded. The processor's time is taken, best of three, since a shared machine stretches the wall's.
Twice the layers should take twice as long, and at most what the bound says, which n² would miss. Llama 3 of 70 billion
parameters has bounds of its own, in seconds and bytes, under several plans, and so have orders of a
large pipeline. The exit status is 1 when one is missed.
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "support"))
import shoal  # noqa: E402
from common import at_most, exit_status, table  # noqa: E402
from generate_mlp import generate  # noqa: E402

BATCH, WIDTH = 4, 4
RATIO_BOUND, LIMIT = 2.6, 600
SEQUENCE_PARALLEL = ["--tensor-parallel", "--sequence-parallel"]
LLAMA = {"model_type": "llama", "vocab_size": 32, "max_position_embeddings": 16, "hidden_size": 16,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32}
LLAMA_70B = f"{HERE}/../test/Tools/Inputs/llama-3-70b.json"
LLAMA_70B_GIB = 4
SCHEDULE_SECONDS = 1
ON_64, ON_32 = [["--mesh", f"data={count},tensor=8", *SEQUENCE_PARALLEL] for count in (8, 4)]
LLAMA_70B_PLANS = [  # options, rows of the batch, seconds
    (ON_64, 8, 20),
    *((ON_32 + ["--microbatches", str(count)], 128, 30) for count in (8, 16, 32)),
    (["--mesh", "pipe=8,data=4,tensor=8", *SEQUENCE_PARALLEL, "--pipeline-schedule", "interleaved",
      "--pipeline-chunks", "2", "--microbatches", "32"], 128, 30),
    (ON_32 + ["--zero", "3", "--recompute", "selective", "--dtype", "bf16"], 8, 30)]


def run_once(command):
    """Seconds of the processor, and the peak of resident memory in MiB."""
    child = subprocess.Popen(["timeout", str(LIMIT), *command])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"exit status {child.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def compile_once(model, options):
    return run_once(["shoalc", model, "-o", f"{model}.exec", "--emit", "exec", "--optimizer", "adam", *options])


def perceptron(work, layers, linear):
    model = f"{work}/{'chain' if linear else 'perceptron'}{layers}.mlir"
    with open(model, "w") as f:
        f.write(generate(BATCH, [WIDTH] * (layers + 1), linear=linear))
    return model


def llama(work, config, rows, tokens):
    model = f"{work}/llama{config['num_hidden_layers']}-{rows}.mlir"
    with open(f"{model}.json", "w") as f:
        json.dump(config, f)
    shoal.call(["shoal-model", "llama", "--config", f"{model}.json", "--batch", str(rows), "--seq", str(tokens), "-o",
                model], shoal.COMPILE_LIMIT)
    return model


def scaling(what, layers, model_of, options):
    """Prints a row per number of layers, each beside the one before it. The last one has the bound."""
    rows, before, ratio = [], None, None
    for count in layers:
        model = model_of(count)
        times, memory = zip(*(compile_once(model, options) for _ in range(3)))
        ratio = min(times) / before if before else None
        before = min(times)
        rows.append([f"{count} layers", f"{before:.2f}", f"{ratio:.2f}" if ratio else "", f"{max(memory):.0f}"])
    rows[-1].append(at_most(ratio, RATIO_BOUND))
    table(f"source to rank program, {what}, Adam, `{' '.join(options)}`",
          ["s", "times the one before", "MiB", "bound"], [row + [""] * (4 - len(row[1:])) for row in rows])


def chain(work):
    scaling("a chain of matmuls", [500, 1000, 2000], lambda n: perceptron(work, n, linear=True), ["--mesh", "data=2"])


def layers_of_perceptrons(work):
    scaling("a perceptron with bias and relu", [500, 1000, 2000], lambda n: perceptron(work, n, linear=False),
            ["--mesh", "data=2"])


def transformer(work):
    scaling("blocks of Llama", [20, 40, 80], lambda n: llama(work, LLAMA | {"num_hidden_layers": n}, 4, 8),
            ["--mesh", "data=2,tensor=2", *SEQUENCE_PARALLEL])


def llama_70b(work):
    with open(LLAMA_70B) as f:
        config = json.load(f)
    rows = []
    for options, batch, bound in LLAMA_70B_PLANS:
        model = llama(work, config, batch, 8192)
        times, memory = zip(*(compile_once(model, options) for _ in range(3)))
        seconds, gib = min(times), max(memory) / 1024
        rows.append([f"`{' '.join(options)}`, {batch} rows", f"{seconds:.2f}", at_most(seconds, bound), f"{gib:.2f}",
                     at_most(gib, LLAMA_70B_GIB)])
    table("source to rank program, Llama 3 70B, 80 layers, Adam", ["s", "bound", "GiB", "bound"], rows)


def schedules(work):
    """A large pipeline's order alone: generated with its messages, and checked."""
    module, rows = f"{work}/empty.mlir", []
    with open(module, "w") as f:
        f.write("module {}\n")
    for schedule, chunks in ("interleaved", 4), ("zb-h1", 1), ("zb-v", 2):
        options = f"schedule={schedule} ranks=64 microbatches=512 chunks={chunks}"
        command = ["shoal-opt", module, f"--pipe-schedule={options}", "--pipe-verify", "-o", f"{module}.schedule"]
        times, memory = zip(*(run_once(command) for _ in range(3)))
        rows.append([f"{schedule}, {chunks} stages a rank", f"{min(times):.2f}", at_most(min(times), SCHEDULE_SECONDS),
                     f"{max(memory):.0f}"])
    table("a schedule of 64 ranks and 512 micro-batches, generated and checked", ["s", "bound", "MiB"], rows)


KINDS = {"chain": chain, "perceptron": layers_of_perceptrons, "transformer": transformer, "llama_70b": llama_70b,
         "schedules": schedules}


def print_tables(work, kinds=tuple(KINDS)):
    for kind in kinds:
        KINDS[kind](work)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS), help="of " + ", ".join(KINDS))
    args = parser.parse_args()
    if unknown := [kind for kind in args.only if kind not in KINDS]:
        parser.error(f"--only must name some of {', '.join(KINDS)}, got: {unknown[0]}")
    os.makedirs(args.work, exist_ok=True)
    print_tables(args.work, args.only)
    sys.exit(exit_status())


if __name__ == "__main__":
    main()
