#!/usr/bin/env python3
"""Ranks of the linear model die, stop or come late at every point where others wait for them: the job
ends in time, with one line that names the rank and the operation, and leaves nothing behind.

usage: failure.py --programs FOLDER --bin FOLDER --signal LIBRARY --work FOLDER [--all] [--jobs N]

--all, or SHOAL_TEST_FULL=1, stops and kills every rank at every call; else the rank changes from call to call. Most of the time
is that of time-outs, so N runs (6) go on at once, each in a folder of its own.
"""

import concurrent.futures
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import by_hand
from by_hand import check
from tensor_files import tensor, write_npy

parser = by_hand.make_parser(__doc__, "signal")
parser.add_argument("--all", action="store_true")
parser.add_argument("--jobs", type=int, default=6)
args = by_hand.begin(parser)
args.all |= bool(os.environ.get("SHOAL_TEST_FULL"))

RANKS, STEPS = 4, 2
TIMEOUT = 8.0  # seconds, in which ranks that all start at once on few busy cores have all started
END = 10  # seconds after the signal, and after the time-out where a rank was stopped
LIMIT = 120  # of any run
WIDE_COLUMNS = 65536  # of linear-wide-4
# Without shoal-run the board comes with MPI, so its first calls are not watched: MPI_Init_thread, MPI_Comm_split_type,
# MPI_Bcast, MPI_Barrier.
STARTING_CALLS = 4
# What the line says of the call that all ranks make together.
OPERATIONS = {"MPI_Init_thread": "the start of MPI", "MPI_Finalize": "the end of MPI",
              "MPI_Comm_split": "the making of communicators", "MPI_Comm_split_type": "the start of MPI|the making of communicators",
              "MPI_Allreduce": "the agreement on errors|the making of communicators",
              "MPI_Win_free": "the freeing of communicators",
              "MPI_Comm_free": "the start|the freeing of communicators|the end of MPI",
              "MPI_Gather": "the collection of texts", "MPI_Gatherv": "the collection of texts",
              "MPI_Iallreduce": r"all_reduce .*\(step \d+\)", "MPI_Ibarrier": r"all_reduce .*\(step \d+\)"}
worker = threading.local()  # .folder: where a thread of the pool works, out of the way of the others


def path(name):
    return os.path.join(worker.folder, name)


def make_inputs(folder):
    worker.folder = folder
    os.makedirs(folder)
    write_npy(path("x.npy"), tensor("f64", (23, 3), [i % 7 / 7 for i in range(69)]))
    write_npy(path("y.npy"), tensor("f64", (23,), [i % 5 / 5 for i in range(23)]))
    write_npy(path("wide.npy"), tensor("f64", (23, WIDE_COLUMNS), [0.0] * (23 * WIDE_COLUMNS)))
    write_npy(path("nan.npy"), tensor("f64", (23,), [float("nan")] * 23))


def shared_files():
    return {f for f in os.listdir("/dev/shm") if f.startswith("shoal-")} if os.path.isdir("/dev/shm") else set()


