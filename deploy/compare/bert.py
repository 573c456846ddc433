#!/usr/bin/python3
"""The BERT-like program of the lectures on data-parallel training, in PyTorch: the peer of
deploy/jobs/bert_lectures.textproto.

An encoder with 2 layers (post-LayerNorm, ReLU, 4 heads), 256 wide, with 30,522 symbols and 128
positions, and a classifier on the first position; 10,000 samples of random tokens, all of class 0,
3 epochs in batches of 32, Adam at 1e-4. Prints mean loss and seconds of each epoch, then everything
as one JSON line. With --processes 2: DistributedDataParallel over gloo, as in the lectures.

  deploy/compare/bert.py [--processes 1] [--threads 2] [--epochs 3] [--samples 10000] [--bf16]
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import peer_gpt
import peer_processes

SYMBOLS, WIDTH, HEADS, LENGTH, LAYERS, CLASSES = 30522, 256, 4, 128, 2, 2


class FakeBertLikeDataset(Dataset):
    """Random tokens, no padding, label 0; each read of a sample draws new tokens."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        return (torch.randint(0, SYMBOLS, (LENGTH,)), torch.ones(LENGTH, dtype=torch.long),
                torch.tensor(0))


class SimpleBertLike(nn.Module):
    def __init__(self, mlp_width):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.position = nn.Parameter(torch.zeros(1, LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(d_model=WIDTH, nhead=HEADS, dim_feedforward=mlp_width)
        self.encoder = nn.TransformerEncoder(layer, num_layers=LAYERS)
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens, attention_mask):
        x = self.embedding(tokens) + self.position
        x = self.encoder(x.transpose(0, 1),
                         src_key_padding_mask=(attention_mask == 0)).transpose(0, 1)
        return self.classifier(x[:, 0, :])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="compute threads of each process")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=10000, help="samples per epoch")
    parser.add_argument("--batch", type=int, default=32, help="samples per step, over all processes")
    parser.add_argument("--mlp-width", type=int, default=1024)
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    return parser.parse_args()


def run(rank, arguments):
    """One process; rank 0 prints the result."""
    torch.set_num_threads(arguments.threads)
    peer_gpt.require_openmp_blas()
    several = arguments.processes > 1
    torch.manual_seed(1)
    bert = SimpleBertLike(arguments.mlp_width)
    model = DistributedDataParallel(bert) if several else bert
    torch.manual_seed(2 + rank)
    dataset = FakeBertLikeDataset(arguments.samples)
    sampler = DistributedSampler(dataset, arguments.processes, rank) if several else None
    loader = DataLoader(dataset, batch_size=arguments.batch // arguments.processes,
                        shuffle=sampler is None, sampler=sampler)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    epochs = []
    for epoch in range(arguments.epochs):
        if several:
            sampler.set_epoch(epoch)
        model.train()
        started, sum_of_losses = time.monotonic(), 0.0
        for tokens, mask, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=arguments.bf16):
                loss = criterion(model(tokens, mask), labels)
            loss.backward()
            optimizer.step()
            sum_of_losses += loss.item()
        epochs.append({"loss": sum_of_losses / len(loader),
                       "seconds": round(time.monotonic() - started, 2)})
        if rank == 0:
            print(f"[Epoch {epoch + 1}/{arguments.epochs}] Loss: {epochs[-1]['loss']:.4f}, "
                  f"{epochs[-1]['seconds']} s", flush=True)
    if rank == 0:
        print(json.dumps({"parameters": sum(p.numel() for p in bert.parameters()),
                          "epochs": epochs}))


if __name__ == "__main__":
    peer_processes.run_processes(parse(), run)
