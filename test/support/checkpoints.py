#!/usr/bin/env python3
"""Trains, saves, stops and goes on, under the same plan and under others, against runs without a stop.

usage: checkpoints.py --work FOLDER [--chain "MESH FLAGS" ...]

Models: an MLP of odd sizes with dropout, AdamW and shuffled rows whose epochs end in a short batch; batch norm with running
statistics; a function of parameters alone. Under the same plan a resumed run has the losses and parameters of the uninterrupted one, bit for bit; along
the chain of plans (of 4, 2, 3 and 1 ranks, stages of ZeRO and sizes of its buckets where none is given) to 1e-10 in float64. In
bf16 (and micro-batches, and recompute) the same plan is bit for bit, too, and under another one what is loaded is what was saved, bit
for bit; what is trained from it on is that of a run without a stop to 1e-5, the rounding of sums in f32. Then what is wrong with
checkpoints and command
lines: each is told in one line that names it.
"""

import json
import os
import shutil
import sys

import shoal
from metrics import read_lines, read_metrics
from tensor_files import crc32c, read_safetensors, tensor, write_npy
from uneven_batches import wave
from work_parser import WorkParser

ROWS, BATCH = 23, 10

MLP = """
func.func @mlp(
    %x: tensor<10x7xf64> {nn.input = "x"},
    %y: tensor<10x3xf64> {nn.input = "y"},
    %w1: tensor<7x5xf64> {nn.param = #nn.param<"h.0.w", init = kaiming_uniform>},
    %b1: tensor<5xf64>   {nn.param = #nn.param<"h.0.b", init = zeros>},
    %w2: tensor<5x3xf64> {nn.param = #nn.param<"h.1.w", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 {nn.layer = "h.0"} : (tensor<10x7xf64>, tensor<7x5xf64>) -> tensor<10x5xf64>
  %1 = nn.add %0, %b1 {nn.layer = "h.0"} : (tensor<10x5xf64>, tensor<5xf64>) -> tensor<10x5xf64>
  %2 = nn.relu %1 {nn.layer = "h.0"} : tensor<10x5xf64>
  %3 = nn.dropout %2 rate = 0.25 id = 3 {nn.layer = "h.0"} : tensor<10x5xf64>
  %4 = nn.matmul %3, %w2 {nn.layer = "h.1"} : (tensor<10x5xf64>, tensor<5x3xf64>) -> tensor<10x3xf64>
  %loss = nn.mse_loss mean %4, %y : (tensor<10x3xf64>, tensor<10x3xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
"""
BATCH_NORM = """
func.func @norm(
    %x: tensor<10x7xf64> {nn.input = "x"},
    %y: tensor<10x3xf64> {nn.input = "y"},
    %w: tensor<7x3xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>},
    %g: tensor<7xf64>   {nn.param = #nn.param<"bn.weight", init = ones>},
    %b: tensor<7xf64>   {nn.param = #nn.param<"bn.bias", init = zeros>},
    %m: tensor<7xf64>   {nn.buffer = #nn.buffer<"bn.running_mean", init = 0.0>},
    %v: tensor<7xf64>   {nn.buffer = #nn.buffer<"bn.running_var", init = 1.0>})
    -> (tensor<f64> {nn.loss}, tensor<7xf64> {nn.updates = "bn.running_mean"}, tensor<7xf64> {nn.updates = "bn.running_var"}) {
  %1:3 = nn.batch_norm %x, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<10x7xf64>, tensor<7xf64>
  %2 = nn.matmul %1#0, %w : (tensor<10x7xf64>, tensor<7x3xf64>) -> tensor<10x3xf64>
  %loss = nn.mse_loss mean %2, %y : (tensor<10x3xf64>, tensor<10x3xf64>) -> tensor<f64>
  return %loss, %1#1, %1#2 : tensor<f64>, tensor<7xf64>, tensor<7xf64>
}
"""
NO_BATCHES = """
func.func @alone(%w: tensor<4xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>}) -> (tensor<f64> {nn.loss}) {
  %0 = nn.mul %w, %w : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %loss = nn.reduce sum %0 dims = [0] : tensor<4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
"""
# A megabyte of parameters and as much of state.
WIDE = """
func.func @wide(
    %x: tensor<10x7xf64> {nn.input = "x"},
    %y: tensor<10x3xf64> {nn.input = "y"},
    %a: tensor<7x12000xf64> {nn.param = #nn.param<"a", init = kaiming_uniform>},
    %b: tensor<12000x3xf64> {nn.param = #nn.param<"b", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %a : (tensor<10x7xf64>, tensor<7x12000xf64>) -> tensor<10x12000xf64>
  %1 = nn.matmul %0, %b : (tensor<10x12000xf64>, tensor<12000x3xf64>) -> tensor<10x3xf64>
  %loss = nn.mse_loss mean %1, %y : (tensor<10x3xf64>, tensor<10x3xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
"""
ADAMW = ("--optimizer", "adamw", "--lr", "0.02", "--weight-decay", "0.1", "--clip-grad-norm", "1.0",
         "--lr-schedule", "cosine", "--warmup-steps", "2", "--decay-steps", "20")
