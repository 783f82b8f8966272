#!/usr/bin/env python3
"""Whole runs of the linear model (make_linear.cpp) on 1 to 4 ranks: training is compared with
sums written out here, then every promise of the command line is tried, the errors too.

usage: linear.py --programs FOLDER --bin FOLDER --pmpi LIBRARY --work FOLDER
"""

import json
import os
import shutil
import subprocess

import by_hand
from by_hand import check, own_lines, path
from tensor_files import read_npy, read_safetensors, tensor, write_npy, write_safetensors

args = by_hand.begin(by_hand.make_parser(__doc__, "pmpi"))
ROWS, COLUMNS, BATCH, EPOCHS, RATE = 23, 3, 5, 4, 0.1


def start(mode, ranks, *options, launch=None, env=None, program=None):
    return by_hand.launch(launch or ranks, program or f"linear-{mode}-{ranks}", *options, env=env)


def run(*arguments, **keywords):
    return by_hand.check_ran(start(*arguments, **keywords), arguments)


def refused(part, *arguments, **keywords):
    by_hand.check_refused(start(*arguments, **keywords), arguments, part)


def train(x, y, w, order):
    """Plain gradient descent; the losses of all steps, first gradient, final weights."""
    losses, first = [], None
    for rows in order:
        residuals = [sum(x[r][j] * w[j] for j in range(COLUMNS)) - y[r] for r in rows]
        losses.append(sum(d * d for d in residuals) / len(rows))
        grad = [sum(2 * d * x[r][j] for d, r in zip(residuals, rows)) / len(rows) for j in range(COLUMNS)]
        first = first or grad
        w = [wj - RATE * gj for wj, gj in zip(w, grad)]
    return losses, first, w


def close(a, b):
    return by_hand.close(a, b, 1e-12)


def metrics(file):
    with open(file) as f:
        return [json.loads(line) for line in f]


