#!/usr/bin/env python3
"""Reads a Hugging Face GPT-2 folder with Python's standard library only, and checks it:
model.safetensors must be valid, and have the tensors that config.json requires, with the names,
shapes and types of transformers' GPT2LMHeadModel.

  deploy/compare/read_gpt2.py DIR           checks DIR, prints a summary
  deploy/compare/read_gpt2.py DIR OTHER     also checks that OTHER has the same tensors, bit for bit
"""

import collections
import json
import os
import struct
import sys

Tensor = collections.namedtuple("Tensor", "dtype shape data")


def check(holds, what):
    if not holds:
        sys.exit(f"read_gpt2: {what}")


def read_safetensors(path):
    """Returns name -> Tensor, and the metadata."""
    with open(path, "rb") as file:
        raw = file.read()
    check(len(raw) >= 8, f"{path} is too short")
    (length,) = struct.unpack("<Q", raw[:8])
    check(length <= len(raw) - 8 and raw[8:9] == b"{", f"{path} has no header")
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", {})
    data, tensors, end = raw[8 + length:], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        check(begin == end, f"{path}: {name} begins at {begin}, not at {end}")
        tensors[name] = Tensor(entry["dtype"], entry["shape"], data[begin:stop])
        end = stop
    check(end == len(data), f"{path} has {len(data) - end} bytes behind its tensors")
    return tensors, metadata


def write(path, tensors):
    """tensors: name -> (shape, FP32 bytes)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            file.write(data)


def expected_shapes(config):
    width, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    shapes = {"transformer.wte.weight": [config["vocab_size"], width],
              "transformer.wpe.weight": [config["n_positions"], width],
              "transformer.ln_f.weight": [width], "transformer.ln_f.bias": [width]}
    for layer in range(config["n_layer"]):
        for name, shape in (("ln_1", [width]), ("ln_2", [width]),
                            ("attn.c_attn", [width, 3 * width]), ("attn.c_proj", [width, width]),
                            ("mlp.c_fc", [width, inner]), ("mlp.c_proj", [inner, width])):
            shapes[f"transformer.h.{layer}.{name}.weight"] = shape
            shapes[f"transformer.h.{layer}.{name}.bias"] = shape[-1:]
    if not config.get("tie_word_embeddings", True):
        shapes["lm_head.weight"] = [config["vocab_size"], width]
    return shapes


def read(folder):
    """Returns config, and name -> Tensor; ends the program if something is wrong."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    check(config["model_type"] == "gpt2", "config.json is not of a GPT-2")
    check(config["architectures"] == ["GPT2LMHeadModel"], "config.json: architectures")
    check(config["n_embd"] % config["n_head"] == 0, "config.json: n_embd and n_head")
    check(config["layer_norm_epsilon"] == 1e-5, "config.json: layer_norm_epsilon")
    tensors, metadata = read_safetensors(os.path.join(folder, "model.safetensors"))
    check(metadata.get("format") == "pt", "model.safetensors has no format in its metadata")
    expected = expected_shapes(config)
    check(set(tensors) == set(expected),
          f"tensors differ in {sorted(set(tensors) ^ set(expected))}")
    for name, tensor in tensors.items():
        check(tensor.dtype == "F32", f"{name} is {tensor.dtype}")
        check(tensor.shape == expected[name], f"{name} is {tensor.shape}, not {expected[name]}")
        count = 1
        for extent in tensor.shape:
            count *= extent
        check(len(tensor.data) == 4 * count, f"{name} has {len(tensor.data)} bytes")
    return config, tensors


def check_tokenizer(folder, config):
    vocab_path = os.path.join(folder, "vocab.json")
    if not os.path.exists(vocab_path):
        return "no GPT-2 tokenizer"
    with open(vocab_path, encoding="utf-8") as file:
        vocab = json.load(file)
    check(len(set(vocab.values())) == len(vocab), "vocab.json has a number twice")
    check(max(vocab.values()) < config["vocab_size"], "vocab.json has more tokens than the model")
    with open(os.path.join(folder, "merges.txt"), encoding="utf-8") as file:
        merges = [line.split(" ") for line in file.read().split("\n")[1:-1]]
    for pair in merges:
        check(len(pair) == 2 and "".join(pair) in vocab, f"merges.txt: {pair}")
    return f"{len(vocab)} tokens, {len(merges)} merges"


def main():
    check(len(sys.argv) in (2, 3), __doc__)
    config, tensors = read(sys.argv[1])
    print(f"{sys.argv[1]}: GPT-2, {len(tensors)} tensors, {check_tokenizer(sys.argv[1], config)}")
    if len(sys.argv) == 3:
        _, others = read(sys.argv[2])
        check(set(tensors) == set(others), "the two have other tensors")
        for name, tensor in tensors.items():
            check(tensor == others[name], f"{name} is not the same in both")
        print("byte for byte the same tensors")


if __name__ == "__main__":
    main()
