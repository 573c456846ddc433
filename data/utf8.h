#ifndef TUG_DATA_UTF8_H_
#define TUG_DATA_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tug {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

// One code point at the front of some text.
struct CodePoint {
  enum class State {
    kValid,
    kInvalid,     // no code point begins like this
    kIncomplete,  // could be the beginning of one; more bytes needed
  };
  State state;
  char32_t value;     // if valid
  size_t size_bytes;  // if valid; 1..4
};

// Decodes the first code point of non-empty text by table 3-7 of the Unicode standard: no overlong
// forms, no surrogates, nothing above U+10FFFF. Never reads beyond the text. Thread-safe.
CodePoint DecodeUtf8(std::string_view text);

// Whether all of `text` is code points.
bool IsUtf8(std::string_view text);

// Length of the code point at the front of non-empty text; 1 for a byte that begins none.
size_t CharacterBytes(std::string_view text);

// REQUIRES: a code point, not a surrogate.
void AppendUtf8(char32_t code_point, std::string& out);

// Length of the longest part of `text` that does not end inside a code point. Text that is not
// UTF-8 is cut nowhere.
size_t WholeCodePoints(std::string_view text);

// "U+00E9 (é)" or "U+000A", for messages.
std::string NameOfCodePoint(char32_t code_point);

}  // namespace tug

#endif  // TUG_DATA_UTF8_H_
