#!/usr/bin/env python3
"""Holds what the stages of a pipeline send each other and keep against formulas that are exact.

usage: pipeline_traffic.py --work FOLDER --pmpi LIBRARY.so

The model is a stack of equal residual blocks, r = x + tanh(x w), cut into equal stages. Bytes of messages in a step:
those of all ranks are 2 * micro-batches * boundaries between ranks * rows * sequence * width * size, rows being those
of a micro-batch on one data rank. Of what is kept: a block keeps its input and its tanh of each micro-batch that is
live, as many as the schedule's formula says; beside that a rank has a cotangent and what a block makes of it, what it
has received ahead, and at the ends of the pipeline the inputs of the step and what the loss needs. The promise is checked under many shapes; in runs also the count,
and what a library sees that wraps MPI's profiling interface.
"""

import json
import math
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

STEPS = 2
ROWS, TOKENS, WIDTH, SIZE = 2, 3, 8, 8  # of a micro-batch; f64
MESSAGE = ROWS * TOKENS * WIDTH * SIZE
BLOCKS = 2  # of a rank


def model(blocks, rows, skip):
    """With `skip` the last block adds what the first has made."""
    t, w = f"tensor<{rows}x{TOKENS}x{WIDTH}xf64>", f"tensor<{WIDTH}x{WIDTH}xf64>"
    arguments = [f'%{name}: {t} {{nn.input = "{name}"}}' for name in "xy"]
    arguments += [f'%w{i}: {w} {{nn.param = #nn.param<"w{i}", init = xavier_uniform>}}' for i in range(blocks)]
    lines = [f"func.func @stack({', '.join(arguments)}) -> (tensor<f64> {{nn.loss}}) {{"]
    x = "%x"
    for i in range(blocks):
        layer = f'{{nn.layer = "h.{i}"}}'
        lines += [f"  %z{i} = nn.tensordot {x}, %w{i} axes = 1 {layer} : ({t}, {w}) -> {t}",
                  f"  %t{i} = nn.tanh %z{i} {layer} : {t}", f"  %r{i} = nn.add %t{i}, {x} {layer} : ({t}, {t}) -> {t}"]
        x = f"%r{i}"
    if skip:
        lines.append(f'  %s = nn.add {x}, %r0 {{nn.layer = "h.{blocks - 1}"}} : ({t}, {t}) -> {t}')
        x = "%s"
    lines += [f"  %loss = nn.mse_loss mean {x}, %y : ({t}, {t}) -> tensor<f64>", "  return %loss : tensor<f64>", "}"]
    return "\n".join(lines) + "\n"


def live(schedule, ranks, parts, rank):
    """Micro-batches that a rank keeps at once, of interleaved those of one of its two stages."""
    if schedule == "interleaved":
        warm_up = parts // max(1, parts // ranks) + 2 * (ranks - 1 - rank)
        return min(warm_up + 1, 2 * parts)
    return {"gpipe": parts, "1f1b": min(parts, ranks - rank), "zb-h1": min(ranks, parts),
            "zb-h2": min(2 * ranks - 1, parts)}[schedule]


def arrives_early(schedule, ranks, parts, rank):
    """Whether most is kept while the next micro-batch has already come: then that is in a backward pass, else in the
    forward pass in front of it."""
    return schedule in ("1f1b", "zb-h2") and live(schedule, ranks, parts, rank) < parts


def ahead(schedule, ranks, parts, rank):
    """Messages that have come before they are read, or wait for a weight part, where most is kept."""
    return 2 * schedule.startswith("zb") + arrives_early(schedule, ranks, parts, rank)


def first_tensors(schedule, ranks, parts):
    """All micro-batches of the input, and nothing that is received to be computed with; of a schedule with weight parts one
    that waits for its own."""
    kept = live(schedule, ranks, parts, 0)
    return 2 * BLOCKS * kept + 2 + parts + int(schedule.startswith("zb") and kept < parts)


def last_tensors(schedule, ranks, parts):
    """All micro-batches of the targets, and of those that wait for their whole backward pass two tensors of the loss. Where
    that is in two parts the first of them follows at once, and the loss keeps nothing."""
    kept = live(schedule, ranks, parts, ranks - 1)
    return 2 * BLOCKS * kept + 2 + ahead(schedule, ranks, parts, ranks - 1) + parts + (
        0 if schedule.startswith("zb") else 2 * kept)


