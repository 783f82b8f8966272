#!/usr/bin/env python3
"""Runs a command that must be refused: exit status 2, and one line that says why, which is printed.

usage: refused.py COMMAND ARGUMENT...
"""

import subprocess
import sys

done = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=120)
lines = done.stderr.splitlines()
print("\n".join(lines))
if done.returncode != 2 or len(lines) != 1 or done.stdout:
    sys.exit(f"exit status {done.returncode}, {len(lines)} lines, expected 2 and 1; stdout: {done.stdout!r}")
