#!/usr/bin/env python3
"""Runs the commands of a page, one block after the other in one shell, and compares what they print with the page.

usage: page_commands.py PAGE --root FOLDER --work FOLDER [--write]     (tools on PATH)

A block `sh` is run, a block `python` is a program; what it prints is the block `text` behind it. A line "..." there
stands for what is left out. Commands run in WORK, from where `examples` and `test` of ROOT can be reached. With --write
the page gets what was printed, in blocks in which nothing is left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\n?^```text\n(.*?)^```\n)?", re.M | re.S)
LIMIT = 600


def run(blocks, work):
    """What each block printed; blocks share a shell."""
    script, end = ["set -euo pipefail", "exec 2>&1"], "---- end of a block"
    for kind, body, _ in blocks:
        script.append(body if kind == "sh" else f"{sys.executable} - <<'END_OF_PROGRAM'\n{body}END_OF_PROGRAM")
        script.append(f"echo '{end}'")
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, timeout=LIMIT)
    printed = done.stdout.split(end + "\n")
    if done.returncode != 0 or len(printed) != len(blocks) + 1:
        sys.exit(f"a block ended with status {done.returncode}:\n{blocks[len(printed) - 1][1]}\n{printed[-1]}")
    return printed[:-1]


def matches(expected, got):
    pattern = "".join(".*" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, got, re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page")
    parser.add_argument("--root", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    for folder in ("examples", "test"):
        os.symlink(os.path.abspath(os.path.join(args.root, folder)), os.path.join(args.work, folder))
    with open(args.page) as f:
        page = f.read()
    blocks = [match.groups() for match in BLOCK.finditer(page)]  # None: the page does not say what is printed
    if all(expected is None for _, _, expected in blocks):
        sys.exit(f"{args.page}: expected a block of commands with what they print behind it, got: none")
    printed = [re.sub(r"[ \t]+$", "", text, flags=re.M) for text in run(blocks, args.work)]
    faults = [f"{args.page}: of\n{body}expected\n{expected}got\n{got}"
              for (_, body, expected), got in zip(blocks, printed)
              if not matches(expected or "", got)]
    if args.write:
        outputs = iter(printed)

        def fill(match):
            got, expected = next(outputs), match[3]
            if expected is None or "...\n" in expected:
                return match[0]
            return match[0].replace(f"```text\n{expected}```", f"```text\n{got}```")

        with open(args.page, "w") as f:
            f.write(BLOCK.sub(fill, page))
        return
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