def last_numbers(schedule, ranks, parts):
    """Of 8 bytes each, where most is kept: how many rows are real, two factors made of that, and the sum of the loss;
    the first row of each micro-batch that waits for the backward pass of its loss, which masks by it and where that is
    in two parts follows at once; the numbers of all micro-batches, until all have been forward; in a forward pass the
    term of the loss that it makes."""
    kept = live(schedule, ranks, parts, ranks - 1)
    first_rows = 1 if schedule.startswith("zb") else kept
    numbers = parts if kept < parts else 0
    return 4 + first_rows + numbers + (not arrives_early(schedule, ranks, parts, ranks - 1))


class Findings:
    def __init__(self):
        self.failed = False

    def equal(self, what, got, expected):
        if got != expected:
            self.failed = True
            print(f"{what}: got {got}, expected {expected}")


def compile_stack(args, ranks, parts, *options, data=1, skip=False, output=None):
    """Returns the promise of each rank."""
    path = f"{args.work}/stack"
    with open(f"{path}.mlir", "w") as f:
        f.write(model(BLOCKS * ranks, ROWS * parts * data, skip))
    mesh = f"pipe={ranks}" + (f",data={data}" if data > 1 else "")
    shoal.call(["shoalc", f"{path}.mlir", "--mesh", mesh, "--microbatches", str(parts), "--report",
                f"{path}.promise.json", *(["-o", output] if output else []), *options], shoal.COMPILE_LIMIT)
    return shoal.ranks_of_report(f"{path}.promise.json")


def messages(entry):
    return sum(c["bytes"] for c in entry["collectives"] if c["kind"] == "send")


def activations(entry):
    return entry["bytes"]["activations"]


def boundaries(schedule, ranks):
    return {"interleaved": 2 * ranks - 1, "zb-v": 2 * ranks - 2}.get(schedule, ranks - 1)


def check_messages(args, find):
    """Of every schedule, with and without a value of the first stage that the last reads: it is handed on over all
    stages between, and its cotangent back."""
    for ranks, parts in (2, 4), (3, 6), (4, 8):
        for schedule in "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v":
            for skip in False, True:
                entries = compile_stack(args, ranks, parts, "--pipeline-schedule", schedule, skip=skip)
                find.equal(f"bytes of messages, {schedule}, {ranks} ranks, {parts} micro-batches, skip {skip}",
                           sum(map(messages, entries)), 2 * parts * boundaries(schedule, ranks) * MESSAGE * (1 + skip))


def check_stash(args, find):
    """Of each live micro-batch two tensors a block; in the middle inputs and outputs are messages."""
    for ranks in 2, 3, 4:
        for parts in 2, 3, 4, 6, 8:
            for schedule in "gpipe", "1f1b", "zb-h1", "zb-h2":
                entries = compile_stack(args, ranks, parts, "--pipeline-schedule", schedule)
                expected = [2 * BLOCKS * live(schedule, ranks, parts, rank) + 2 + ahead(schedule, ranks, parts, rank)
                            for rank in range(1, ranks - 1)]
                expected = [MESSAGE * tensors for tensors in (first_tensors(schedule, ranks, parts), *expected,
                                                              last_tensors(schedule, ranks, parts))]
                expected[-1] += SIZE * last_numbers(schedule, ranks, parts)
                find.equal(f"bytes of activations, {schedule}, {ranks} ranks, {parts} micro-batches",
                           [activations(entry) for entry in entries], expected)
    # Of two stages a rank, each of one block, neighbours differ by the warm-up.
    entries = compile_stack(args, 4, 8, "--pipeline-schedule", "interleaved")
    kept = [live("interleaved", 4, 8, rank) for rank in (1, 2)]
    find.equal("interleaved, ranks 1 and 2", activations(entries[1]) - activations(entries[2]),
               (kept[0] - kept[1]) * 2 * MESSAGE)


