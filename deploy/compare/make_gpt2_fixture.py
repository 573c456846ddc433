#!/usr/bin/python3
"""Writes huggingface/testdata/tiny_gpt2/, a Hugging Face GPT-2 folder with random weights, and
logits.json, PyTorch's results with these weights: the reference for the tests of huggingface/.

The model is implemented again here, from openai/gpt-2 (src/model.py) and with the names of
transformers' GPT2LMHeadModel, in PyTorch and double precision: it shares no code with Tugboat.
Needs PyTorch (Debian's python3-torch).

  deploy/compare/make_gpt2_fixture.py [FOLDER]      write the fixture
  deploy/compare/make_gpt2_fixture.py --logits DIR TOKEN...
      print the logits of the token after these, for any GPT-2 folder with FP32 tensors
"""

import json
import math
import os
import sys

import torch
from torch.nn import functional as F

import read_gpt2

CONFIG = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 258,
    "n_positions": 32, "n_ctx": 32, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 40,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "tie_word_embeddings": True,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "torch_dtype": "float32",
}
DEFAULT_OUTPUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "huggingface",
                              "testdata", "tiny_gpt2")


def logits(config, weights, tokens):
    """Returns FP64 logits [len(tokens), symbols]. Linear layers are x @ W + b, W [in, out]."""
    def w(name):
        return weights["transformer." + name].double()

    def norm(x, name):
        return F.layer_norm(x, (x.shape[-1],), w(name + ".weight"), w(name + ".bias"),
                            config["layer_norm_epsilon"])

    def linear(x, name):
        return x @ w(name + ".weight") + w(name + ".bias")

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    time, heads = len(tokens), config["n_head"]
    future = torch.triu(torch.ones(time, time, dtype=torch.bool), diagonal=1)
    x = w("wte.weight")[tokens] + w("wpe.weight")[:time]
    for layer in range(config["n_layer"]):
        h = f"h.{layer}."
        qkv = linear(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, dim=-1)
        q, k, v = (part.view(time, heads, -1).transpose(0, 1) for part in qkv)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        mixed = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        x = x + linear(mixed.transpose(0, 1).reshape(time, -1), h + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc")), h + "mlp.c_proj")
    head = weights.get("lm_head.weight", weights["transformer.wte.weight"]).double()
    return norm(x, "ln_f") @ head.t()


def as_torch(tensors):
    return {name: torch.frombuffer(bytearray(t.data), dtype=torch.float32).reshape(t.shape)
            for name, t in tensors.items()}


def random_weights():
    """Wide weights: with the usual small ones attention is nearly uniform and hides mistakes."""
    width, inner = CONFIG["n_embd"], CONFIG["n_inner"]
    shapes = {"wte.weight": [CONFIG["vocab_size"], width], "wpe.weight": [CONFIG["n_positions"], width],
              "ln_f.weight": [width], "ln_f.bias": [width]}
    for layer in range(CONFIG["n_layer"]):
        for name, shape in (("ln_1", [width]), ("attn.c_attn", [width, 3 * width]),
                            ("attn.c_proj", [width, width]), ("ln_2", [width]),
                            ("mlp.c_fc", [width, inner]), ("mlp.c_proj", [inner, width])):
            shapes[f"h.{layer}.{name}.weight"] = shape
            shapes[f"h.{layer}.{name}.bias"] = shape[-1:]
    torch.manual_seed(1)
    weights = {}
    for name, shape in sorted(shapes.items()):
        mean = 1.0 if ".ln_" in "." + name and name.endswith("weight") else 0.0
        std = 1 / math.sqrt(width) if len(shape) == 2 else 0.2
        weights["transformer." + name] = torch.randn(shape) * std + mean
    return weights


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--logits":
        config, tensors = read_gpt2.read(sys.argv[2])
        row = logits(config, as_torch(tensors), [int(token) for token in sys.argv[3:]])[-1]
        print(" ".join(f"{value:.6f}" for value in row.tolist()))
        return
    folder = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_OUTPUT
    os.makedirs(folder, exist_ok=True)
    weights = random_weights()
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(CONFIG, indent=2) + "\n")
    read_gpt2.write(os.path.join(folder, "model.safetensors"),
                    {name: (list(w.shape), w.numpy().tobytes()) for name, w in weights.items()})
    tokens = torch.randint(CONFIG["vocab_size"], (CONFIG["n_positions"],)).tolist()
    rows = logits(CONFIG, weights, tokens)
    picked = [0, 1, 15, 31]
    with open(os.path.join(folder, "logits.json"), "w", encoding="utf-8") as file:
        json.dump({"tokens": tokens,
                   "logits": {str(i): [round(v, 6) for v in rows[i].tolist()] for i in picked}}, file)
        file.write("\n")
    print(f"{sum(w.numel() for w in weights.values())} parameters, logits up to "
          f"{rows.abs().max().item():.2f}")


if __name__ == "__main__":
    main()