MOMENTUM = ("--optimizer", "sgd", "--lr", "0.05", "--momentum", "0.9")
# A row is computed in bf16 alike everywhere; losses and gradients are sums over rows in f32, whose order a plan changes.
NARROW, NARROW_TOLERANCE = (*MOMENTUM, "--dtype", "bf16", "--microbatches", "2", "--recompute", "full"), 1e-5
CHAIN = ["data=4 --zero 3 --bucket-mb 0.00004", "data=2 --zero 1", "data=3 --zero 2 --bucket-mb 0.0001", "data=2 --zero 1 --bucket-mb 0.0002", ""]
TOLERANCE = 1e-10


class Fault(Exception):
    pass


def require(holds, what):
    if not holds:
        raise Fault(what)


class Model:
    """A model compiled for several plans, and its runs."""

    def __init__(self, work, name, text, optimizer, inputs=("x", "y"), tolerance=TOLERANCE):
        self.work, self.name, self.optimizer, self.inputs, self.tolerance = work, name, optimizer, inputs, tolerance
        with open(self.path("model.mlir"), "w") as f:
            f.write(text)
        self.programs = {}

    def path(self, name):
        return os.path.join(self.work, f"{self.name}-{name}")

    def program(self, plan):
        if plan not in self.programs:
            words = plan.split()
            flags = (["--mesh", words[0]] if words else []) + words[1:]
            self.programs[plan] = shoal.shoalc(self.path("model.mlir"), self.path(f"program{len(self.programs)}"), *flags,
                                               *self.optimizer)
        return self.programs[plan]

    def run(self, plan, *options, expect=0, tag="run"):
        """Trains; returns what the run said. Metrics and parameters are in the files of `tag`."""
        seeds = [] if "--resume" in options else ["--seed", "5"] + ["--shuffle"] * bool(self.inputs)
        data = [] if "--data" in options else [word for name in self.inputs
                                               for word in ("--data", f"{name}={self.work}/{name}.npy")]
        return shoal.run(self.ranks(plan), self.program(plan), *data, *seeds,
                         "--metrics", self.path(f"{tag}.jsonl"), "--dump-params", self.path(f"{tag}.safetensors"), *options,
                         expect=expect)

    @staticmethod
    def ranks(plan):
        return shoal.ranks_of(plan.split()[0] if plan else "")

    def steps(self, tag):
        return [(r["step"], r["epoch"], r["loss"]) for r in read_metrics(self.path(f"{tag}.jsonl"))]

    def params(self, tag):
        return read_safetensors(self.path(f"{tag}.safetensors"))


def near(got, expected, tolerance):
    return len(got) == len(expected) and all(
        g[:2] == e[:2] and abs(g[2] - e[2]) <= tolerance * max(1.0, abs(e[2])) for g, e in zip(got, expected))