def alive():
    """Processes of this test's program that this thread has started, but those that are dead and not reaped."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                command = f.read().decode(errors="replace").split("\0")
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and command[0].startswith(args.programs) and any(w.startswith("x=" + path("")) for w in command):
            found.append(pid)
    return found


def command(launcher, *options, y="y.npy", wide=False):
    front = [os.path.join(args.bin, "shoal-run")] if launcher == "shoal-run" else ["mpirun", "--oversubscribe"]
    return [*front, "-n", str(RANKS), os.path.join(args.programs, f"linear-{'wide' if wide else 'train'}-{RANKS}"), "--no-progress",
            "--data", "x=" + path("wide.npy" if wide else "x.npy"), "--data", "y=" + path(y), *options]


ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def wait(job, launcher):
    """Exit code, stderr, the moment of the end."""
    begin, seen, gone = time.monotonic(), False, None
    while True:
        try:
            _, errors = job.communicate(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now - begin > LIMIT:
                job.kill()
                sys.exit(f"no end within {LIMIT} s: {job.args}\n{job.communicate()[1]}")
        if launcher != "mpirun":
            continue
        # Open MPI 4.1's mpirun itself sometimes never ends after an MPI_Abort, which has ended the ranks.
        seen, gone = seen or bool(alive()), gone or (now if seen and not alive() else None)
        if gone and now - gone > END:
            job.kill()
            return 1, job.communicate()[1], gone
    return job.returncode, errors, time.monotonic()


def run(launcher, *options, env=None, **inputs):
    """Exit code, lines that are errors or warnings, the moment of the end. After a crash: all lines but notes."""
    # Open MPI keeps the sessions of all launches in one folder, where one that ends may hinder one that begins.
    with tempfile.TemporaryDirectory(prefix="shoal-") as base:
        own = {"OMPI_MCA_orte_tmpdir_base": base} if launcher == "mpirun" else {}
        job = subprocess.Popen(command(launcher, *options, **inputs), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**ENVIRONMENT, **own, **(env or {})})
        code, errors, end = wait(job, launcher)
    lines = [line for line in errors.splitlines() if line.startswith(("error: ", "warning: "))]
    if launcher == "shoal-run" and env and env.get("SHOAL_SIGNAL") == str(int(signal.SIGSEGV)):
        lines = [line for line in errors.splitlines() if line and not line.startswith("note: ")]
    return code, lines, end


def with_signal(launcher, rank, number, *options, env, **inputs):
    """Raises a signal in `rank` where `env` says. Exit code, lines, seconds from the signal to the end, and what the
    rank was at: '' when it never came there."""
    out = path("call")
    if os.path.exists(out):
        os.unlink(out)
    env = {"LD_PRELOAD": args.signal, "SHOAL_SIGNAL_RANK": str(rank), "SHOAL_SIGNAL": str(int(number)),
           "SHOAL_SIGNAL_OUT": out, **env}
    code, lines, end = run(launcher, "--timeout", str(TIMEOUT), *options, env=env, **inputs)
    moment, _, name = open(out).read().partition(" ") if os.path.exists(out) else (end, "", "")
    return code, lines, end - float(moment), name


def check_end(where, code, lines, seconds, says, number):
    """What is so whatever rank failed wherever."""
    check(code == 1 and len(lines) == 1, "one line and exit 1: " + where)
    check(lines and re.search(says, lines[0]), "the line names the rank: " + where)
    check(seconds < END + (TIMEOUT if number == signal.SIGSTOP else 0), "in time: " + where)
    check(not alive(), f"processes are left: {alive()} " + where)


def signals(launcher, number, says, *options):
    """Every call of a run in turn, until a run has fewer. Windows add the calls that make and free them."""
    def one(call, rank):
        """The name of the call, '' where the run has fewer."""
        code, lines, seconds, name = with_signal(
            launcher, rank, number, "--steps", str(STEPS), "--report", path("r.json"), *options,
            env={"SHOAL_SIGNAL_CALL": str(call)})
        where = f"{launcher}, signal {int(number)} in rank {rank} at call {call} ({name}): {code} {lines} {seconds:.1f} s"
        if not name:
            check(code == 0 and not lines, where)
            return name
        # Open MPI 4.1's mpirun itself sometimes crashes at its end after an MPI_Abort.
        code = 1 if launcher == "mpirun" and code == -signal.SIGSEGV else code
        check_end(where, code, lines, seconds, says.format(rank=rank), number)
        if name in OPERATIONS:
            check(lines and re.search(OPERATIONS[name], lines[0]), "it names the operation: " + where)
        return name

    seen = set()
    for call in range(STARTING_CALLS + 1 if launcher == "mpirun" else 1, 100):
        names = set((yield [(one, call, rank) for rank in (range(RANKS) if args.all else [call % RANKS])]))
        seen |= names
        if names == {""}:
            break
    starting = {"MPI_Init_thread"} if launcher != "mpirun" else set()
    transfers = {"MPI_Win_allocate_shared"} if "windows" in options else {"MPI_Iallreduce"}
    check(starting | transfers | {"MPI_Allreduce", "MPI_Comm_split"} <= seen, f"calls reached: {seen}")


def crash():
    """A rank that ends by its own fault: one line tells it, without a stack of Open MPI's before it."""
    code, lines, seconds, name = with_signal("shoal-run", 1, signal.SIGSEGV, "--steps", str(STEPS),
                                             env={"SHOAL_SIGNAL_CALL": "8"})
    check(name != "", "a run has 8 calls")
    check_end(f"crash: {code} {lines} {seconds:.1f} s", code, lines, seconds,
              r"error: rank 1 ended by signal 11 \(Segmentation fault\) ", signal.SIGSEGV)


