#!/usr/bin/python3
"""Writes model/testdata/gpt_fixture.safetensors, which model/gpt_fixture_test.cc compares with.

Four tiny models (head tied or not, biases or none): weights, tokens, the sum of losses, every
gradient tensor and the logits, computed by PyTorch in double precision from the same FP32 weights,
so that all of a difference is ours. PyTorch's own FP32 error, relative to the largest value of each
tensor, is printed for scale.

  deploy/compare/make_fixture.py [OUTPUT]

Tensors of case C: C/weight/NAME, C/gradient/NAME (FP32, in the shapes of model/layout.h), C/tokens
and C/targets (I32 [batch, context]), C/loss_sum (F64 [1]), C/logits (FP32 [batch, context,
symbols]).
"""

import json
import math
import os
import struct
import sys

import torch

import peer_gpt

LAYERS, WIDTH, HEADS, CONTEXT, SYMBOLS, BATCH = 2, 16, 2, 8, 11, 3
DEFAULT_OUTPUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "model",
                              "testdata", "gpt_fixture.safetensors")


def stored(name, tensor):
    """Linear layers are [out, in] in PyTorch and [in, out] here; embeddings and head are equal."""
    is_linear = tensor.dim() == 2 and name.startswith("h.")
    return tensor.detach().t() if is_linear else tensor.detach()


def randomize(model):
    """Wide weights: with the usual small ones attention is nearly uniform and hides mistakes."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, 0.0, 1.0 / math.sqrt(WIDTH))
        else:
            torch.nn.init.normal_(parameter, 0.0 if name.endswith("bias") else 1.0, 0.2)


def run(model, tokens, targets):
    model.zero_grad(set_to_none=True)
    logits = model(tokens)
    loss = peer_gpt.sum_of_losses(logits, targets)
    loss.backward()
    return logits.detach(), loss.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


def case(name, tied, bias, tensors):
    model = peer_gpt.Gpt(LAYERS, WIDTH, HEADS, CONTEXT, SYMBOLS, tied=tied, bias=bias)
    randomize(model)
    tokens = torch.randint(SYMBOLS, (BATCH, CONTEXT))
    targets = torch.randint(SYMBOLS, (BATCH, CONTEXT))
    for parameter_name, parameter in model.named_parameters():
        tensors[f"{name}/weight/{parameter_name}"] = stored(parameter_name, parameter).clone()
    _, single_loss, single = run(model, tokens, targets)
    logits, loss, exact = run(model.double(), tokens, targets)
    error = max(((single[n] - g).abs().max() / g.abs().max()).item() for n, g in exact.items())
    loss_error = abs(single_loss.item() / loss.item() - 1)
    print(f"{name}: loss_sum {loss.item():.9f}, error of PyTorch's FP32: loss {loss_error:.1e}, "
          f"gradients {error:.1e}")
    for parameter_name, gradient in exact.items():
        tensors[f"{name}/gradient/{parameter_name}"] = stored(parameter_name, gradient).float()
    tensors[f"{name}/tokens"] = tokens.int()
    tensors[f"{name}/targets"] = targets.int()
    tensors[f"{name}/loss_sum"] = loss.reshape(1)
    tensors[f"{name}/logits"] = logits.float()


def write_safetensors(path, tensors):
    """8 bytes little-endian: length of the JSON header; the header; the tensors' bytes."""
    kinds = {torch.float32: "F32", torch.float64: "F64", torch.int32: "I32"}
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        chunk = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(chunk)]}
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def main():
    output = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_OUTPUT
    torch.manual_seed(20)
    torch.set_num_threads(1)
    tensors = {}
    for tied in (True, False):
        for bias in (True, False):
            name = ("tied" if tied else "untied") + ("_bias" if bias else "_no_bias")
            case(name, tied, bias, tensors)
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    write_safetensors(output, tensors)
    print(f"{os.path.getsize(output)} bytes in {os.path.relpath(output)}")


if __name__ == "__main__":
    main()
