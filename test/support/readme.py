#!/usr/bin/env python3
"""Holds README against the tree: scripts/demo.sh, which it calls the way to the tools, builds every tool that README, docs
and examples call; what it quotes of the compiler's output is what the files given hold; and what pages link to is there.

usage: readme.py SOURCE_FOLDER OUTPUT...
"""

import glob
import os
import re
import sys


def blocks(text, language):
    """The fenced blocks of a page in one language."""
    return [body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if kind == language]


def read(path):
    with open(path) as f:
        return f.read()


def check_tools(root, faults):
    called = {}
    for pattern in ("README.md", "docs/*.md", "examples/*/README.md"):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            for block in blocks(read(path), "sh"):
                for tool in re.findall(r"(?:^|\| )(shoal[a-z-]*) ", block, re.M):
                    called.setdefault(tool, os.path.relpath(path, root))
    built = re.search(r"^build (.*)$", read(os.path.join(root, "scripts/demo.sh")), re.M)[1].split()
    if not {"shoalc", "shoal-model"} <= called.keys():
        faults.append(f"expected commands of shoalc and shoal-model in the pages, got: {sorted(called)}")
    faults += [f"scripts/demo.sh does not build {tool}, which {page} calls"
               for tool, page in sorted(called.items()) if tool not in built]


def check_links(root, faults):
    """Links within the tree lead to files, and functions named behind a link (`@name`) are in that file."""
    found = 0
    for page in ("README.md", "docs/*.md", "examples/*/README.md", "runtime/README.md", "dialects/*/Rationale.md"):
        for path in sorted(glob.glob(os.path.join(root, page))):
            for link, behind in re.findall(r"\]\((?!\w+:|#)([^)#]+)[^)]*\)((?: `@\w+`)*)", read(path)):
                found += 1
                target = os.path.join(os.path.dirname(path), link)
                if not os.path.exists(target):
                    faults.append(f"{os.path.relpath(path, root)}: no {link}")
                    continue
                faults += [f"{os.path.relpath(path, root)}: {link} has no {name}" for name in re.findall(r"@\w+", behind)
                           if not re.search(rf"{name}\b", read(target))]
    if not found:
        faults.append("expected links in the pages")


def check_quotes(root, outputs, faults):
    """Rows of programs, in which "..." stands for what is left out and values have names for numbers, and the plan that differs."""
    page = read(os.path.join(root, "README.md"))
    rows = [line for block in blocks(page, "mlir") for line in block.splitlines() if re.match(r"(%\w+ = )?(dist|exec)\.", line)]
    errors = [" ".join(block.split()) for block in blocks(page, "") if block.startswith("error: the plan differs")]
    if len(rows) < 6 or len(errors) != 1:
        faults.append(f"expected 6 rows of programs and an error in README, got: {rows}, {errors}")
    text = "\n".join(read(path) for path in outputs)
    for quote in rows + errors:
        pattern = re.sub(r"%[a-z]\w*", r"%\\w+", re.escape(quote).replace(r"\.\.\.", ".*"))
        if not re.search(pattern, text):
            faults.append(f"README quotes what is not there: {quote}")


def main():
    root, *outputs = sys.argv[1:]
    faults = []
    check_tools(root, faults)
    check_links(root, faults)
    check_quotes(root, outputs, faults)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
