#!/usr/bin/python3
"""Speed of PyTorch DistributedDataParallel over gloo: peer of `tug train` with as many workers.

Trains a GPT (by default 10.8M parameters: 6 layers, 384 wide, 6 heads, context 256, 256 symbols) in
FP32, or under bf16 autocast, with AdamW and clipping by global norm. Prints tokens/s as one JSON
line.

  deploy/compare/ddp.py [--text PATH] [--processes 2] [--threads 1] [--steps 20]
  deploy/compare/ddp.py --processes 1 --threads 2       # no DDP: one process
  deploy/compare/ddp.py --layers 12 --width 768 --heads 12 --symbols 50257 --batch 2 ...  # GPT-2 124M
"""

import argparse
import json
import resource
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import peer_gpt
import peer_processes

CONTEXT, BYTES = 256, 256


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="a file whose bytes are the tokens; default: random bytes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="compute threads of each process")
    parser.add_argument("--batch", type=int, default=8, help="samples per step, over all processes")
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the clock starts")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--symbols", type=int, default=256, help="vocabulary size of the embedding and the head")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--no-clip", action="store_true")
    parser.add_argument("--no-bias", action="store_true")
    return parser.parse_args()


def read_tokens(path):
    if path is None:
        return torch.randint(BYTES, (1 << 20,), generator=torch.Generator().manual_seed(1))
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()


def one_step(model, optimizer, step, tokens, samples, arguments):
    for group in optimizer.param_groups:
        group["lr"] = peer_gpt.learning_rate_at(step, 1e-3, 1e-4, 100, 1000)
    starts = torch.randint(len(tokens) - CONTEXT, (samples,)).tolist()
    inputs = torch.stack([tokens[s:s + CONTEXT] for s in starts])
    targets = torch.stack([tokens[s + 1:s + CONTEXT + 1] for s in starts])
    with torch.autocast("cpu", torch.bfloat16, enabled=arguments.bf16):
        loss = peer_gpt.sum_of_losses(model(inputs), targets) / targets.numel()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    if not arguments.no_clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def run(rank, arguments):
    """One process; rank 0 prints the result."""
    torch.set_num_threads(arguments.threads)
    blas = peer_gpt.require_openmp_blas()
    several = arguments.processes > 1
    torch.manual_seed(1)
    gpt = peer_gpt.Gpt(arguments.layers, arguments.width, arguments.heads, CONTEXT,
                       arguments.symbols, bias=not arguments.no_bias)
    optimizer = peer_gpt.adamw(gpt)
    model = DistributedDataParallel(gpt, gradient_as_bucket_view=True) if several else gpt
    torch.manual_seed(2 + rank)
    tokens = read_tokens(arguments.text)
    samples = arguments.batch // arguments.processes
    for step in range(arguments.warmup):
        one_step(model, optimizer, step, tokens, samples, arguments)
    if several:
        distributed.barrier()
    started = time.monotonic()
    for step in range(arguments.warmup, arguments.warmup + arguments.steps):
        loss = one_step(model, optimizer, step, tokens, samples, arguments)
    if several:
        distributed.barrier()
    seconds = time.monotonic() - started
    if rank == 0:
        trained = arguments.steps * samples * arguments.processes * CONTEXT
        print(json.dumps({
            "system": f"PyTorch {torch.__version__}" + (" DDP gloo" if several else ""),
            "precision": "bf16 autocast" if arguments.bf16 else "fp32",
            "blas": blas, "processes": arguments.processes, "threads": arguments.threads,
            "batch": samples * arguments.processes, "steps": arguments.steps,
            "parameters": sum(p.numel() for p in gpt.parameters()),
            "seconds": round(seconds, 3), "tokens_per_second": round(trained / seconds, 1),
            "loss": round(loss, 4),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }))


if __name__ == "__main__":
    peer_processes.run_processes(parse(), run)
