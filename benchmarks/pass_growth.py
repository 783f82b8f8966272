#!/usr/bin/env python3
"""How passes over pipelines grow with a program, as a Markdown table.

usage: pass_growth.py --work FOLDER      (tools on PATH, see run.sh)

Each program is compiled at a size and at four times that, in seconds of the processor, best of three. What goes through
a program once takes four times as long, and what goes through all of it for each of its ops sixteen times. The exit
status is 1 where it is nine times or more.
"""

import argparse
import os
import resource
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "support"))
import shoal  # noqa: E402
from common import at_most, exit_status, table  # noqa: E402

TRIES, RATIO_BOUND = 3, 9


def reductions(microbatches, weights=4):
    """A stage reduces what it has made, for each weight, in each micro-batch."""
    small, whole = "tensor<1xf32>", "tensor<2xf32>"
    sums = ", ".join([small] * weights)
    names = ", ".join(f"%g{i}" for i in range(weights))
    lines = ['dist.mesh @mesh <["pipe"=2, "data"=2]>']
    first = " ".join(f"F{m} SF{m}>1" for m in range(microbatches))
    second = " ".join(f"RF{m}<0 F{m}" for m in range(microbatches))
    lines += [f"pipe.schedule @s placement = loop microbatches = {microbatches} chunks = 1 ranks "
              f'["{first}", "{second}"]',
              f"func.func private @f(%x: tensor<1x2xf32>) -> {whole} {{",
              f"  %0 = nn.reshape %x : tensor<1x2xf32> -> {whole}", f"  return %0 : {whole}", "}",
              f"func.func private @g(%x: {whole}) -> ({sums}) {{"]
    for i in range(weights):
        lines += [f"  %t{i} = nn.exp %x {{pipe.stage = 1 : i64}} : {whole}",
                  f'  %g{i} = dist.reduce_scatter {{"data"}} sum dim = 0 %t{i} : {whole} -> {small}']
    results = ", ".join(f'{small} {{nn.output = "y{i}"}}' for i in range(weights))
    batch = f"tensor<{microbatches}x2xf32>"
    lines += [f"  return {names} : {sums}", "}",
              f'func.func @step(%x: {batch} {{nn.input = #nn.input<"x", unbatched>}}) -> ({results}) {{',
              f"  %y:{weights} = dist.accumulate(%x) microbatches = {microbatches} {{",
              "  ^bb0(%part: tensor<1x2xf32>):",
              f"    %h = pipe.call forward stage 0 @f(%part) : (tensor<1x2xf32>) -> {whole}",
              f"    %s:{weights} = pipe.call forward stage 1 @g(%h) : ({whole}) -> ({sums})",
              f"    dist.yield {', '.join(f'%s#{i}' for i in range(weights))} : {sums}",
              f"  }} : ({batch}) -> ({sums})",
              f"  return {', '.join(f'%y#{i}' for i in range(weights))} : {sums}", "}"]
    return "\n".join(lines)


def calls(number):
    """Of one function, of as many ops as it has calls."""
    ops = "\n".join("  nn.tanh %x : tensor<4xf32>" for _ in range(number))
    called = "\n".join("  pipe.call forward stage 0 @f(%x) : (tensor<4xf32>) -> tensor<4xf32>" for _ in range(number))
    return f"""func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
{ops}
  return %x : tensor<4xf32>
}}
func.func @step(%x: tensor<4xf32>) {{
{called}
  return
}}
"""


def seconds(program, options):
    def used():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    begin = used()
    shoal.call(["shoal-opt", program, "-o", os.devnull, *options], shoal.COMPILE_LIMIT)
    return used() - begin


def print_table(work):
    os.makedirs(work, exist_ok=True)
    rows = []
    for make, size, options in ((reductions, 2048, ["--pipe-unroll"]), (calls, 8000, [])):
        times = []
        for factor in (1, 4):
            program = os.path.join(work, f"{make.__name__}-{factor}.mlir")
            with open(program, "w") as file:
                file.write(make(size * factor))
            times.append(min(seconds(program, options) for _ in range(TRIES)))
        ratio = times[1] / times[0]
        rows.append([make.__name__, str(size), f"{times[0]:.2f}", f"{times[1]:.2f}", f"{ratio:.1f}",
                     at_most(ratio, RATIO_BOUND)])
    table("passes over pipelines", ["size", "s", "s at four times that", "ratio", "bound"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", required=True)
    print_table(parser.parse_args().work)
    sys.exit(exit_status())


if __name__ == "__main__":
    main()
