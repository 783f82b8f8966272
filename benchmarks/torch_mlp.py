#!/usr/bin/env python3
"""Trains a perceptron with PyTorch on one thread and prints its seconds per step, one a line per block of steps.

usage: torch_mlp.py --batch 32 --sizes 16,512,10 --steps 200 --blocks 5 [--ranks 2]

With two ranks it is PyTorch's own data parallelism (DistributedDataParallel over gloo), each on its part of the batch.
The same work as the compiled program does: f32, relu between layers, mean cross entropy, SGD, the loss read each step.
"""

import argparse
import time

import torch

import torch_ranks


def build(sizes):
    layers = []
    for m, n in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(m, n), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def train(rank, args):
    model = build(args.sizes)
    if args.ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    rows = args.batch // args.ranks
    x, y = torch.rand(rows, args.sizes[0]), torch.arange(rows) % args.sizes[-1]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for block in range(-1, args.blocks):  # the first is not counted
        start = time.monotonic()
        for _ in range(args.steps):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()
        if rank == 0 and block >= 0:
            print(f"{(time.monotonic() - start) / args.steps:.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1)
    torch_ranks.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
