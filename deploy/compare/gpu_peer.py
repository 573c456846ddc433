#!/usr/bin/env python3
"""PyTorch's side of deploy/compare/gpu: a decoder of GPT-2's shape, forward and backward on a GPU.

The model is peer_gpt.py's with scaled_dot_product_attention, through torch.compile. bf16 is autocast
over FP32 weights, so that gradients are FP32. Gradients are new in every step, and there is no
optimizer. The vocabulary is rounded up to a multiple of 64, with which PyTorch is faster. Also
measures attention by itself, with the same shapes, from one matrix of queries, keys and values, by
each of PyTorch's kernels; a product of two matrices of 8,192 x 8,192; a copy of 512 MiB.

Prints one line of JSON when everything is compiled and warm, then one with measurements for every
line it reads. Without PyTorch or a GPU prints only {"skipped": REASON}.
"""

import argparse
import json
import sys

DEVICE = "cuda"
RUNS = 5
RUN_MS = 20


def skip(reason):
    print(json.dumps({"skipped": reason}), flush=True)
    raise SystemExit(0)


try:
    import torch
    from torch.nn import functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import peer_gpt
except ImportError as error:
    skip(f"PyTorch 2.3 or later is needed: {error}")


class SdpaAttention(peer_gpt.Attention):
    def forward(self, x):
        q, k, v = self.queries_keys_values(x)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        return F.dropout(self.c_proj(mixed), self.dropout, self.training)


def milliseconds(queue, count):
    """Returns the GPU time of each of `count` consecutive calls."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        queue()
        mark.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in zip(marks, marks[1:])]


def best_milliseconds(queue):
    """Time of a call in the fastest of RUNS runs of many calls, as in cuda_benchmark.h."""
    calls = max(1, int(RUN_MS / max(min(milliseconds(queue, 3)), 1e-3)))

    def many():
        for _ in range(calls):
            queue()

    return min(milliseconds(many, RUNS)) / calls


def element_type(a):
    return torch.bfloat16 if a.precision == "bf16" else torch.float32


def step_of(a):
    symbols = (a.vocabulary + 63) // 64 * 64
    model = peer_gpt.Gpt(a.layers, a.width, a.heads, a.context, symbols, dropout=a.dropout,
                         attention=SdpaAttention).to(DEVICE)
    tokens, targets = (torch.randint(a.vocabulary, (a.batch, a.context), device=DEVICE)
                       for _ in range(2))

    def loss_of(tokens, targets):
        return peer_gpt.sum_of_losses(model(tokens), targets)

    compiled = torch.compile(loss_of, mode=a.mode)

    def step():
        model.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=a.precision == "bf16"):
            loss = compiled(tokens, targets)
        loss.backward()

    return step


def attention_of(a):
    """Returns functions that run the forward pass, and the backward pass."""
    qkv = torch.randn(a.batch, a.context, 3, a.heads, a.width // a.heads, device=DEVICE,
                      dtype=element_type(a), requires_grad=True)
    q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
    gradient = torch.randn(q.shape, device=DEVICE, dtype=q.dtype)

    def forward():
        return F.scaled_dot_product_attention(q, k, v, dropout_p=a.dropout, is_causal=True)

    out = forward()
    return forward, lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def attention_times(a):
    """Returns {kernel: [forward ms, backward ms]} for kernels that support this GPU and these shapes."""
    times = {}
    for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"):
        backend = getattr(SDPBackend, name, None)
        if backend is None:
            continue
        try:
            with sdpa_kernel(backend):
                times[name] = [best_milliseconds(queue) for queue in attention_of(a)]
        except RuntimeError:
            pass  # kernel not supported
    return times


def product_tflops(a, size=8192):
    x, y = (torch.randn(size, size, device=DEVICE, dtype=element_type(a)) for _ in range(2))
    out = torch.empty_like(x)
    return 2 * size**3 / best_milliseconds(lambda: torch.mm(x, y, out=out)) * 1e-9


def copy_gb_per_second(size=512 << 20):
    x, y = (torch.zeros(size, device=DEVICE, dtype=torch.uint8) for _ in range(2))
    return 2 * size / best_milliseconds(lambda: y.copy_(x)) * 1e-6


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("layers", "width", "heads", "context", "vocabulary", "batch", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--mode", default="default", help="mode of torch.compile")
    return parser.parse_args()


def main():
    a = parse()
    if not torch.cuda.is_available():
        skip(f"PyTorch {torch.__version__} finds no GPU")
    step = step_of(a)
    milliseconds(step, 10)
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}), flush=True)
    for _ in sys.stdin:
        torch.cuda.reset_peak_memory_stats()
        print(json.dumps({"step_ms": milliseconds(step, a.steps),
                          "memory_gb": torch.cuda.max_memory_allocated() * 1e-9,
                          "attention_ms": attention_times(a),
                          "product_tflops": product_tflops(a),
                          "copy_gb_per_second": copy_gb_per_second()}), flush=True)
        torch.cuda.empty_cache()  # frees memory for Tugboat's run before the next line


if __name__ == "__main__":
    main()
