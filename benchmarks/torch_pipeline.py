#!/usr/bin/env python3
"""Trains the blocks of generate_blocks.py in a pipeline of PyTorch's processes and prints seconds per step, one a line.

usage: torch_pipeline.py --blocks 8 --width 512 --batch 512 --microbatches 8 --steps 4 --schedule 1f1b [--ranks 2]

Each rank is one process with one thread, over gloo; on one rank micro-batches follow each other without a schedule. The
same work as the compiled program does: f32, mean squared error of the whole batch, SGD. Ends with status 3 and a line
where this PyTorch has no such schedule.
"""

import argparse
import sys
import time

import torch

import torch_ranks

NO_SCHEDULE = 3
CLASSES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B",
           "interleaved-zb": "ScheduleInterleavedZeroBubble", "zb-v": "ScheduleZBVZeroBubble"}
CHUNKS = {"interleaved": 2, "interleaved-zb": 2, "zb-v": 2}


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def find_class(name):
    """Of torch.distributed.pipelining, or the line that says why there is none."""
    try:
        from torch.distributed.pipelining import schedules
    except ImportError:
        return f"PyTorch {torch.__version__} has no torch.distributed.pipelining"
    return getattr(schedules, CLASSES[name], f"PyTorch {torch.__version__} has no {CLASSES[name]}")


def make_stages(rank, args):
    """Stages of this rank: of as many in a row as there are ranks and chunks; ZB-V's second one comes back."""
    from torch.distributed.pipelining import PipelineStage
    chunks = CHUNKS.get(args.schedule, 1)
    count = args.ranks * chunks
    indices = [rank + chunk * args.ranks for chunk in range(chunks)]
    if args.schedule == "zb-v":
        indices = [rank, count - 1 - rank]
    shape = args.batch // args.microbatches, args.width
    stages = []
    for index in indices:
        torch.manual_seed(index)
        module = torch.nn.Sequential(*(Block(args.width) for _ in range(args.blocks // count)))
        taken, made = torch.zeros(shape, requires_grad=index > 0), torch.zeros(shape, requires_grad=True)
        device = torch.device("cpu")
        stages.append(PipelineStage(module, index, count, device, input_args=(taken,), output_args=(made,)))
    return stages


def train(rank, args):
    torch.manual_seed(0)
    x, y = torch.rand(args.batch, args.width), torch.rand(args.batch, args.width)

    def loss_of(output, target):  # the mean over the batch is the sum of micro-batches' shares
        return torch.nn.functional.mse_loss(output, target) / args.microbatches

    if args.ranks == 1:
        modules = [torch.nn.Sequential(*(Block(args.width) for _ in range(args.blocks)))]

        def step():
            for part, target in zip(x.chunk(args.microbatches), y.chunk(args.microbatches)):
                loss_of(modules[0](part), target).backward()
    else:
        stages = make_stages(rank, args)
        modules = [stage.submod for stage in stages]
        several = args.schedule in CHUNKS
        schedule = find_class(args.schedule)(stages if several else stages[0], args.microbatches, loss_fn=loss_of,
                                             scale_grads=False)
        has_first, has_last = any(stage.is_first for stage in stages), any(stage.is_last for stage in stages)

        def step():
            schedule.step(*([x] if has_first else []), **({"target": y, "losses": []} if has_last else {}))

    optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.001)
    for number in range(-2, args.steps):  # the first two are not counted
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        step()
        optimizer.step()
        if args.ranks > 1:
            torch.distributed.barrier()
        if rank == 0 and number >= 0:
            print(f"{time.monotonic() - start:.9f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("blocks", "width", "batch", "microbatches", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--schedule", choices=list(CLASSES), default="1f1b")
    args = parser.parse_args()
    if args.ranks > 1 and isinstance(missing := find_class(args.schedule), str):
        print(missing)
        sys.exit(NO_SCHEDULE)
    torch_ranks.run(train, args)


if __name__ == "__main__":
    main()
