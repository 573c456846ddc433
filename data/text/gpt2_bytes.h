// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_GPT2_BYTES_H_
#define TUG_DATA_TEXT_GPT2_BYTES_H_

// Printable form of tokens in the files of a GPT-2 tokenizer: one character per byte (openai/gpt-2,
// src/encoder.py: bytes_to_unicode). Thread-safe.

#include <optional>
#include <string>
#include <string_view>

namespace tug {

// " a" -> "Ġa"
std::string Gpt2Printable(std::string_view bytes);

// Inverse of Gpt2Printable; none if a character encodes no byte.
std::optional<std::string> Gpt2BytesOf(std::string_view printable);

}  // namespace tug

#endif  // TUG_DATA_TEXT_GPT2_BYTES_H_
