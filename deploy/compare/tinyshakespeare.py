#!/usr/bin/python3
"""Trains PyTorch's peer of the tinyshakespeare job and evaluates it on the whole validation split.

The reference for `tug train` on the same text: same model, initial distribution, AdamW, schedule,
clipping and batch, and the same evaluation as `tug eval`: window i of the split covers tokens
[i*T, (i+1)*T), targets are shifted by one, every window that fits counts, and the result is the
mean loss per token. Training samples start anywhere in the training split.

  deploy/compare/tinyshakespeare.py TEXT [--threads 2] [--seed 1] [--json]
"""

import argparse
import json
import time

import torch

import peer_gpt

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 4, 4, 128, 64, 12
PEAK, FLOOR, WARMUP = 1e-3, 1e-4, 100


def read_tokens(path):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    symbol = {character: i for i, character in enumerate(sorted(set(text)))}
    tokens = torch.tensor([symbol[character] for character in text])
    split = len(tokens) - int(0.1 * len(tokens))
    return tokens[:split], tokens[split:], len(symbol)


@torch.no_grad()
def evaluate(model, tokens, windows_at_once=256):
    """Mean loss per token over consecutive windows that do not overlap, without dropout."""
    was_training = model.training
    model.eval()
    windows = (len(tokens) - 1) // CONTEXT
    inputs = tokens[:windows * CONTEXT].view(windows, CONTEXT)
    targets = tokens[1:windows * CONTEXT + 1].view(windows, CONTEXT)
    total = 0.0
    for first in range(0, windows, windows_at_once):
        part = slice(first, first + windows_at_once)
        total += peer_gpt.sum_of_losses(model(inputs[part]), targets[part]).item()
    model.train(was_training)
    return total / (windows * CONTEXT)


def train(model, tokens, steps):
    optimizer = peer_gpt.adamw(model, PEAK)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = peer_gpt.learning_rate_at(step, PEAK, FLOOR, WARMUP, steps)
        starts = torch.randint(len(tokens) - CONTEXT, (BATCH,)).tolist()
        inputs = torch.stack([tokens[s:s + CONTEXT] for s in starts])
        targets = torch.stack([tokens[s + 1:s + CONTEXT + 1] for s in starts])
        loss = peer_gpt.sum_of_losses(model(inputs), targets) / targets.numel()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="path of the text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--no-bias", action="store_true", help="no biases, as nanoGPT")
    parser.add_argument("--untied", action="store_true", help="do not tie the head to the embedding")
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    blas = peer_gpt.require_openmp_blas()
    training, validation, symbols = read_tokens(arguments.text)
    model = peer_gpt.Gpt(LAYERS, WIDTH, HEADS, CONTEXT, symbols, tied=not arguments.untied,
                         bias=not arguments.no_bias)
    started = time.monotonic()
    train(model, training, arguments.steps)
    seconds = time.monotonic() - started
    loss = evaluate(model, validation)
    result = {
        "system": f"PyTorch {torch.__version__}", "blas": blas, "threads": arguments.threads,
        "seed": arguments.seed, "steps": arguments.steps, "symbols": symbols,
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_seconds": round(seconds, 2),
        "total_seconds": round(time.monotonic() - started, 2),
        "validation_loss": round(loss, 5),
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value}")


if __name__ == "__main__":
    main()
