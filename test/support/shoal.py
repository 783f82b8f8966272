"""Runs the tools: compiles a model, starts a program on N ranks, with a time limit each.

The tools are found on PATH. A tool that fails ends the test with its own output.
"""

import json
import os
import subprocess
import sys

COMPILE_LIMIT = 120
RUN_LIMIT = 240


def wrong_usage(text):
    """Ends a script whose command line is wrong: nothing was tested, and that is no success."""
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(2)


def call(command, limit, expect=0, env=None):
    """Runs `command` and returns what it wrote; ends the test unless it exits with `expect`."""
    environment = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit, env=environment, errors="replace")
    except FileNotFoundError:
        sys.exit(f"{command[0]}: not found on PATH")
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        output = output if isinstance(output, str) else output.decode(errors="replace")
        sys.exit(f"no end within {limit} s: {' '.join(command)}\n{output}")
    if done.returncode != expect:
        sys.exit(f"exit status {done.returncode}, expected {expect}: {' '.join(command)}\n{done.stdout}")
    return done.stdout


def shoalc(model, output, *options):
    """Compiles `model` to the executable `output`."""
    call(["shoalc", model, "-o", output, *options], COMPILE_LIMIT)
    return output


def mesh_options(ranks):
    """One rank compiles without a mesh: that is the program every plan is compared to."""
    return ["--mesh", f"data={ranks}"] if ranks > 1 else []


def run(ranks, program, *options, expect=0, env=None):
    """Runs a compiled program on `ranks` ranks."""
    program = os.path.abspath(program)
    return call(["shoal-run", "-n", str(ranks), program, "--no-progress", *options],
                RUN_LIMIT, expect, env)


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
