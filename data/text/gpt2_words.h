// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_GPT2_WORDS_H_
#define TUG_DATA_TEXT_GPT2_WORDS_H_

// Splits text into words as GPT-2 does; byte pairs are merged only within a word:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Source: openai/gpt-2, src/encoder.py. Bytes that are not UTF-8 count as [^\s\p{L}\p{N}]. Every
// word ends after at most kMaxUnitBytes. Pure functions.

#include <cstddef>
#include <string_view>

#include "data/text/added_tokens.h"

namespace tug {

// Length of the first word of non-empty `text`, at least 1.
size_t Gpt2WordBytes(std::string_view text);

// Implements Tokenizer::Cut: offset in `text` at which a word begins for every continuation of the
// text; 0 = unknown. `added`: tokens matched before words.
size_t Gpt2Cut(std::string_view text, const AddedTokens& added);

}  // namespace tug

#endif  // TUG_DATA_TEXT_GPT2_WORDS_H_
