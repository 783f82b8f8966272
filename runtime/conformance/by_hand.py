"""What scripts that run the programs by hand (make_linear.cpp, make_stages.cpp) have in common: options, data, launches
and checks, which go on after one has failed."""

import argparse
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "support"))
from tensor_files import tensor, write_npy  # noqa: E402

args = None  # of the command line, once parsed
failures = []


def make_parser(doc, witness):
    """`witness`: the library that is loaded into ranks, pmpi or signal."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    for name in ("programs", "bin", witness, "work"):
        parser.add_argument("--" + name, required=True)
    return parser


def begin(parser):
    """The options, and an empty folder to work in."""
    global args
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    return args


def path(name):
    return os.path.join(args.work, name)


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED: " + what, flush=True)


def finish(text):
    if failures:
        sys.exit(f"{len(failures)} checks failed")
    print(text)


def close(a, b, tolerance):
    return len(a) == len(b) and all(abs(p - q) <= tolerance * max(1, abs(q)) for p, q in zip(a, b))


def make_data(rows, columns):
    """Rows x, y of a linear function of them, and the options that name their files."""
    random.seed(3)
    x = [[random.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]
    y = [r[0] - 2 * r[1] + 0.5 * r[2] for r in x]
    write_npy(path("x.npy"), tensor("f64", (rows, columns), [v for r in x for v in r]))
    write_npy(path("y.npy"), tensor("f64", (rows,), y))
    return x, y, ["--data", f"x={path('x.npy')}", "--data", f"y={path('y.npy')}"]


def launch(ranks, program, *options, env=None):
    """Exit code, stdout and stderr."""
    command = [os.path.join(args.bin, "shoal-run"), "-n", str(ranks), os.path.join(args.programs, program), *options]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})
        # Open MPI 4.1's mpirun sometimes crashes itself when it ends after an MPI_Abort.
        if "PMIx_server_finalize" not in done.stderr:
            break
    return done.returncode, done.stdout, done.stderr


def own_lines(err):
    """The program's lines, without the launcher's notes and mpirun's epilogue."""
    return [line for line in err.splitlines() if line.startswith("error: ")]


def check_ran(done, what):
    """What a run that ends well has printed."""
    code, out, err = done
    check(code == 0, f"exit {code} of {what}: {err}")
    return out


def check_refused(done, what, part, code=2):
    """One line says why, whichever rank has come upon it."""
    got, _, err = done
    own = own_lines(err)
    check(got == code and len(own) == 1 and part in own[0],
          f"{what}: exit {got}, expected {code}, and one line with '{part}', got {own}: {err}")
