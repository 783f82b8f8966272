#!/usr/bin/env python3
"""Ranks of the linear model die, stop or come late at every point where others wait for them: the job
ends in time, with one line that names the rank and the operation, and leaves nothing behind.

usage: failure.py --programs FOLDER --bin FOLDER --signal LIBRARY --support FOLDER --work FOLDER [--all]

--all stops and kills every rank at every call; without it the rank changes from call to call.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
for name in ("programs", "bin", "signal", "support", "work"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--all", action="store_true")
args = parser.parse_args()
sys.path.insert(0, args.support)
from tensor_files import tensor, write_npy  # noqa: E402

RANKS, STEPS, TIMEOUT = 4, 2, 1.0
# After the time-out, or after a death: 5 s, and what starting four ranks may take on a busy machine.
END, START = 5, 25
# Without shoal-run the board comes with MPI, so its first calls (MPI_Init_thread, MPI_Comm_split_type) are not watched.
STARTING_CALLS = 2
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED: " + what, flush=True)


def path(name):
    return os.path.join(args.work, name)


def shared_files():
    return {f for f in os.listdir("/dev/shm") if f.startswith("shoal-")} if os.path.isdir("/dev/shm") else set()


def alive():
    """Processes of this test's program, but those that are dead and not reaped."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                command = f.read().decode(errors="replace").split("\0")
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and command[0].startswith(args.programs) and any(args.work in w for w in command):
            found.append(pid)
    return found


def command(launcher, *options, y="y.npy"):
    front = [os.path.join(args.bin, "shoal-run")] if launcher == "shoal-run" else ["mpirun", "--oversubscribe"]
    return [*front, "-n", str(RANKS), os.path.join(args.programs, f"linear-train-{RANKS}"), "--no-progress",
            "--data", "x=" + path("x.npy"), "--data", "y=" + path(y), *options]


ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(launcher, *options, env=None, y="y.npy"):
    """Exit code, lines that are errors or warnings, seconds."""
    begin = time.monotonic()
    done = subprocess.run(command(launcher, *options, y=y), capture_output=True, text=True, timeout=120,
                          env={**ENVIRONMENT, **(env or {})})
    lines = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "warning: "))]
    return done.returncode, lines, time.monotonic() - begin


def with_signal(launcher, rank, call, number):
    """Raises a signal in `rank` at its k-th call of MPI; also returns that call's name, '' for none."""
    out = path("call")
    if os.path.exists(out):
        os.unlink(out)
    env = {"LD_PRELOAD": args.signal, "SHOAL_SIGNAL_RANK": str(rank), "SHOAL_SIGNAL_CALL": str(call),
           "SHOAL_SIGNAL": str(int(number)), "SHOAL_SIGNAL_OUT": out}
    result = run(launcher, "--steps", str(STEPS), "--timeout", str(TIMEOUT), "--report", path("r.json"), env=env)
    name = open(out).read() if os.path.exists(out) else ""
    return (*result, name)


def signals(launcher, number, says):
    """Every call of a run in turn, until a run has fewer."""
    seen = set()
    for call in range(1, 100):
        names = set()
        for rank in range(RANKS) if args.all else [call % RANKS]:
            if launcher == "mpirun" and call <= STARTING_CALLS:
                continue
            code, lines, seconds, name = with_signal(launcher, rank, call, number)
            names.add(name)
            where = f"{launcher}, signal {int(number)} in rank {rank} at call {call} ({name}): {code} {lines} {seconds:.1f} s"
            if not name:
                check(code == 0 and not lines, where)
                continue
            check(code == 1 and len(lines) == 1, "one line and exit 1: " + where)
            check(lines and re.search(says.format(rank=rank), lines[0]), "the line names the rank: " + where)
            check(seconds < START + TIMEOUT + END, "in time: " + where)
            if name == "MPI_Iallreduce":
                check(lines and re.search(r"all_reduce .*\(step \d+\)", lines[0]), "it names the operation: " + where)
            check(not alive(), f"processes are left: {alive()} " + where)
        seen |= names
        if names and names == {""}:
            break
    starting = {"MPI_Init_thread"} if launcher != "mpirun" else set()
    check(starting | {"MPI_Allreduce", "MPI_Comm_split", "MPI_Iallreduce"} <= seen, f"calls reached: {seen}")