def check_same_plan(model, plan):
    """Stopped in the middle of an epoch and resumed: bit for bit."""
    folder = model.path("same")
    shutil.rmtree(folder, ignore_errors=True)
    model.run(plan, "--steps", "9", tag="whole")
    said = model.run(plan, "--steps", "4", "--save", folder, "--save-every", "1", "--keep", "2", tag="first")
    require(f"step 4/4  saved {folder}/step-000004" in said, f"the save is not told: {said}")
    require(sorted(os.listdir(folder)) == ["step-000003", "step-000004"], f"two are kept, got: {os.listdir(folder)}")
    model.run(plan, "--steps", "9", "--resume", folder, "--save", folder, tag="second")
    require(model.steps("first") + model.steps("second") == model.steps("whole"),
            f"{plan}: steps {model.steps('second')}, without a stop {model.steps('whole')[4:]}")
    require(model.params("second") == model.params("whole"), f"{plan}: parameters differ from those without a stop")
    # Again from the older one, and with epochs: 23 rows are 3 batches of 10.
    model.run(plan, "--epochs", "3", "--resume", f"{folder}/step-000004", "--seed", "5", "--shuffle", tag="third")
    require(model.steps("third") == model.steps("second"), f"{plan}: another run by epochs")


def check_chain(model, chain):
    """Each plan goes on where the one before stopped."""
    folder = model.path("chain")
    shutil.rmtree(folder, ignore_errors=True)
    total = 2 * len(chain) + 1
    model.run("", "--steps", str(total), tag="whole")
    steps = []
    for i, plan in enumerate(chain):
        last = i + 1 == len(chain)
        resume = ["--resume", folder] if i else []
        if i:  # no step more: what is loaded is what was left
            model.run(plan, "--steps", str(2 * i), *resume, tag="loaded")
            require(model.params("loaded") == model.params(f"link{i - 1}"), f"chain {chain}: {plan} loads other parameters")
        model.run(plan, "--steps", str(total if last else 2 * (i + 1)), "--save", folder, *resume, tag=f"link{i}")
        steps += model.steps(f"link{i}")
        said = shoal.call(["shoal-ckpt", "verify", folder], 60)
        require("each in one of" in said, said)
    require(near(steps, model.steps("whole"), model.tolerance), f"chain {chain}: steps {steps}, without a stop {model.steps('whole')}")
    got, whole = model.params(f"link{len(chain) - 1}"), model.params("whole")
    worst = max(max(abs(g - w) for g, w in zip(got[name].data, whole[name].data)) for name in whole)
    require(sorted(got) == sorted(whole) and worst <= model.tolerance, f"chain {chain}: parameters differ by {worst}")
    merged = model.path("merged.safetensors")
    shoal.call(["shoal-ckpt", "merge", folder, "-o", merged], 60)
    require(read_safetensors(merged) == got, f"chain {chain}: what is merged is not what --dump-params writes")
    check_loaded(model, folder)


def check_loaded(model, folder):
    """With the optimizer's state, --load goes on from a merged checkpoint, too."""
    merged = model.path("merged-state.safetensors")
    shoal.call(["shoal-ckpt", "merge", folder, "-o", merged, "--with-state"], 60)
    said = model.run("", "--load", merged, "--steps", "0", tag="loaded")
    require("begins anew" not in said and model.params("loaded") == read_safetensors(model.path("merged.safetensors")),
            f"--load of what was merged: {said}")


def errors_of(said):
    return [text for text in said.splitlines() if text.startswith("error: ")]


