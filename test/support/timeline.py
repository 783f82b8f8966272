#!/usr/bin/env python3
"""Runs a pipeline with --timeline and checks what it tells, and that the compiler plans with it.

usage: timeline.py --work FOLDER

A GPT-2 of four layers on pipe=2,data=2 under 1f1b and interleaved. The trace of a step has each pass of each micro-batch
once, on a rank that has its stage, in the order of the schedule; as many messages as the report counts, with as many
bytes; peaks of stashes that are the schedule's. Without --timeline-step it is the last step. The costs beside the trace
are those of as many stages; another compilation of the same stages takes them, one of others does not.
"""

import json
import random
import re
import sys

import shoal
from tensor_files import tensor, write_npy
from work_parser import WorkParser

TOKENS, VOCAB, BATCH, PARTS = 8, 23, 8, 4
CONFIG = {"model_type": "gpt2", "vocab_size": VOCAB, "n_positions": TOKENS, "n_embd": 8, "n_head": 2, "n_layer": 4,
          "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
PLAN = ["--optimizer", "sgd", "--lr", "0.1", "--microbatches", str(PARTS)]


def write_gpt(work, name, batch, **config):
    with open(f"{work}/config.json", "w") as f:
        json.dump({**CONFIG, **config}, f)
    shoal.call(["shoal-model", "gpt2", "--config", f"{work}/config.json", "--batch", str(batch), "--seq", str(TOKENS), "-o",
                f"{work}/{name}.mlir"], shoal.COMPILE_LIMIT)


def write_model(work):
    write_gpt(work, "gpt", BATCH)
    rng, data = random.Random(3), []
    for name in ("input_ids", "labels"):
        write_npy(f"{work}/{name}.npy", tensor("i64", (BATCH, TOKENS), [rng.randrange(VOCAB) for _ in range(BATCH * TOKENS)]))
        data += ["--data", f"{name}={work}/{name}.npy"]
    return f"{work}/gpt.mlir", data


def passes_of(events, rank):
    """"F0@1" of each pass of a rank, in the order of time."""
    found = []
    for event in events:
        name = re.fullmatch(r"([FBIW])(\d+) of stage (\d+)", event["name"])
        if event["ph"] == "X" and event["pid"] == rank and name:
            found.append((event["ts"], f"{name[1]}{name[2]}@{name[3]}"))
    return [name for _, name in sorted(found)]


def peak_of(passes):
    count = peak = 0
    for name in passes:
        count += {"F": 1, "B": -1, "W": -1}.get(name[0], 0)
        peak = max(peak, count)
    return peak


def check(work, model, data, schedule, orders, peaks):
    program = shoal.shoalc(model, f"{work}/{schedule}", "--mesh", "data=2,pipe=2", *PLAN, "--pipeline-schedule", schedule)
    trace, report = f"{work}/{schedule}.json", f"{work}/{schedule}.report.json"
    shoal.run(4, program, *data, "--steps", "3", "--timeline", trace, "--report", report)
    with open(trace) as f:
        told = json.load(f)
    events, faults = told["traceEvents"], []
    counted = shoal.ranks_of_report(report)
    for rank in range(4):
        passes = passes_of(events, rank)
        stage_rank = rank % 2
        if orders[stage_rank] and passes != orders[stage_rank]:
            faults.append(f"{schedule}: rank {rank} has done {passes}, the schedule says {orders[stage_rank]}")
        if peak_of(passes) != peaks[stage_rank]:
            faults.append(f"{schedule}: rank {rank} has stashed {peak_of(passes)}, the schedule says {peaks[stage_rank]}")
        sends = sum(event["ph"] == "X" and event["pid"] == rank and event["cat"] == "S" for event in events)
        promised = sum(line["count"] for line in counted[rank]["collectives"] if line["kind"] == "send")
        if sends != promised or not sends:
            faults.append(f"{schedule}: rank {rank} shows {sends} sends and counts {promised}")
    stages = told["pipelineCosts"]["stages"]
    if len(stages) != (4 if schedule == "interleaved" else 2) or not all(
            set(stage) == {"forward", "backward"} and min(stage.values()) > 0 for stage in stages):
        faults.append(f"{schedule}: costs {stages}")
    shoal.call(["shoalc", model, "--mesh", "data=2,pipe=2", *PLAN, "--pipeline-schedule", schedule, "--pipeline-costs", trace,
                "--timeline", f"{work}/{schedule}.html"], shoal.COMPILE_LIMIT)
    with open(f"{work}/{schedule}.html") as f:
        if "with the costs measured in" not in f.read():
            faults.append(f"{schedule}: the compiler did not take the costs")
    return faults


def check_costs(work, model):
    """Costs are of stages, whatever their order, and of no other program's: rows, model, dtype, state of the optimizer."""
    trace, faults = f"{work}/1f1b.json", []
    with open(trace) as f:
        of = json.load(f)["pipelineCosts"]["of"]
    write_gpt(work, "twice", BATCH * 2)
    write_gpt(work, "wide", BATCH, n_inner=48)
    write_gpt(work, "one", BATCH // PARTS)
    for name, options, takes in (
            ("gpt", {}, True), ("gpt", {"--pipeline-schedule": "zb-h1"}, True), ("gpt", {"--lr": "0.2"}, True),
            ("twice", {"--mesh": "pipe=2,data=2", "--microbatches": str(2 * PARTS)}, True),
            ("one", {"--microbatches": "1"}, True), ("gpt", {"--microbatches": "1"}, False),
            ("gpt", {"--mesh": "pipe=2"}, False), ("gpt", {"--microbatches": "2"}, False), ("wide", {}, False),
            ("gpt", {"--dtype": "bf16"}, False), ("gpt", {"--recompute": "full"}, False),
            ("gpt", {"--optimizer": "adam"}, False)):
        plan = {"--mesh": "data=2,pipe=2", "--microbatches": str(PARTS), "--optimizer": "sgd", "--lr": "0.1", **options}
        command = ["shoalc", f"{work}/{name}.mlir", *(word for option in plan.items() for word in option), "--pipeline-costs",
                   trace, "--timeline", f"{work}/page.html"]
        said = shoal.call(command, shoal.COMPILE_LIMIT, expect=0 if takes else 2)
        if not takes and not re.search('must be of these stages, "(?!%s)[^"]*", got: "%s"' % ((re.escape(of),) * 2), said):
            faults.append(f"{options}: {said}")
    return faults


def check_empty(work):
    """A stage that computes nothing, since who reads its op has the input, too, takes no time; the compiler takes that."""
    path = f"{work}/empty"
    with open(f"{path}.mlir", "w") as f:
        f.write("""func.func @empty(%x: tensor<8x5xf32> {nn.input = "x"},
    %a: tensor<5x5xf32> {nn.param = #nn.param<"a", init = ones>},
    %b: tensor<5x5xf32> {nn.param = #nn.param<"b", init = ones>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %a {pipe.stage = 0 : i64} : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  %1 = nn.relu %x {pipe.stage = 1 : i64} : tensor<8x5xf32>
  %2 = nn.mul %0, %1 {pipe.stage = 2 : i64} : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %3 = nn.matmul %2, %b : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  %loss = nn.reduce mean %3 dims = [0, 1] : tensor<8x5xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
""")
    write_npy(f"{path}.npy", tensor("f32", (8, 5), [0.25] * 40))
    program = shoal.shoalc(f"{path}.mlir", path, "--mesh", "pipe=3", *PLAN)
    shoal.run(3, program, "--data", f"x={path}.npy", "--steps", "2", "--timeline", f"{path}.json")
    with open(f"{path}.json") as f:
        stages = json.load(f)["pipelineCosts"]["stages"]
    shoal.call(["shoalc", f"{path}.mlir", "--mesh", "pipe=3", *PLAN, "--pipeline-costs", f"{path}.json", "--timeline",
                f"{path}.html"], shoal.COMPILE_LIMIT)
    ok = len(stages) == 3 and stages[1] == {"forward": 0, "backward": 0} and stages[2]["forward"] > 0
    return [] if ok else [f"with an empty stage: costs {stages}"]


def check_pages(work, data):
    """The step that is asked for, on a page; what is none is refused."""
    program, faults = f"{work}/1f1b", []
    for options, step in ((["--timeline-step", "2"], 2), ([], 3)):
        shoal.run(4, program, *data, "--steps", "3", "--timeline", f"{work}/run.html", *options)
        with open(f"{work}/run.html") as f:
            page = f.read()
        if f"Measured in step {step} of 3." not in page:
            faults.append(f"{options}: the page is not of step {step}")
        for part in ('class="act F"', 'class="act B"', 'class="act U"', 'class="send back"', "rank 3 (data 1, pipe 1)"):
            if part not in page:
                faults.append(f"{options}: the page has no {part}")
        if "<script" in page:
            faults.append("the page runs scripts")
    # Beside a trace of other steps, which it does not change.
    shoal.run(4, program, *data, "--steps", "3", "--timeline", f"{work}/run.html", "--trace", f"{work}/rows.json",
              "--trace-steps", "1")
    with open(f"{work}/rows.json") as f:
        steps = {event["args"]["step"] for event in json.load(f)["traceEvents"] if event["ph"] == "X"}
    if steps != {1}:
        faults.append(f"--trace-steps 1 beside --timeline has steps {steps}")
    for options, words in ((["--timeline-step", "4"], "--timeline-step must be one of the steps of this run, 1 to 3, got: 4"),
                           (["--timeline-step", "0"], "--timeline-step"),):
        said = shoal.run(4, program, *data, "--steps", "3", "--timeline", f"{work}/run.html", *options, expect=2)
        if words not in said:
            faults.append(f"{options}: {said}")
    said = shoal.run(4, program, *data, "--timeline", f"{work}/run.txt", expect=2)
    if "--timeline must name a file that ends in .html or .json" not in said:
        faults.append(said)
    return faults


def check_kinds(work, model, data):
    """What the compiler simulates and what a run measures are of the same kinds, with a norm that updates wait for, one that
    is only told, and none."""
    faults = []
    for options, norm in (["--clip-grad-norm", "1"], True), (["--grad-norm"], False), ([], False):
        program = shoal.shoalc(model, f"{work}/kinds", "--mesh", "pipe=2", *PLAN, *options, "--timeline", f"{work}/plan.html")
        shoal.run(2, program, *data, "--steps", "2", "--timeline", f"{work}/run.html")
        for name in "plan", "run":
            with open(f"{work}/{name}.html") as f:
                page = f.read()
            kinds = set(re.findall(r'class="act ([FBIWNU])"', page))
            if kinds != set("FBUN" if norm else "FBU") or ("longest wait for the norm" in page) != norm:
                faults.append(f"{options}: {name}.html shows {sorted(kinds)}")
    return faults


def main():
    work = WorkParser(__doc__).parse_args().work
    model, data = write_model(work)
    order = ["F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"]
    orders = [[f"{name}@{stage}" for name in line.split()] for stage, line in enumerate(order)]
    faults = check(work, model, data, "1f1b", orders, [2, 1])
    faults += check(work, model, data, "interleaved", [None, None], [5, 3])
    faults += check_costs(work, model)
    faults += check_empty(work)
    faults += check_pages(work, data)
    faults += check_kinds(work, model, data)
    # A program without stages has rows only.
    plain = shoal.shoalc(model, f"{work}/plain", "--mesh", "data=2", *PLAN)
    said = shoal.run(2, plain, *data, "--timeline", f"{work}/run.html", expect=2)
    if "--timeline does not apply: the program has no stages of a pipeline" not in said:
        faults.append(said)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