def stopped(pids):
    for pid in pids:
        os.kill(int(pid), signal.SIGSTOP)


def whole_job():
    """All ranks stop; and the launcher is told to end."""
    for name, act, code, says in (
            ("all stop", stopped, 1, r"error: no rank has moved for \d+\.\d s: .*step \d+"),
            ("SIGTERM", None, 128 + signal.SIGTERM, r"error: ended by signal 15 \(Terminated\)$"),
            ("SIGINT", None, 128 + signal.SIGINT, r"error: ended by signal 2 \(Interrupt\)$")):
        job = subprocess.Popen(command("shoal-run", "--steps", "1000000000", "--log-every", "1000000000", "--timeout",
                                       str(TIMEOUT), "--dump-params", path("never.safetensors")),
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        job.stdout.readline()  # the first step
        act(alive()) if act else job.send_signal(getattr(signal, name))
        begin = time.monotonic()
        _, err = job.communicate(timeout=60)
        lines = [line for line in err.splitlines() if not line.startswith("note: ")]
        check(job.returncode == code and len(lines) == 1 and re.match(says, lines[0]),
              f"{name}: {job.returncode} {lines}")
        check(time.monotonic() - begin < END + TIMEOUT + 5, f"{name}: {time.monotonic() - begin} s")
        check(not alive(), f"{name}: processes are left")
        check(not [f for f in os.listdir(args.work) if "never" in f], f"{name}: files are left")


def boards():
    """A board from outside is refused unless it is one, for all ranks in one line."""
    for name, content, part in (("empty", b"", "does not start as one"), ("garbage", b"x" * 5000, "does not start as one"),
                                ("short", b"SHOALBRD" + bytes([2, 0, 0, 0, 4, 0, 0, 0, 192, 1, 0, 0]) + bytes(44), "bytes, expected")):
        with open(path(name), "wb") as f:
            f.write(content)
        os.chmod(path(name), 0o600)
        code, lines, _ = run("mpirun", "--steps", "1", env={"SHOAL_BOARD": f"{socket.gethostname()}:{path(name)}"})
        check(code == 2 and len(lines) == 1 and part in lines[0], f"board '{name}': {code} {lines}")
    os.chmod(path("short"), 0o644)
    for name, part in (("short", "must belong to this user alone"), ("no-such", "cannot be opened")):
        code, lines, _ = run("mpirun", "--steps", "1", env={"SHOAL_BOARD": f"{socket.gethostname()}:{path(name)}"})
        check(code == 2 and len(lines) == 1 and part in lines[0], f"board '{name}': {code} {lines}")


def delays_and_trace():
    code, lines, _ = run("shoal-run", "--steps", "6", "--inject-delay", "2:60", "--report", path("r.json"),
                         "--trace", path("t.json"), "--trace-steps", "3")
    check(code == 0 and not lines, f"a delayed rank: {code} {lines}")
    with open(path("r.json")) as f:
        waited = [r["measured"]["waiting_ms"] for r in json.load(f)["ranks"]]
    check(all(w > 45 for i, w in enumerate(waited) if i != 2), f"ranks wait for the one that sleeps 60 ms: {waited}")
    check(waited[2] < min(w for i, w in enumerate(waited) if i != 2), f"the late rank waits least: {waited}")
    with open(path("t.json")) as f:
        events = json.load(f)["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    check({e["pid"] for e in spans} == set(range(RANKS)), "all ranks are in the trace")
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    check(names == {f"rank {r}" for r in range(RANKS)}, f"names of ranks: {names}")
    rows = sorted({e["args"]["row"] for e in spans if "row" in e["args"]})
    check(rows == list(range(len(rows))) and len(rows) > 5, f"rows in the trace: {rows}")
    for rank in range(RANKS):
        mine = [e for e in spans if e["pid"] == rank]
        got = sorted((e["args"]["step"], e["args"]["row"]) for e in mine if "row" in e["args"])
        check(got == [(s, r) for s in (1, 2, 3) for r in rows], f"each row once per step on rank {rank}")
        for stream in {e["tid"] for e in mine}:
            lane = sorted((e for e in mine if e["tid"] == stream), key=lambda e: (e["ts"], e["ts"] + e["dur"]))
            check(all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in zip(lane, lane[1:])), f"overlap on rank {rank}")
        delays = [e["dur"] for e in mine if e["cat"] == "delay"]
        check(len(delays) == (3 if rank == 2 else 0) and all(d >= 60000 for d in delays), f"delays: {delays}")
        check(any(e["cat"] == "waiting" and e["dur"] > 30000 for e in mine) == (rank != 2), f"waiting on rank {rank}")
    sent = [e for e in spans if e["cat"] == "communication"]
    check(sent and all(e["args"]["bytes"] > 0 and "operation" in e["args"] for e in sent), "transfers tell their bytes")
    # One clock: no transfer of all ranks ends before the last rank has begun it.
    for step in (1, 2, 3):
        for row in {e["args"]["row"] for e in sent}:
            one = [e for e in sent if e["args"]["row"] == row and e["args"]["step"] == step]
            check(min(e["ts"] + e["dur"] for e in one) >= max(e["ts"] for e in one) - 1000, f"clocks: {one}")
    for flags, part in ((["--trace-steps", "2"], "--trace-steps does not apply"), (["--inject-delay", "4:1"], "at most 3"),
                        (["--inject-delay", "1"], "RANK:ms"), (["--timeout", "-1"], "--timeout must be"),
                        (["--inject-delay", "1:1", "--inject-delay", "1:2"], "rank 1 twice")):
        code, lines, _ = run("shoal-run", *flags)
        check(code == 2 and len(lines) == 1 and part in lines[0], f"{flags}: {code} {lines}")


def no_number():
    code, lines, _ = run("shoal-run", "--steps", "4", y="nan.npy")
    check(code == 0 and lines == ["warning: the loss is nan in step 1"], f"NaN: {code} {lines}")
    with open(path("p.safetensors"), "w") as f:
        f.write("older")
    code, lines, _ = run("shoal-run", "--steps", "4", "--stop-on-nan", "--dump-params", path("p.safetensors"), y="nan.npy")
    check(code == 1 and len(lines) == 1 and "the loss is nan in step 1" in lines[0], f"--stop-on-nan: {code} {lines}")
    with open(path("p.safetensors")) as f:
        check(f.read() == "older", "an older file stays")


def main():
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    write_npy(path("x.npy"), tensor("f64", (23, 3), [i % 7 / 7 for i in range(69)]))
    write_npy(path("y.npy"), tensor("f64", (23,), [i % 5 / 5 for i in range(23)]))
    write_npy(path("nan.npy"), tensor("f64", (23,), [float("nan")] * 23))
    before = shared_files()
    boards()
    delays_and_trace()
    no_number()
    whole_job()
    signals("shoal-run", signal.SIGKILL, r"error: rank {rank} ended by signal 9 \(Killed\) ")
    signals("shoal-run", signal.SIGSTOP, r"error: rank \d waited \d\.\d s in .*; rank {rank} .*, stopped by a signal")
    signals("mpirun", signal.SIGSTOP, r"error: rank \d waited \d\.\d s in .*; rank {rank} .*, stopped by a signal")
    check(shared_files() <= before, f"files are left: {shared_files() - before}")
    if failures:
        sys.exit(f"{len(failures)} checks failed")
    print("ranks that die, stop or come late are told as they should")


main()