def training(x, y, data):
    start_w = [0.25, -0.5, 1.0]
    write_safetensors(path("start.safetensors"), {"w": tensor("f64", (COLUMNS,), start_w)})
    order = [range(b, min(b + BATCH, ROWS)) for b in range(0, ROWS, BATCH)] * EPOCHS
    losses, first, w = train(x, y, start_w, order)
    shuffled, dumped = {}, {}
    for ranks in (1, 2, 3, 4):
        out = run("train", ranks, *data, "--epochs", str(EPOCHS), "--load", path("start.safetensors"),
                  "--metrics", path("m.jsonl"), "--dump-params", path(f"p{ranks}.safetensors"),
                  "--dump-grads", path("g.safetensors"), "--log-every", "7")
        records = metrics(path("m.jsonl"))
        check(close([r["loss"] for r in records], losses), f"losses on {ranks} ranks")
        check([r["step"] for r in records] == list(range(1, len(order) + 1)), "steps")
        check([r["epoch"] for r in records] == [i // 5 + 1 for i in range(len(order))], "epochs")
        check(all(a["wall_s"] <= b["wall_s"] for a, b in zip(records, records[1:])), "wall time")
        check(len(out.splitlines()) == 1 + 20 // 7 + 1, f"lines of the log: {out}")
        check(close(list(read_safetensors(path("g.safetensors"))["w"].data), first), f"gradient on {ranks}")
        check(close(list(read_safetensors(path(f"p{ranks}.safetensors"))["w"].data), w), f"w on {ranks}")
        # Drawn parameters and shuffled rows are those of one rank, bit for bit.
        run("train", ranks, *data, "--steps", "7", "--seed", "5", "--shuffle", "--metrics", path("s.jsonl"))
        shuffled[ranks] = [r["loss"] for r in metrics(path("s.jsonl"))]
        run("train", ranks, *data, "--steps", "0", "--seed", "5", "--dump-params", path("d.safetensors"))
        dumped[ranks] = list(read_safetensors(path("d.safetensors"))["w"].data)
        check(close(shuffled[ranks], shuffled[1]) and dumped[ranks] == dumped[1], f"seed 5 on {ranks} ranks")
    check(all(-1 <= v < 1 for v in dumped[1]), "init = uniform(-1, 1)")
    run("train", 1, *data, "--steps", "7", "--seed", "6", "--shuffle", "--metrics", path("s.jsonl"))
    check(shuffled[1] != [r["loss"] for r in metrics(path("s.jsonl"))], "another seed, another order")


def inference(x, data):
    weights = {"w": tensor("f32", (COLUMNS,), [0.5, 2.0, -1.0])}  # f32 for an f64 program
    write_safetensors(path("w.safetensors"), weights)
    for ranks in (1, 2, 3, 4):
        run("infer", ranks, "--data", data[1], "--load", path("w.safetensors"),
            "--output", "prediction=" + path("out.npy"))
        got = read_npy(path("out.npy"))
        expected = [0.5 * r[0] + 2 * r[1] - r[2] for r in x]
        check(got.shape == (ROWS,) and close(list(got.data), expected), f"prediction on {ranks} ranks")


def counting(data):
    for ranks in (1, 2, 3, 4):
        for stale in os.listdir(args.work):
            if stale.startswith("pmpi."):
                os.unlink(path(stale))
        mpi = ["--local-comm", "mpi"] if ranks > 1 else []
        run("train", ranks, *data, "--steps", "6", "--report", path("r.json"), *mpi,
            env={"LD_PRELOAD": args.pmpi, "SHOAL_PMPI_OUT": path("pmpi")})
        with open(path("r.json")) as f:
            report = json.load(f)
        check(report["version"] == 1 and report["program"] == "linear", "head of the report")
        check(report["mesh"]["axes"] == [{"name": "data", "size": ranks}], "mesh of the report")
        check([r["rank"] for r in report["ranks"]] == list(range(ranks)), "ranks of the report")
        chunk = -(-3 // ranks) + 1  # the gradient and the loss, in chunks
        for entry in report["ranks"]:
            check(entry["coords"] == {"data": entry["rank"]}, "coords of the report")
            # One f64 weight of 3 elements and its gradient; rows of x and y, step and valid rows, and
            # what the step computes on them: predictions, the first row's number, the loss.
            rows = -(-5 // ranks)
            held = {"params": 24, "grads": 24, "optimizer": 0, "workspace": 0,
                    "activations": rows * 24 + rows * 8 + 16 + rows * 8 + 16, "peak": entry["bytes"]["peak"]}
            check(entry["bytes"] == held, f"bytes of the report: {entry['bytes']}, expected {held}")
            check(held["peak"] % 64 == 0 and held["peak"] >= held["activations"] + 48, "peak of the report")
            check(entry["collectives"] == [{"kind": "all_reduce", "axes": ["data"], "count": 2,
                                            "bytes": 2 * (ranks - 1) * chunk * 8}],
                  f"collectives of {ranks} ranks: {entry['collectives']}")
            with open(path(f"pmpi.{entry['rank']}")) as f:
                made = json.load(f)["calls"]
            calls = [c for c in made if c["comm"] == "shoal stream 1 {data}"]
            # Beside that the ranks agree three times that nothing failed, and send their reports.
            check(sorted((c["call"], c["count"]) for c in made if c not in calls)
                  == [("MPI_Allreduce", 3), ("MPI_Gather", 1), ("MPI_Gatherv", 1)], f"PMPI: {made}")
            check([(c["call"], c["ranks"], c["elements"], c["element_bytes"], c["count"]) for c in calls]
                  == [("MPI_Iallreduce", ranks, n, 8, 6) for n in (1, 3)], f"PMPI: {calls}")


def errors(data):
    write_npy(path("short.npy"), tensor("f64", (ROWS - 1,), [0.0] * (ROWS - 1)))
    write_npy(path("wide.npy"), tensor("f32", (ROWS, 4), [0.0] * ROWS * 4))
    write_npy(path("none.npy"), tensor("f32", (0, 3), []))
    write_npy(path("none_y.npy"), tensor("f64", (0,), []))
    write_safetensors(path("bad.safetensors"), {"w": tensor("f64", (2,), [0, 0]), "v": tensor("f64", (1,), [0])})
    write_safetensors(path("other.safetensors"), {"v": tensor("f64", (1,), [0])})
    x, y = data[1], data[3]
    refused("runs on 2 ranks (mesh data=2), got: 3", "train", 2, *data, launch=3)
    refused("input 'x' [5, 3] needs --data x=FILE.npy", "train", 2)
    refused("the program has no input 'z', it has: x, y", "train", 2, *data, "--data", "z=z.npy")
    refused("names 'x' twice", "train", 1, *data, "--data", x)
    refused("expects NAME=FILE, got: 'x'", "train", 1, "--data", "x")
    refused("/no/such.npy: cannot be opened", "train", 4, "--data", "x=/no/such.npy", "--data", y)
    refused("short.npy: has 22 rows, but", "train", 2, "--data", x, "--data", f"y={path('short.npy')}")
    refused("has shape [23, 4], but input 'x' expects [rows, 3]", "train", 2, "--data",
            f"x={path('wide.npy')}", "--data", y)
    refused("'w' has shape [2], expected [3]", "train", 2, *data, "--load", path("bad.safetensors"))
    refused("'w' is missing, expected shape [3]", "train", 2, *data, "--load", path("other.safetensors"))
    refused("is not a safetensors file", "train", 1, *data, "--load", x.split("=")[1])
    refused("exclude each other", "train", 1, *data, "--steps", "1", "--epochs", "1")
    refused("--frobnicate", "train", 3, *data, "--frobnicate")
    refused("--log-every must be an integer of at least 1, got: '0'", "train", 1, *data, "--log-every", "0")
    refused("--threads must be an integer of at least 1 and at most 1024, got: '0'", "train", 1, *data, "--threads", "0")
    refused("--steps must be an integer of at least 0, got: '-1'", "train", 1, *data, "--steps", "-1")
    refused("got: 'many'", "train", 1, *data, "--steps", "many")
    refused("cannot be written", "train", 2, *data, "--metrics", "/no/such/m.jsonl")
    refused("cannot be written", "train", 2, *data, "--dump-params", "/no/such/p.safetensors")
    refused("is a directory", "train", 2, *data, "--report", args.work)
    write_safetensors(path("w0.safetensors"), {"w": tensor("f64", (3,), [0, 0, 0])})
    refused("--seed does not apply: without --shuffle it draws first values of parameters, and here are none to draw",
            "train", 1, *data, "--steps", "1", "--seed", "1", "--load", path("w0.safetensors"))
    refused("--output does not apply", "train", 1, *data, "--output", "w=w.npy")
    for flag in (["--steps", "1"], ["--shuffle"], ["--dump-grads", "g"]):
        refused(f"{flag[0]} does not apply: this program was compiled with --mode infer", "infer", 1,
                "--data", x, *flag)
    refused("needs data, but the input files have 0 rows", "train", 1, "--data", f"x={path('none.npy')}",
            "--data", f"y={path('none_y.npy')}", "--steps", "1")
    refused("--epochs 3 needs data, but the input files have 0 rows", "train", 2, "--data", f"x={path('none.npy')}",
            "--data", f"y={path('none_y.npy')}", "--epochs", "3")
    run("infer", 2, "--data", f"x={path('none.npy')}", "--output", "prediction=" + path("out.npy"))
    check(read_npy(path("out.npy")).shape == (0,), "output of no rows")
    refused("holds no program", "train", 2, program=os.path.join(args.bin, "shoal-rt-main"))
    damaged = path("damaged")
    shutil.copy(os.path.join(args.programs, "linear-train-1"), damaged)
    for offset, message in ((-16, "this executable is damaged: checksum"), (-24, "the payload must lie inside the file")):
        with open(damaged, "r+b") as f:
            f.seek(offset, os.SEEK_END)
            f.write((1 << 60).to_bytes(8, "little"))
        refused(message, "train", 1, program=damaged)
    # A full disk: rank 0 fails in the middle, and all ranks stop.
    if os.path.exists("/dev/full"):
        os.symlink("/dev/full", path("full.jsonl"))
        code, _, err = start("train", 4, *data, "--steps", "3", "--metrics", path("full.jsonl"))
        check(code == 1 and len(own_lines(err)) == 1 and "write failed" in err, f"a full disk: {code} {err}")


def launcher():
    """shoal-run's own command line."""
    for options, code, part in ((["--help"], 0, "usage: shoal-run -n N"), ([], 2, "expected -n N"),
                                (["-n", "2"], 2, "expected a program"), (["-n"], 2, "expects a value"),
                                (["-n", "0", "true"], 2, "at least 1 and at most 1048576, got: '0'"),
                                (["-n", "1", "./no-such-program"], 2, "./no-such-program: cannot be executed"),
                                (["--mca", "btl", "self", "-n", "1", "true"], 0, ""),
                                (["-n", "1", "sh", "-c", "exit 2"], 2, ""),
                                # Of others, as of signals, only that the work failed is known.
                                (["-n", "1", "sh", "-c", "exit 7"], 1, "")):
        done = subprocess.run([os.path.join(args.bin, "shoal-run"), *options], capture_output=True,
                              text=True, timeout=60)
        check(done.returncode == code and part in done.stdout + done.stderr,
              f"shoal-run {options}: {done.returncode} {done.stdout}{done.stderr}")


def conveniences(data):
    help_text = run("train", 2, "--help")
    for part in ("--data", "input    x  [rows, 3] f64", "mesh data=2", "shoal-run -n 2 ./linear", "loss"):
        check(part in help_text, f"--help tells '{part}'")
    check(help_text.count("--dump-grads") == 1, "--help is printed once")
    check("shoal " in run("infer", 3, "--version"), "--version")
    run("train", 2, *data, "--steps", "2", "--threads", "2")
    write_safetensors(path("more.safetensors"), {"w": tensor("f64", (3,), [0, 0, 0]), "v": tensor("f64", (1,), [0])})
    _, _, err = start("train", 2, *data, "--steps", "1", "--load", path("more.safetensors"))
    check("more.safetensors holds 1 tensor that this program has no use for: v\n" in err, "unused tensors are told")
    check("more.safetensors holds no state of the optimizer, which begins anew: step\n" in err, "state that begins anew is told")
    _, _, err = start("train", 1, *data, "--steps", "3", env={"SHOAL_TERMINAL": "1"})
    check("\x1b[K" in err and "ETA 0:00" in err, "a progress line on a terminal")
    _, _, err = start("train", 1, *data, "--steps", "5", "--log-every", "1000", env={"SHOAL_TERMINAL": "1"})
    check("step 5/5" in err and "step 2/5" not in err, f"--log-every on a terminal: {err!r}")
    _, out, err = start("train", 1, *data, "--steps", "3", "--no-progress", env={"SHOAL_TERMINAL": "1"})
    check("\x1b[K" not in err and "step 3/3" in out, "--no-progress")


def main():
    x, y, data = by_hand.make_data(ROWS, COLUMNS)
    training(x, y, data)
    inference(x, data)
    counting(data)
    errors(data)
    conveniences(data)
    launcher()
    by_hand.finish("the linear model runs as it should on 1 to 4 ranks")


main()