def check_without_batches(model):
    """A program that takes no batches goes on, too. An index with a place in the data that it cannot have, or that no
    training has, is told, though its checksum is right."""
    folder = model.path("saved")
    shutil.rmtree(folder, ignore_errors=True)
    model.run("", "--steps", "5", tag="whole")
    model.run("", "--steps", "2", "--save", folder)
    model.run("", "--steps", "5", "--resume", folder, tag="second")
    require(model.params("second") == model.params("whole"), "without batches: parameters differ from those without a stop")
    index = f"{folder}/step-000002/index.json"
    with open(index) as f:
        good = f.read()
    for old, new, line in (
            ('"batch":0', '"batch":1', 'data without batches ("batch_rows" is 0) must have'),
            ('"batch":0,"rows":0,"batch_rows":0', '"batch":1,"rows":9,"batch_rows":3', "is of the middle of an epoch of 9 rows"),
            ('"batch":0,"rows":0,"batch_rows":0', '"batch":3,"rows":9,"batch_rows":3', '"batch" must be 0 or less than 3'),
            ('"epoch":0,"batch":0,"rows":0,"batch_rows":0', '"epoch":3,"batch":0,"rows":9,"batch_rows":3',
             '"epoch" and "batch" together must be at most "step" 2, got: 3 and 0'),
            ('"step": 2', f'"step": {2**64 - 1}', f'"step" must be at most {2**63 - 1}')):
        require(good.count(old) == 1, f"{old} is not once in {good}")
        body = good.replace(old, new).split('"index_crc32c"')[0]
        with open(index, "w") as f:
            f.write(f'{body}"index_crc32c": "{crc32c(body.encode())}"\n}}\n')
        said = model.run("", "--steps", "5", "--resume", folder, expect=2)
        require(len(errors_of(said)) == 1 and line in said, f"expected one line with '{line}', got: {said}")


