#!/usr/bin/python3
"""Time of PyTorch's AdamW on one core: the peer of AdamW in `tug bench kernels`.

Each variant updates one FP32 tensor. `a += b` on tensors of the same size runs before each update;
compare the ratio of the two between machines. Prints processor time, medians (range).

  deploy/compare/adam.py [--parameters 100000000] [--runs 5]
"""

import argparse
import os
import statistics
import time

import torch


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=100_000_000)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def variants():
    """Returns name -> options of torch.optim.AdamW, for the variants that this PyTorch has."""
    known = torch.optim.AdamW.__init__.__code__.co_varnames
    result = {"AdamW": {"foreach": False}} if "foreach" in known else {"AdamW": {}}
    for option in ("foreach", "fused"):
        if option in known:
            result[f"AdamW {option}"] = {option: True}
    return result


def ns_of(work, elements):
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1e9 / elements


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f}..{max(values):.3f})"


def measure(name, options, add, arguments):
    """Prints one line: the times, or that this PyTorch does not support the variant on the CPU."""
    weights = torch.nn.Parameter(torch.ones(arguments.parameters))
    weights.grad = torch.full((arguments.parameters,), 0.01)
    adds, updates, ratios = [], [], []
    try:
        optimizer = torch.optim.AdamW([weights], lr=1e-3, weight_decay=0.1, **options)
        optimizer.step()  # allocates m and v
        for _ in range(arguments.runs):
            adds.append(ns_of(add, arguments.parameters))
            updates.append(ns_of(optimizer.step, arguments.parameters))
            ratios.append(updates[-1] / adds[-1])
    except RuntimeError as error:
        print(f"{name:<16} not on the CPU: {str(error).splitlines()[0]}")
        return
    print(f"{name:<16} {spread(updates):<24} {spread(ratios):<24} {spread(adds)}", flush=True)


def main():
    arguments = parse()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    a = torch.zeros(arguments.parameters)
    b = torch.full((arguments.parameters,), 0.01)
    print(f"PyTorch {torch.__version__}, {arguments.parameters} parameters, one core; medians of "
          f"{arguments.runs} runs (range)\n")
    print(f"{'':<16} {'ns per parameter':<24} {'time / time of a += b':<24} a += b, ns per element")
    for name, options in variants().items():
        measure(name, options, lambda: a.add_(b), arguments)


if __name__ == "__main__":
    main()
