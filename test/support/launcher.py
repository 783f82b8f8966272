"""What shoal-run lets through of stderr: all that a rank writes, also what looks like mpirun's own. And the folder of a
launch, which holds Open MPI's session and is gone however the launch ends.

usage: launcher.py
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RULE = "-" * 74
LIMIT = 60


BASE = "OMPI_MCA_orte_tmpdir_base"
SAY_BASE = f"echo ${BASE}; ls -d ${BASE}/ompi.*; "
# A rank of this test's own machine, whatever started the test.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("OMPI_MCA_orte", "SLURM_", "PBS_", "LSB_")) and name != "PE_HOSTFILE"}


def start(script, *options, env=None):
    return subprocess.Popen(["shoal-run", "-n", "1", *options, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **(env or {})})


def run_all(script, *options, env=None):
    """Exit code, stdout, stderr."""
    running = start(script, *options, env=env)
    output, errors = running.communicate(timeout=LIMIT)
    return running.returncode, output, errors


def run(script, *options):
    code, _, errors = run_all(script, *options)
    return code, errors


def check(holds, what):
    if not holds:
        sys.exit(what)


def base_of(output, what):
    """The folder that a launch has told, in which there was a session."""
    lines = output.splitlines()
    check(len(lines) == 2 and lines[0] and lines[1].startswith(lines[0] + "/ompi."), f"{what}: no session in {lines}")
    return lines[0]


def folders():
    for script, exit_code in ((SAY_BASE, 0), (SAY_BASE + "exit 3", 1), (SAY_BASE + "kill -SEGV $$", 1)):
        code, output, errors = run_all(script)
        check(code == exit_code, f"{script}: {code} {errors}")
        base = base_of(output, script)
        check(not os.path.exists(base), f"{script}: {base} is left")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        running = start(SAY_BASE + "exec sleep 600")
        base = base_of(running.stdout.readline() + running.stdout.readline(), str(number))
        check(os.path.isdir(base), f"{base} must be there while its launch runs")
        running.send_signal(number)
        _, errors = running.communicate(timeout=LIMIT)
        check(running.returncode == 128 + number and not os.path.exists(base), f"{number}: {running.returncode} {errors} {base}")

    # A folder of the user's own stays, though its name is one that a launch might have.
    own = os.path.join(os.path.dirname(base), f"shoal-launch-{os.getpid() % 10**6:06d}")
    os.mkdir(own)
    code, errors = run("true")
    left = os.path.isdir(own)
    shutil.rmtree(own, ignore_errors=True)
    check((code, errors) == (0, "") and left, f"a launch took {own} away: {code} {errors}")
    # Nobody removes the folder of a launch that is killed but the next one, as soon as its mpirun has ended.
    running = start(SAY_BASE + "exec sleep 600")
    base = base_of(running.stdout.readline() + running.stdout.readline(), "SIGKILL")
    check(run("true") == (0, "") and os.path.isdir(base), f"another launch took {base} away")
    running.kill()
    running.communicate(timeout=LIMIT)
    end = time.monotonic() + LIMIT
    while os.path.exists(base) and time.monotonic() < end:
        check(run("true") == (0, ""), "a launch beside a folder that is left over")
    check(not os.path.exists(base), f"{base} is left")

    # Who says where the session lies is obeyed, and is told by Open MPI what it takes.
    with tempfile.TemporaryDirectory(prefix="base-") as own:
        for env, options in (({BASE: own}, ()), (None, ("--mca", "orte_tmpdir_base", own)),
                             (None, ("--mca", "orte_local_tmpdir_base", own))):
            code, output, errors = run_all(f"ls -d {own}/ompi.*", *options, env=env)
            check(code == 0 and output.startswith(own) and os.listdir(own) == [], f"{env} {options}: {code} {output} {errors}")
    # Other machines would make the folder, and keep it.
    code, output, errors = run_all(f"echo base: ${BASE}", "--host", "localhost")
    check(code == 0 and "base:" in output and "shoal-launch" not in output, f"--host: {code} {output} {errors}")


def main():
    folders()
    # A line of dashes is shown while its rank goes on, and what follows it, too.
    running = start(f"echo {RULE} >&2; echo second >&2; read line; exit 3")
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
    print("shoal-run lets through what ranks write, and leaves no folder")


main()