def check_refusals(model, plan):
    """Faults of files and command lines, each in one line."""
    folder = model.path("refused")
    shutil.rmtree(folder, ignore_errors=True)
    model.run(plan, "--steps", "4", "--save", folder, "--save-every", "2", tag="saved")
    newest = f"{folder}/step-000004"
    shards = sorted(name for name in os.listdir(newest) if name.startswith("rank-"))
    require(len(shards) == 4, f"each rank writes, got: {shards}")

    def refused(line, *options, at=model, under=plan, code=2):
        said = at.run(under, "--steps", "6", *options, expect=code, tag="refused")
        errors = errors_of(said)
        require(len(errors) == 1 and line in errors[0], f"expected one line with '{line}', got: {said}")

    def changed(name, change, line, *options):
        path = f"{newest}/{name}"
        shutil.copy(path, model.path("kept"))
        change(path)
        refused(line, "--resume", folder, *options)
        shutil.copy(model.path("kept"), path)

    def flip(path):
        with open(path, "r+b") as f:
            f.seek(-3, os.SEEK_END)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 4]))

    def edit(old, new):
        def change(path):
            with open(path) as f:
                text = f.read()
            require(old in text, f"{path} lacks {old}")
            with open(path, "w") as f:
                f.write(text.replace(old, new))

        return change

    def shorter(path):
        os.truncate(path, os.path.getsize(path) - 8)

    changed(shards[2], flip, f"{shards[2]}: is damaged: its bytes have CRC-32C")
    changed(shards[1], os.unlink, f"{shards[1]}: cannot be opened: No such file or directory")
    changed(shards[0], shorter, f"{shards[0]}: has ")
    changed("index.json", edit('"version": 2', '"version": 3'),
            'index.json: "version" must be 2, got: 3; a newer release wrote it')
    changed("index.json", edit('"seed": 5', '"seed": 4'), "index.json: is damaged: its bytes have CRC-32C ")
    changed("index.json", lambda path: os.truncate(path, 100), "index.json: the index of a checkpoint is not a JSON object")
    shoal.call(["shoal-ckpt", "verify", folder], 60)

    # A newer one that is not complete is told, and the one before it taken.
    for lost in (os.unlink, lambda path: (os.unlink(path), os.mkdir(path))):
        shutil.copy(f"{newest}/index.json", model.path("kept"))
        lost(f"{newest}/index.json")
        note = f"note: {newest} has no index.json, which makes a checkpoint complete: skipped, step-000002 is taken"
        said = model.run(plan, "--steps", "6", "--resume", folder, tag="older")
        require(said.splitlines().count(note) == 1, f"expected once '{note}', got: {said}")
        require([step for step, _, _ in model.steps("older")] == [3, 4, 5, 6], f"goes on with steps {model.steps('older')}")
        # Its step is saved again, by the run that goes on.
        again = model.path("again")
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(folder, again)
        said = model.run(plan, "--steps", "5", "--resume", again, "--save", again, "--save-every", "1", tag="again")
        moved = f"note: {again}/step-000004 has no index.json, which makes a checkpoint complete: moved to {again}/.step-000004.tmp-"
        require(said.count(moved) == 1, f"expected once '{moved}', got: {said}")
        require(sorted(os.listdir(again)) == [f"step-00000{step}" for step in (2, 3, 4, 5)], f"left: {os.listdir(again)}")
        shoal.call(["shoal-ckpt", "verify", f"{again}/step-000004"], 60)
        said = shoal.call(["shoal-ckpt", "verify", folder], 60)
        require(said.splitlines().count(note) == 1 and "step-000002: step 2" in said, f"expected '{note}', got: {said}")
        shutil.rmtree(f"{newest}/index.json", ignore_errors=True)
        shutil.copy(model.path("kept"), f"{newest}/index.json")
    os.rename(newest, f"{folder}/step-000007")
    refused("step-000007/index.json: is of step 4, expected 7 as its folder is named", "--resume", folder)
    said = shoal.call(["shoal-ckpt", "verify", folder], 60, expect=2)
    require("is of step 4, expected 7" in said, said)
    os.rename(f"{folder}/step-000007", newest)

    refused("--keep needs --save", "--keep", "2", under="")
    refused("--save-every needs --save", "--save-every", "2", under="")
    refused("--resume and --load exclude each other", "--resume", folder, "--load", model.path("saved.safetensors"),
            under="")
    refused("--seed 6 does not go on from", "--resume", folder, "--seed", "6", under="")
    refused("is of the middle of an epoch of 23 rows in batches of 10, got data of 24 rows in batches of 10", "--resume", folder,
            "--data", f"x={model.work}/longer-x.npy", "--data", f"y={model.work}/longer-y.npy", under="")
    refused("holds a checkpoint of step 4, and this run begins at step 0", "--save", folder, under="")
    refused("holds a checkpoint of step 4, and this run begins at step 2", "--save", folder, "--resume", f"{folder}/step-000002",
            under="")
    refused("no-such: cannot be opened", "--resume", f"{folder}/no-such", under="")
    refused("cannot be ", "--save", model.path("model.mlir"), under="")
    other = Model(model.work, "other", MLP.replace('"h.1.w"', '"h.2.w"'), ADAMW)
    refused("is of another model: it lacks 'h.2.w' [5, 3]", "--resume", folder, at=other, under="")
    other = Model(model.work, "sgd", MLP, MOMENTUM)
    said = other.run("", "--steps", "6", "--resume", folder, tag="anew")
    require("holds no state of the optimizer, which begins anew: h.*.w.velocity (2), h.*.b.velocity, step" in said,
            f"another optimizer, in a model with dropout: {said}")
    infer = shoal.shoalc(f"{model.work}/infer.mlir", f"{model.work}/infer", "--mode", "infer")
    said = shoal.run(1, infer, "--data", f"x={model.work}/x.npy", "--resume", folder, expect=2)
    require("--resume does not apply" in said, f"inference: {said}")
    require(sorted(os.listdir(folder)) == ["step-000002", "step-000004"], f"left behind: {os.listdir(folder)}")


