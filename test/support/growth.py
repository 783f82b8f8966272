#!/usr/bin/env python3
"""Holds passes over pipelines to time that grows as the program does.

usage: growth.py --work FOLDER

Each program is compiled at a size and at four times that, in seconds of the processor. What goes through a program once
takes four times as long, and what goes through all of it for each of its ops sixteen times: nine times is too long.
"""

import argparse
import os
import resource
import sys

import shoal

TRIES = 3  # the machine may have other work


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


def squares(number):
    """Of squares, which no stage says: 2^number ways lead through them."""
    square = "\n".join(f"    %{i + 1} = nn.mul %{i}, %{i} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
                       for i in range(number))
    return f"""dist.mesh @mesh <["pipe"=2]>
pipe.schedule @s placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func @step(%x: tensor<4xf32> {{nn.input = #nn.input<"x", unbatched>}}) -> (tensor<4xf32> {{nn.output = "y"}}) {{
  %y = dist.accumulate(%x) microbatches = 1 {{
  ^bb0(%part: tensor<4xf32>):
    %h = nn.tanh %part {{pipe.stage = 0 : i64}} : tensor<4xf32>
    %0 = nn.exp %h {{pipe.stage = 1 : i64}} : tensor<4xf32>
{square}
    dist.yield %{number} : tensor<4xf32>
  }} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""


def seconds(program, options):
    def used():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    begin = used()
    shoal.call(["shoal-opt", program, "-o", os.devnull, *options], shoal.COMPILE_LIMIT)
    return used() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    work = parser.parse_args().work
    os.makedirs(work, exist_ok=True)
    for make, size, options in ((reductions, 2048, ["--pipe-unroll"]), (calls, 8000, []),
                                (squares, 6, ["--pipe-split"])):
        programs = [os.path.join(work, f"{make.__name__}-{times}.mlir") for times in (1, 4)]
        for program, times in zip(programs, (1, 4)):
            with open(program, "w") as file:
                file.write(make(size * times))
        told = []
        for _ in range(TRIES):
            small, large = (seconds(program, options) for program in programs)
            told.append(f"{small:.2f} s and {large:.2f} s")
            if large < 9 * small:
                break
        else:
            sys.exit(f"{make.__name__}: four times the program takes nine times as long or more: {'; '.join(told)}")
        print(f"{make.__name__}: {told[-1]}")


if __name__ == "__main__":
    main()
