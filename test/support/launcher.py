"""What shoal-run lets through of stderr: all that a rank writes, also what looks like mpirun's own.

usage: launcher.py
"""

import subprocess
import sys

RULE = "-" * 74
LIMIT = 60


def run(script, *options):
    done = subprocess.run(["shoal-run", "-n", "1", *options, "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    return done.returncode, done.stderr


def check(holds, what):
    if not holds:
        sys.exit(what)


def main():
    # A line of dashes is shown while its rank goes on, and what follows it, too.
    running = subprocess.Popen(["shoal-run", "-n", "1", "sh", "-c", f"echo {RULE} >&2; echo second >&2; read line; exit 3"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [running.stderr.readline() for _ in range(2)]
    check(running.poll() is None and lines == [RULE + "\n", "second\n"], f"a rank's rule: {lines}")
    running.communicate(timeout=LIMIT)
    check(running.returncode == 1, f"exit code: {running.returncode}")

    # Nothing of a rank's is lost: less than a rule, more than one, two with text between, a line like mpirun's log.
    for text in (RULE[1:], RULE + "-", f"{RULE}\nbetween\n{RULE}", "[here:1] ORTE_ERROR_LOG: a rank's own", "mpirun: a rank's own"):
        code, errors = run(f"cat >&2 <<'END'\n{text}\nEND")
        check(code == 0 and errors == text + "\n", f"{text}: {code} {errors}")
    code, errors = run("head -c 200000 /dev/zero | tr '\\0' '-' >&2")
    check(code == 0 and errors == "-" * 200000, f"a line of 200000 dashes: {code}, {len(errors)} bytes")

    code, errors = run("true", "--bogus")
    check(code == 2 and errors == 'error: mpirun: unknown option "--bogus"; see mpirun --help\n', f"--bogus: {code} {errors}")
    print("shoal-run lets through what ranks write")


main()
