#!/usr/bin/env python3
"""Writes data/testdata/gpt2/: vocab.json, merges.txt and golden.json, the reference for tests of
data/text/gpt2_bpe_tokenizer.cc.

Trains a small GPT-2 vocabulary on docs/architecture.md, then encodes texts by the plain algorithm
of openai/gpt-2 (src/encoder.py): its pattern, its byte table, its loop over the lowest rank. Shares no
code with the tokenizer that it checks. Needs the module `regex`, for \\p{L}.

  deploy/compare/make_bpe_fixture.py [TEXT [FOLDER]]

golden.json: a list of {"text": ..., "tokens": [...]}; "\\u0000"-free text, "<|endoftext|>" is a token.
"""

import collections
import json
import os
import random
import sys

import regex

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MERGES = 400
END = "<|endoftext|>"
PATTERN = regex.compile(
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")


def bytes_to_unicode():
    keep = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, extra = {b: chr(b) for b in keep}, 0
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


TABLE = bytes_to_unicode()


def printable(word):
    return tuple(TABLE[b] for b in word.encode("utf-8"))


def replace(word, pair):
    out, i = [], 0
    while i < len(word):
        if tuple(word[i:i + 2]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train(text):
    words = collections.Counter(printable(w) for w in PATTERN.findall(text))
    merges = []
    while len(merges) < MERGES:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        merged = collections.Counter()
        for word, count in words.items():
            merged[replace(word, best)] += count
        words = merged
    return merges


def encode(text, vocab, ranks):
    tokens = []
    for part in regex.split("(" + regex.escape(END) + ")", text):
        if part == END:
            tokens.append(vocab[END])
            continue
        for match in PATTERN.findall(part):
            word = printable(match)
            while len(word) > 1:
                best = min(zip(word, word[1:]), key=lambda p: ranks.get(p, float("inf")))
                if best not in ranks:
                    break
                word = replace(word, best)
            tokens += [vocab[piece] for piece in word]
    return tokens


def texts(source):
    yield "Hello world! It's what they've said: we'll, I'm, you'd, don't, 'tis 'S 're"
    yield " \t\n  two  spaces   \n\n\nlines\r\n\r\n end \u00a0\u2003 wide\u3000x\u0085y\u2028z   "
    yield "naïve Ünïcödé Ελληνικά русский العربية हिन्दी 漢字かな交じり文 한국어 ไทย"
    yield "1234567 ½ ² Ⅷ ٣٤ 1.5e-3 0xFF a1b2 x² H₂O"
    yield "😀👩‍👩‍👧 ‼️ e\u0301 \u200b\ufeff \u00ad $€£ ~`@#^&*() <|endoftex|> <|endoftext"
    yield END
    yield "one" + END + " two  " + END + END + "\n three<" + END + ">"
    yield "''''s's 's '  's don''t I'lll 'vex 'remain"
    yield "\x00\x01\x1c\x1f\x7f a\x1cb"
    yield "server servers workers the coordinator hands gradients " * 3
    for begin in (0, 4000, 9000):
        yield source[begin:begin + 500]
    rng = random.Random(1)
    symbols = list("abe lt's'rvm d0129 \n\t\u00a0é漢٣½😀.,|<>_") + ["  ", "'ll", "'re", END, " the"]
    for _ in range(150):
        yield "".join(rng.choice(symbols) for _ in range(rng.randrange(1, 40)))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "architecture.md")
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "data", "testdata", "gpt2")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    merges = train(source)
    vocab = {}
    for token in sorted(TABLE.values()) + [a + b for a, b in merges] + [END]:
        vocab.setdefault(token, len(vocab))
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as file:
        json.dump(vocab, file)
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    golden = [{"text": text, "tokens": encode(text, vocab, ranks)} for text in texts(source)]
    with open(os.path.join(folder, "golden.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in golden) + "\n]\n")
    print(f"{len(vocab)} tokens, {len(golden)} texts")


if __name__ == "__main__":
    main()
