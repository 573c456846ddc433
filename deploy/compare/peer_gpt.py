"""The model of model/model.h (DECODER) in PyTorch, to compare Tugboat's results and speed with.

A GPT-2-shaped decoder in FP32: token and learned position embeddings, pre-LayerNorm blocks of
causal multi-head attention and a GELU (tanh form) MLP of 4 x width, final LayerNorm, head tied to
the token embedding or not.
For PyTorch 1.13 (Debian's python3-torch) and later.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    """LayerNorm with optional bias (PyTorch 1.13's always has one)."""

    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, context, dropout, bias):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        # Not a buffer: DDP over gloo cannot broadcast booleans.
        self.future = torch.triu(torch.ones(context, context, dtype=torch.bool), diagonal=1)

    def queries_keys_values(self, x):
        """Returns three tensors [batch, heads, time, head size]."""
        batch, time, width = x.shape
        return [part.view(batch, time, self.heads, -1).transpose(1, 2)
                for part in self.c_attn(x).split(width, dim=2)]

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.queries_keys_values(x)
        scores = (q * (1.0 / math.sqrt(width // self.heads))) @ k.transpose(-2, -1)
        weights = scores.masked_fill(self.future[:time, :time], float("-inf")).softmax(dim=-1)
        weights = F.dropout(weights, self.dropout, self.training)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, time, width)
        return F.dropout(self.c_proj(mixed), self.dropout, self.training)


class Mlp(nn.Module):
    def __init__(self, width, dropout, bias):
        super().__init__()
        self.dropout = dropout
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        hidden = F.gelu(self.c_fc(x), approximate="tanh")
        return F.dropout(self.c_proj(hidden), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, width, heads, context, dropout, bias, attention):
        super().__init__()
        self.ln_1 = LayerNorm(width, bias)
        self.attn = attention(width, heads, context, dropout, bias)
        self.ln_2 = LayerNorm(width, bias)
        self.mlp = Mlp(width, dropout, bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """tokens [batch, time] -> logits [batch, time, symbols]. Parameter names are GPT-2's."""

    def __init__(self, layers, width, heads, context, symbols, dropout=0.0, tied=True, bias=True,
                 attention=Attention):
        super().__init__()
        self.dropout = dropout
        self.wte = nn.Embedding(symbols, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads, context, dropout, bias, attention)
                               for _ in range(layers))
        self.ln_f = LayerNorm(width, bias)
        self.lm_head = None if tied else nn.Linear(width, symbols, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith("c_proj.weight")
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * layers if residual else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = F.dropout(self.wte(tokens) + self.wpe(positions), self.dropout, self.training)
        for block in self.h:
            x = block(x)
        head = self.wte.weight if self.lm_head is None else self.lm_head.weight
        return F.linear(self.ln_f(x), head)


def sum_of_losses(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def adamw(model, learning_rate=1e-3, betas=(0.9, 0.99), weight_decay=0.1):
    """AdamW that decays matrices only, embeddings included."""
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": weight_decay},
              {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=1e-8)


def learning_rate_at(step, peak, floor, warmup, decay):
    """optimizer/learning_rate.h: linear warm-up, half a cosine, then constant."""
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if step >= decay:
        return floor
    progress = (step - warmup) / (decay - warmup)
    return floor + (peak - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))


def loaded_blas():
    """Returns the BLAS files of this process, with folders, which name the variant."""
    torch.ones(8, 8) @ torch.ones(8, 8)
    with open("/proc/self/maps", encoding="ascii") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line and "/" in line}
    return sorted("/".join(path.split("/")[-2:]) for path in paths)


def require_openmp_blas():
    """Fails without OpenBLAS for OpenMP: threads of the pthread variant slow down PyTorch's own."""
    blas = loaded_blas()
    if not any("openmp" in path for path in blas):
        raise SystemExit(f"PyTorch uses {blas}, not OpenBLAS with OpenMP: "
                         "apt-get install libopenblas0-openmp")
    return blas