def check_file(args, find):
    """A schedule of one's own that keeps one micro-batch more on rank 1 than 1F1B, whose formula it does not fit."""
    path = f"{args.work}/eager.txt"
    with open(path, "w") as f:
        f.write("0: F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5\n1: F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5\n"
                "2: F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5\n")
    kept = activations(compile_stack(args, 3, 6, "--schedule-file", path)[1])
    usual = activations(compile_stack(args, 3, 6, "--pipeline-schedule", "1f1b")[1])
    find.equal("live micro-batches more than 1F1B's", (kept - usual) // (2 * BLOCKS * MESSAGE), 1)


def witness(args, find, name, ranks, data, entries, *options):
    """In a run what is promised is counted and seen below MPI, on each rank."""
    inputs = [a for input, path in data for a in ("--data", f"{input}={path}")]
    shoal.run(ranks, name, *inputs, "--steps", str(STEPS), *options, "--report", f"{name}.counted.json",
              env={"LD_PRELOAD": args.pmpi, "SHOAL_PMPI_OUT": f"{name}.pmpi"})
    find.equal(f"{name}: count and promise", shoal.ranks_of_report(f"{name}.counted.json"), entries)
    for entry in entries:
        with open(f"{name}.pmpi.{entry['rank']}") as f:
            seen = json.load(f)
        sent = sum(c["count"] * c["elements"] * c["element_bytes"] for c in seen["calls"]
                   if c["call"] == "MPI_Isend" and c["comm"].startswith("shoal stream"))
        find.equal(f"{name}: rank {entry['rank']} below MPI", sent, STEPS * messages(entry))
        find.equal(f"{name}: rank {entry['rank']}, bytes asked for", seen["arena_bytes"], entry["bytes"]["peak"])


def check_runs(args, find):
    for schedule, ranks, parts, data in ("1f1b", 4, 8, 1), ("interleaved", 2, 4, 2), ("zb-v", 3, 6, 1):
        name = f"{args.work}/{schedule}"
        entries = compile_stack(args, ranks, parts, "--pipeline-schedule", schedule, data=data, output=name)
        find.equal(f"{name}: bytes of messages", sum(map(messages, entries)),
                   2 * parts * boundaries(schedule, ranks) * MESSAGE * data)
        rows, inputs = ROWS * parts * data, []
        for i, input in enumerate("xy"):
            values = [math.sin(0.37 * (k + 1) + i) for k in range(rows * TOKENS * WIDTH)]
            write_npy(f"{name}.{input}.npy", tensor("f64", (rows, TOKENS, WIDTH), values))
            inputs.append((input, f"{name}.{input}.npy"))
        # Of windows there are none where no collective is.
        witness(args, find, name, ranks * data, inputs, entries, *(["--local-comm", "mpi"] if data > 1 else []))


def check_shared(args, find):
    """A GPT whose table is in the first and the last stage, alone and under sequence parallelism, which cuts what
    stages hand on: each of the two ranks that have a term of the table's gradient sends its part of the table once. The
    ranks between send nothing of it, and have no more gradients than parameters, of which the table is none."""
    rows, tokens, width, vocab, layers, ranks, parts = 4, 12, 24, 32, 4, 3, 2
    path = f"{args.work}/gpt"
    with open(f"{path}.json", "w") as f:
        json.dump({"model_type": "gpt2", "vocab_size": vocab, "n_positions": tokens, "n_embd": width, "n_head": 4,
                   "n_inner": 40, "n_layer": layers}, f)
    shoal.call(["shoal-model", "gpt2", "--config", f"{path}.json", "--batch", str(rows), "--seq", str(tokens),
                "--dropout", "off", "-o", f"{path}.mlir"], shoal.COMPILE_LIMIT)
    ids = [(7 * i + 3) % vocab for i in range(rows * tokens)]
    for name, values in ("input_ids", ids), ("labels", ids[1:] + ids[:1]):
        write_npy(f"{path}.{name}.npy", tensor("i64", (rows, tokens), values))
    for tensors in 1, 2:
        mesh = ["--mesh", f"pipe={ranks}"] if tensors == 1 else \
            ["--mesh", f"pipe={ranks},tensor={tensors}", "--tensor-parallel", "--sequence-parallel"]
        shoal.call(["shoalc", f"{path}.mlir", *mesh, "--microbatches", str(parts), "-o", f"{path}.{tensors}",
                    "--report", f"{path}.promise.json"], shoal.COMPILE_LIMIT)
        entries = shoal.ranks_of_report(f"{path}.promise.json")
        stream, table = rows // parts * tokens * width * 4 // tensors, vocab * width * 4 // tensors
        for entry in entries:
            rank = entry["coords"]["pipe"]
            ends = rank in (0, ranks - 1)
            find.equal(f"{path}: {tensors} ranks a stage, rank {rank}, bytes of messages", messages(entry),
                       parts * stream + table if ends else 2 * parts * stream)
            find.equal(f"{path}: {tensors} ranks a stage, rank {rank}, reductions over the pipeline",
                       [c for c in entry["collectives"] if c["axes"] == ["pipe"]], [])
            if not ends:
                find.equal(f"{path}: {tensors} ranks a stage, rank {rank}, bytes of gradients", entry["bytes"]["grads"],
                           entry["bytes"]["params"])
        if tensors == 1:
            data = [(name, f"{path}.{name}.npy") for name in ("input_ids", "labels")]
            witness(args, find, f"{path}.{tensors}", ranks, data, entries)


def main():
    args = WorkParser(__doc__, "--pmpi").parse_args()
    find = Findings()
    check_messages(args, find)
    check_stash(args, find)
    check_file(args, find)
    check_shared(args, find)
    check_runs(args, find)
    sys.exit(1 if find.failed else 0)


if __name__ == "__main__":
    main()