def in_windows(number, says):
    """Every rank within an all-reduce that goes through windows, where it makes no call of MPI. The rank runs on
    while the signal comes, so not each try hits."""
    def one(rank):
        hit = False
        for attempt in range(5):
            code, lines, seconds, name = with_signal(
                "shoal-run", rank, number, "--steps", "1000000000", "--log-every", "1000000000", wide=True,
                env={"SHOAL_SIGNAL_IN": "all_reduce {data} w", "SHOAL_SIGNAL_STEP": str(3 + attempt)})
            where = f"windows, signal {int(number)} in rank {rank} ({name}): {code} {lines} {seconds:.1f} s"
            check(name, "it waited in the all-reduce: " + where)
            check_end(where, code, lines, seconds, says.format(rank=rank), number)
            hit = bool(lines) and re.search(r"all_reduce \{data\} w \(step \d+\)", lines[0])
            if hit:
                break
        check(hit, f"windows, signal {int(number)}: rank {rank} was never hit within the all-reduce")

    yield [(one, rank) for rank in range(RANKS)]


def stop(pids):
    for pid in pids:
        os.kill(int(pid), signal.SIGSTOP)


def whole_job():
    """All ranks stop; and the launcher is told to end."""
    for name, act, code, says in (
            ("all stop", stop, 1, r"error: no rank has moved for \d+\.\d s: .*step \d+"),
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
        check(not [f for f in os.listdir(worker.folder) if "never" in f], f"{name}: files are left")


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
    traced = []  # microseconds of waiting
    for rank in range(RANKS):
        mine = [e for e in spans if e["pid"] == rank]
        got = sorted((e["args"]["step"], e["args"]["row"]) for e in mine if "row" in e["args"])
        check(got == [(s, r) for s in (1, 2, 3) for r in rows], f"each row once per step on rank {rank}")
        for stream in {e["tid"] for e in mine}:
            lane = sorted((e for e in mine if e["tid"] == stream), key=lambda e: (e["ts"], e["ts"] + e["dur"]))
            check(all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 for a, b in zip(lane, lane[1:])), f"overlap on rank {rank}")
        delays = [e["dur"] for e in mine if e["cat"] == "delay"]
        check(len(delays) == (3 if rank == 2 else 0) and all(d >= 60000 for d in delays), f"delays: {delays}")
        traced.append(sum(e["dur"] for e in mine if e["cat"] == "waiting"))
    check(traced.index(min(traced)) == 2, f"the late rank waits least in the trace, too: {traced}")
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


def at_once(*series):
    """Goes through generators that yield lists of calls, and are sent what the calls return, in one pool of threads."""
    numbers = itertools.count()

    def step(one, results):
        try:
            calls = one.send(results)
        except StopIteration:
            return
        waiting[one] = [pool.submit(*call) for call in calls]

    waiting = {}
    with concurrent.futures.ThreadPoolExecutor(
            args.jobs, initializer=lambda: make_inputs(os.path.join(args.work, f"worker-{next(numbers)}"))) as pool:
        for one in series:
            step(one, None)
        while waiting:
            running = [future for future in itertools.chain(*waiting.values()) if not future.done()]
            concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one, futures in list(waiting.items()):
                if all(future.done() for future in futures):
                    del waiting[one]
                    step(one, [future.result() for future in futures])


def main():
    make_inputs(os.path.join(args.work, "main"))
    before = shared_files()
    boards()
    delays_and_trace()
    no_number()
    crash()
    whole_job()
    killed = r"error: rank {rank} ended by signal 9 \(Killed\) "
    stopped = r"error: rank \d waited \d\.\d s in .*; rank {rank} .*, stopped by a signal"
    at_once(in_windows(signal.SIGKILL, killed), in_windows(signal.SIGSTOP, stopped),
            signals("shoal-run", signal.SIGKILL, killed),
            signals("shoal-run", signal.SIGSTOP, stopped),
            signals("shoal-run", signal.SIGSTOP, stopped, "--local-comm", "windows"),
            signals("mpirun", signal.SIGSTOP, stopped))
    # Runs of other tests have such files, too, but not for long.
    left, begin = shared_files() - before, time.monotonic()
    while left and time.monotonic() - begin < 60:
        time.sleep(0.5)
        left &= shared_files()
    check(not left, f"files are left: {left}")
    by_hand.finish("ranks that die, stop or come late are told as they should")


main()
