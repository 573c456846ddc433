#!/usr/bin/env python3
"""Writes data/testdata/sentencepiece/: bpe.model, unigram.model and golden.json, the reference for
tests of data/text/sentencepiece_tokenizer.cc. The original programs train the models and encode the
texts (Debian package `sentencepiece`: spm_train, spm_encode).

  deploy/compare/make_sentencepiece_fixture.py [TEXT [FOLDER]]
  deploy/compare/make_sentencepiece_fixture.py --encode MODEL < LINES    tokens of any model

Tokens in the repository come from version 0.2.3: Debian's 0.1.97 compares scores in FP64, and
chooses the other of two nearly equal segmentations in one text.

golden.json: a list of {"model": ..., "text": ..., "tokens": [...]}.
"""

import json
import os
import random
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def train(text, folder, kind, pieces):
    subprocess.run([
        "spm_train", f"--input={os.path.relpath(text, ROOT)}",
        f"--model_prefix={os.path.relpath(os.path.join(folder, kind), ROOT)}",
        f"--model_type={kind}", f"--vocab_size={pieces}", "--normalization_rule_name=identity",
        "--byte_fallback=true", "--add_dummy_prefix=false", "--remove_extra_whitespaces=false",
        "--user_defined_symbols=<sep>,gradient", "--num_threads=1", "--minloglevel=2",
        "--character_coverage=0.999"
    ], check=True, cwd=ROOT)
    os.remove(os.path.join(folder, kind + ".vocab"))


def encode(model, lines):
    out = subprocess.run(["spm_encode", f"--model={model}", "--output_format=id"], check=True,
                         input="".join(line + "\n" for line in lines).encode(),
                         stdout=subprocess.PIPE).stdout.decode()
    return [[int(token) for token in line.split()] for line in out.split("\n")[:-1]]


def texts(source):
    yield "Hello world! The servers keep weights; the workers push gradients."
    yield "  two  spaces   and three at the end   "
    yield "naïve Ünïcödé Ελληνικά 漢字かな 한국어 😀 ½ é"
    yield "a<sep>b <sep>c gradient gradients agradientb <se p>"
    yield "tabs\tand\u00a0others\u3000here"
    yield from (line for line in source.split("\n")[:40] if line)
    rng = random.Random(1)
    symbols = list("abcdest rn  .,0é漢") + [" the", "ing", "er", "<sep>", "gradient"]
    for _ in range(60):
        yield "".join(rng.choice(symbols) for _ in range(rng.randrange(1, 40)))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--encode":
        for tokens in encode(sys.argv[2], [line.rstrip("\n") for line in sys.stdin]):
            print(*tokens)
        return
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "architecture.md")
    folder = (sys.argv[2] if len(sys.argv) > 2 else
              os.path.join(ROOT, "data", "testdata", "sentencepiece"))
    with open(path, encoding="utf-8") as file:
        source = file.read()
    os.makedirs(folder, exist_ok=True)
    rows = []
    for kind in ("bpe", "unigram"):
        train(path, folder, kind, 600)
        lines = list(texts(source))
        for line, tokens in zip(lines, encode(os.path.join(folder, kind + ".model"), lines)):
            rows.append(json.dumps({"model": kind, "text": line, "tokens": tokens}))
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} texts")


if __name__ == "__main__":
    main()
