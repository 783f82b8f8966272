"""Runs the tools: compiles a model, starts a program on N ranks, with a time limit each.

The tools are found on PATH. A tool that fails ends the test with its own output.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys

COMPILE_LIMIT = 120
RUN_LIMIT = 240


def wrong_usage(text):
    """Ends a script whose command line is wrong: nothing was tested, and that is no success."""
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def call(command, limit, expect=0, env=None):
    """Runs `command` and returns what it wrote, stdout and then stderr: one pipe for both would mix them as mpirun happens to
    forward them. Ends the test unless it exits with `expect`."""
    environment = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, env=environment)
    except FileNotFoundError:
        sys.exit(f"{command[0]}: not found on PATH")
    except subprocess.TimeoutExpired as expired:
        sys.exit(f"no end within {limit} s: {' '.join(command)}\n{both_streams(expired)}")
    if done.returncode != expect:
        sys.exit(f"exit status {done.returncode}, expected {expect}: {' '.join(command)}\n{both_streams(done)}")
    return both_streams(done)


def both_streams(done):
    output, errors = ((stream or b"").decode(errors="replace") for stream in (done.stdout, done.stderr))
    return output + ("\n" if errors and output and not output.endswith("\n") else "") + errors


def shoalc(model, output, *options):
    """Compiles `model` to the executable `output`, and finds the pass that makes invalid IR."""
    call(["shoalc", model, "-o", output, "--verify-each", *options], COMPILE_LIMIT)
    return output


def mesh_options(ranks):
    """One rank compiles without a mesh: that is the program every plan is compared to."""
    return ["--mesh", f"data={ranks}"] if ranks > 1 else []


def ranks_of(mesh):
    """Of a mesh as --mesh has it, or as a program: 4 of "data=2,tensor=2". Without axes it is one device."""
    return math.prod(map(int, re.findall(r"=(\d+)", mesh)))


def run(ranks, program, *options, expect=0, env=None):
    """Runs a compiled program on `ranks` ranks."""
    program = os.path.abspath(program)
    return call(["shoal-run", "-n", str(ranks), program, "--no-progress", *options],
                RUN_LIMIT, expect, env)


def kill_rank(program, rank):
    """Ends a rank of a program that runs, by a signal that it cannot catch."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/cmdline", "rb") as g:
                if g.read().startswith(program.encode()) and f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in f.read():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            continue


def printed(text):
    """The lines in which --print shows what ranks hold; the log and the launcher print others."""
    return [line for line in text.splitlines() if line.startswith("rank ")]


def ranks_of_report(path):
    """The entries of a report's ranks, without `measured`, which only a run can know: a promise and a count
    are equal in the rest."""
    with open(path) as file:
        ranks = json.load(file)["ranks"]
    for entry in ranks:
        entry.pop("measured", None)
    return ranks
