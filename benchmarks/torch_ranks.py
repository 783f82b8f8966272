"""One PyTorch process per rank of a gloo group on this machine, for the scripts that PyTorch runs."""

import os
import socket

import torch
import torch.distributed
import torch.multiprocessing


def join(rank, work, args, port):
    torch.set_num_threads(1)
    if args.ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=args.ranks)
    work(rank, args)
    if args.ranks > 1:
        torch.distributed.destroy_process_group()


def run(work, args):
    """work(rank, args) on each of `args.ranks` ranks with one thread; on one in this process."""
    if args.ranks == 1:
        return join(0, work, args, 0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(join, (work, args, port), nprocs=args.ranks)
