#!/usr/bin/env python3
"""Trains GPT-2 with PyTorch on one thread and prints its seconds per step, one a line.

usage: torch_gpt2.py --config config.json --batch 4 --seq 256 --steps 3 [--compile] [--ranks 2 --parallel ddp|fsdp2]

The model of transformers' GPT2LMHeadModel without dropout, in f32, with the loss of every token and AdamW: the same work
as the compiled program does, the loss read each step. It needs nothing but PyTorch. --compile is torch.compile, of
PyTorch 2; before, the exit status is 3, as it is of FSDP2 before PyTorch 2.6. Two steps more are made first, and not
counted. Over several ranks (gloo) each has its part of the batch; FSDP2 shards each block, and what is outside of them.
"""

import argparse
import json
import math
import sys
import time

import torch
import torch.distributed
from torch.nn import functional

import torch_ranks

TOO_OLD = 3


class Linear(torch.nn.Module):
    """x W + b, with W as the checkpoint has it: inputs by outputs."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def causal_attention(q, k, v):
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    tokens = q.shape[-2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


class Block(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.heads = config["n_embd"], config["n_head"]
        eps = config["layer_norm_epsilon"]
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width, eps), torch.nn.LayerNorm(width, eps)
        self.qkv, self.out = Linear(width, 3 * width), Linear(width, width)
        self.up, self.down = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, x):
        rows, tokens, width = x.shape
        q, k, v = (part.view(rows, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(width, dim=2))
        o = causal_attention(q, k, v).transpose(1, 2).reshape(rows, tokens, width)
        x = x + self.out(o)
        return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.wte = torch.nn.Parameter(torch.randn(config["vocab_size"], width) * 0.02)
        self.wpe = torch.nn.Parameter(torch.randn(config["n_positions"], width) * 0.02)
        self.blocks = torch.nn.ModuleList(Block(config) for _ in range(config["n_layer"]))
        self.ln_f = torch.nn.LayerNorm(width, config["layer_norm_epsilon"])

    def forward(self, ids, labels):
        x = functional.embedding(ids, self.wte) + self.wpe[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.t()
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def shard(model):
    """FSDP2 as its authors show it: parameters, gradients and state sharded per block, gathered for each use."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(rank, args):
    with open(args.config) as f:
        config = json.load(f)
    torch.manual_seed(0)
    model = Gpt2(config)
    if args.parallel == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    elif args.parallel == "fsdp2":
        model = shard(model)
    step_loss = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    ids = (torch.arange(args.batch * args.seq) * 7919 % config["vocab_size"]).view(args.batch, args.seq)
    labels = ids.roll(-1, dims=1)
    rows = slice(rank * args.batch // args.ranks, (rank + 1) * args.batch // args.ranks)
    for step in range(-2, args.steps):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss = step_loss(ids[rows], labels[rows])
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= 0 and rank == 0:
            print(f"{time.monotonic() - start:.9f}", flush=True)


def has_fsdp2():
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
        return True
    except ImportError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--parallel", choices=["ddp", "fsdp2"])
    args = parser.parse_args()
    for wanted, has, what in ((args.compile, hasattr(torch, "compile"), "torch.compile"),
                              (args.parallel == "fsdp2", has_fsdp2(), "FSDP2")):
        if wanted and not has:
            print(f"PyTorch {torch.__version__} has no {what}")
            sys.exit(TOO_OLD)
    torch_ranks.run(train, args)


if __name__ == "__main__":
    main()
