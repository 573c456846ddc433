// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_UTF8_H_
#define TUG_DATA_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tug {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

// Result of decoding the code point at the front of a text.
struct CodePoint {
  enum class State {
    kValid,
    kInvalid,     // no code point begins with these bytes
    kIncomplete,  // prefix of a code point; more bytes needed
  };
  State state;
  char32_t value;     // if valid
  size_t size_bytes;  // if valid; 1..4
};

// Decodes the first code point of non-empty text by table 3-7 of the Unicode standard: no overlong
// forms, no surrogates, nothing above U+10FFFF. Never reads beyond the text. Thread-safe.
CodePoint DecodeUtf8(std::string_view text);

// Whether all of `text` is valid UTF-8.
bool IsUtf8(std::string_view text);

// Length of the code point at the front of non-empty text; 1 if the byte begins none.
size_t CharacterBytes(std::string_view text);

// REQUIRES: a code point, not a surrogate.
void AppendUtf8(char32_t code_point, std::string& out);

// Length of the longest prefix of `text` that does not end inside a code point. Invalid bytes count
// as complete.
size_t WholeCodePoints(std::string_view text);

// "U+00E9 (é)" or "U+000A", for messages.
std::string NameOfCodePoint(char32_t code_point);

}  // namespace tug

#endif  // TUG_DATA_TEXT_UTF8_H_
