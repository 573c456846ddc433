#!/usr/bin/python3
"""Writes model/transformer/testdata, the reference for model/transformer/model_fixture_test.cc.

gpt_fixture.safetensors has four tiny decoders (head tied or not, with or without biases),
stacks_fixture.safetensors encoder classifiers and encoder-decoders of PyTorch's own layers (norms
after or before, ReLU or GELU, with padding): weights, tokens, the sum of losses, every gradient
tensor and a decoder's logits. PyTorch computes them in double precision from the same FP32 weights,
so that any difference is Tugboat's error. Prints PyTorch's own FP32 error, relative to the largest
value of each tensor, for comparison.

  deploy/compare/make_fixture.py [FOLDER]

Tensors of case C: C/weight/NAME, C/gradient/NAME (FP32, in the shapes of model/layout.h), C/tokens,
C/decoder_tokens (I32 [batch, context]), C/lengths (I32 [batch]), C/targets (I32 [batch, context], of
a classifier [batch]; -1 does not count), C/loss_sum (F64 [1]), C/logits (FP32 [batch, context,
symbols]).
"""

import json
import math
import os
import struct
import sys

import torch
from torch.nn import functional as F

import peer_gpt
import peer_stacks

LAYERS, WIDTH, HEADS, CONTEXT, SYMBOLS, BATCH = 2, 16, 2, 8, 11, 3
MLP_WIDTH, CLASSES = 40, 5  # for the models of peer_stacks
DEFAULT_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "model",
                              "testdata")


def stored(name, tensor):
    """Transposes linear layers ([out, in] in PyTorch, [in, out] here), not embeddings and head."""
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


def run_stacks(model, inputs, targets):
    """Returns the sum of losses, and gradients; targets of -1 do not count."""
    model.zero_grad(set_to_none=True)
    logits = model(*inputs)
    loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="sum",
                           ignore_index=-1)
    loss.backward()
    return loss.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


def stacks_case(name, model, names, inputs, targets, tensors):
    """Adds a case to `tensors`. `names`: of the inputs, in order."""
    randomize(model)
    weights = peer_stacks.in_tugs_layout(dict(model.named_parameters()))
    for parameter_name, parameter in weights.items():
        tensors[f"{name}/weight/{parameter_name}"] = parameter.detach().clone()
    single_loss, single = run_stacks(model, inputs, targets)
    loss, exact = run_stacks(model.double(), inputs, targets)
    error = max(((single[n] - g).abs().max() / g.abs().max()).item() for n, g in exact.items())
    loss_error = abs(single_loss.item() / loss.item() - 1)
    print(f"{name}: loss_sum {loss.item():.9f}, error of PyTorch's FP32: loss {loss_error:.1e}, "
          f"gradients {error:.1e}")
    for parameter_name, gradient in peer_stacks.in_tugs_layout(exact).items():
        tensors[f"{name}/gradient/{parameter_name}"] = gradient.float()
    for input_name, value in zip(names, inputs):
        tensors[f"{name}/{input_name}"] = value.int()
    tensors[f"{name}/targets"] = targets.int()
    tensors[f"{name}/loss_sum"] = loss.reshape(1)


def encoder_case(activation, pre_norm, tensors):
    model = peer_stacks.EncoderClassifier(LAYERS, WIDTH, HEADS, MLP_WIDTH, CONTEXT, SYMBOLS, CLASSES,
                                          activation=activation, pre_norm=pre_norm)
    inputs = (torch.randint(SYMBOLS, (BATCH, CONTEXT)), torch.tensor([CONTEXT, 5, 1]))
    name = f"encoder_{'pre' if pre_norm else 'post'}_{activation}"
    stacks_case(name, model, ("tokens", "lengths"), inputs, torch.randint(CLASSES, (BATCH,)), tensors)


def encoder_decoder_case(activation, pre_norm, tied, tensors):
    model = peer_stacks.EncoderDecoder(LAYERS, WIDTH, HEADS, MLP_WIDTH, CONTEXT, SYMBOLS,
                                       activation=activation, pre_norm=pre_norm, tied=tied)
    inputs = (torch.randint(SYMBOLS, (BATCH, CONTEXT)), torch.randint(SYMBOLS, (BATCH, CONTEXT)),
              torch.tensor([3, CONTEXT, 6]))
    targets = torch.randint(SYMBOLS, (BATCH, CONTEXT))
    targets[0, 5:] = -1
    name = (f"encoder_decoder_{'pre' if pre_norm else 'post'}_{activation}_"
            f"{'tied' if tied else 'untied'}")
    stacks_case(name, model, ("tokens", "decoder_tokens", "lengths"), inputs, targets, tensors)


def write_safetensors(path, tensors):
    """Writes the length of the JSON header (8 bytes little-endian), the header, the tensors' bytes."""
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


def write(folder, name, tensors):
    path = os.path.join(folder, name)
    write_safetensors(path, tensors)
    print(f"{os.path.getsize(path)} bytes in {os.path.relpath(path)}")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_FOLDER
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(20)
    tensors = {}
    for tied in (True, False):
        for bias in (True, False):
            name = ("tied" if tied else "untied") + ("_bias" if bias else "_no_bias")
            case(name, tied, bias, tensors)
    write(folder, "gpt_fixture.safetensors", tensors)

    torch.manual_seed(21)
    tensors = {}
    encoder_case("relu", False, tensors)
    encoder_case("gelu", True, tensors)
    encoder_decoder_case("relu", False, True, tensors)
    encoder_decoder_case("gelu", True, False, tensors)
    write(folder, "stacks_fixture.safetensors", tensors)


if __name__ == "__main__":
    main()