def check_full_disk(model, plan):
    """A checkpoint that cannot be written ends the run on all ranks; the ones before stay."""
    folder = model.path("full")
    shutil.rmtree(folder, ignore_errors=True)
    model.run(plan, "--steps", "2", "--save", folder, tag="before")
    # Only the second of two ranks has the limit. Its part of the matrix is larger, what MPI itself writes is not.
    limited = 'test $OMPI_COMM_WORLD_RANK = 0 || ulimit -f 512; exec "$@"'
    command = ["shoal-run", "-n", "2", "--mca", "btl", "self,tcp", "bash", "-c", limited, "bash",
               os.path.abspath(model.program(plan)), "--no-progress", "--data", f"x={model.work}/x.npy", "--data",
               f"y={model.work}/y.npy", "--steps", "4", "--resume", folder, "--save", folder, "--local-comm", "mpi"]
    said = shoal.call(command, 60, expect=1)
    errors = errors_of(said)
    require(len(errors) == 1 and "write failed: File too large" in errors[0] and "/.step-000004.tmp/rank-1-of-2" in errors[0],
            f"a full disk: {said}")
    require(os.listdir(folder) == ["step-000002"], f"a full disk leaves {os.listdir(folder)}")
    shoal.call(["shoal-ckpt", "verify", folder], 60)


def main():
    parser = WorkParser(__doc__)
    parser.add_argument("--chain", nargs="+")
    parser.add_argument("--only", nargs="+", help="names of checks")
    args = parser.parse_args()
    write_npy(f"{args.work}/x.npy", tensor("f64", (ROWS, 7), wave(ROWS * 7, 1)))
    write_npy(f"{args.work}/y.npy", tensor("f64", (ROWS, 3), wave(ROWS * 3, 2)))
    write_npy(f"{args.work}/longer-x.npy", tensor("f64", (ROWS + 1, 7), wave(ROWS * 7 + 7, 1)))
    write_npy(f"{args.work}/longer-y.npy", tensor("f64", (ROWS + 1, 3), wave(ROWS * 3 + 3, 2)))
    mlp, norm = Model(args.work, "mlp", MLP, ADAMW), Model(args.work, "norm", BATCH_NORM, MOMENTUM)
    wide, alone = Model(args.work, "wide", WIDE, MOMENTUM), Model(args.work, "alone", NO_BATCHES, MOMENTUM, inputs=())
    narrow = Model(args.work, "narrow", MLP, NARROW, tolerance=NARROW_TOLERANCE)
    checks = []
    if args.chain:
        checks += [(f"chain of {args.chain}", lambda: check_chain(mlp, args.chain))]
        checks += [(f"same plan, {plan}", lambda plan=plan: check_same_plan(mlp, plan)) for plan in args.chain[:1]]
    else:
        with open(f"{args.work}/infer.mlir", "w") as f:
            f.write(MLP.replace("-> (tensor<f64> {nn.loss})", '-> (tensor<f64> {nn.loss}, tensor<10x3xf64> {nn.output = "o"})')
                    .replace("return %loss : tensor<f64>", "return %loss, %4 : tensor<f64>, tensor<10x3xf64>"))
        checks += [("same plan", lambda: check_same_plan(mlp, CHAIN[0])), ("chain", lambda: check_chain(mlp, CHAIN)),
                   ("bf16, same plan", lambda: check_same_plan(narrow, "data=2 --zero 3")),
                   ("bf16", lambda: check_chain(narrow, ["data=3 --zero 2", "data=2 --zero 3", ""])),
                   ("batch norm", lambda: check_chain(norm, ["data=3", "data=2 --zero 3", ""])), ("refusals", lambda: check_refusals(mlp, CHAIN[0])),
                   ("without batches", lambda: check_without_batches(alone)), ("full disk", lambda: check_full_disk(wide, "data=2"))]
    names = [name for name, _ in checks]
    if unknown := [name for name in args.only or [] if name not in names]:
        shoal.wrong_usage(f"--only must name some of {', '.join(names)}, got: {unknown[0]}")
    failed = False
    for name, check in (c for c in checks if not args.only or c[0] in args.only):
        try:
            check()
            print(f"{name}: ok")
        except Fault as fault:
            print(f"{name}: {fault}")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
