#ifndef TUG_DATA_GPT2_WORDS_H_
#define TUG_DATA_GPT2_WORDS_H_

// How GPT-2 cuts text into words before byte pairs are merged within each:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Source: openai/gpt-2, src/encoder.py. Bytes that are not UTF-8 count as [^\s\p{L}\p{N}], and a
// word ends after kMaxUnitBytes at the latest, whatever follows. Pure functions.

#include <cstddef>
#include <string_view>

#include "data/added_tokens.h"

namespace tug {

// Length of the word that non-empty `text` begins with, at least 1.
size_t Gpt2WordBytes(std::string_view text);

// As Tokenizer::Cut: the beginning of a word in `text` that begins there whatever follows the text;
// 0 = not known. `added`: what is no word but a token wherever it stands.
size_t Gpt2Cut(std::string_view text, const AddedTokens& added);

}  // namespace tug

#endif  // TUG_DATA_GPT2_WORDS_H_
