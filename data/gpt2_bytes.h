#ifndef TUG_DATA_GPT2_BYTES_H_
#define TUG_DATA_GPT2_BYTES_H_

// How the files of a GPT-2 tokenizer write tokens: a printable character for each byte
// (openai/gpt-2, src/encoder.py: bytes_to_unicode). Thread-safe.

#include <optional>
#include <string>
#include <string_view>

namespace tug {

// " a" -> "Ġa"
std::string Gpt2Printable(std::string_view bytes);

// Back; empty if a character stands for no byte.
std::optional<std::string> Gpt2BytesOf(std::string_view printable);

}  // namespace tug

#endif  // TUG_DATA_GPT2_BYTES_H_
