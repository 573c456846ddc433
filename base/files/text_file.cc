// SPDX-License-Identifier: Apache-2.0
#include "base/files/text_file.h"

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

// Encodings under their iconv names, by byte order mark. UTF-32 comes first: its little-endian mark
// begins with that of UTF-16.
struct MarkedEncoding {
  std::string_view mark;
  const char* name;
};
constexpr MarkedEncoding kMarkedEncodings[] = {{std::string_view("\xFF\xFE\0\0", 4), "UTF-32"},
                                               {std::string_view("\0\0\xFE\xFF", 4), "UTF-32"},
                                               {"\xFF\xFE", "UTF-16"},
                                               {"\xFE\xFF", "UTF-16"}};

// Whether `front` has at least two 4-byte characters, all code points other than NUL. UTF-8 text
// never does: it has no zero bytes, and the first byte of a UTF-32 code point is 0.
bool IsUtf32(std::string_view front, bool big_endian) {
  constexpr size_t kWidth = 4;
  constexpr uint32_t kLastCodePoint = 0x10FFFF;
  if (front.size() < 2 * kWidth) return false;
  for (size_t at = 0; at + kWidth <= front.size(); at += kWidth) {
    uint32_t point = 0;
    for (size_t i = 0; i < kWidth; ++i) {
      point = point << 8 | static_cast<uint8_t>(front[at + (big_endian ? i : kWidth - 1 - i)]);
    }
    if (point == 0 || point > kLastCodePoint) return false;
  }
  return true;
}

// Detects UTF-16 without a mark in Latin letters: at least half of its characters are below U+0100,
// so their high byte is zero, and no low byte is. UTF-8 text has no zero bytes.
const char* Utf16OfLatinLetters(std::string_view front) {
  size_t zeros[2] = {};  // at even and odd offsets
  for (size_t i = 0; i < front.size(); ++i) zeros[i % 2] += front[i] == '\0' ? 1 : 0;
  const size_t half = front.size() / 4;
  if (half == 0) return nullptr;
  if (zeros[0] >= half && zeros[1] == 0) return "UTF-16BE";
  return zeros[1] >= half && zeros[0] == 0 ? "UTF-16LE" : nullptr;
}

// Null: no wide encoding detected.
const char* WideEncodingOf(std::string_view front) {
  for (const MarkedEncoding& encoding : kMarkedEncodings) {
    if (front.starts_with(encoding.mark)) return encoding.name;
  }
  if (IsUtf32(front, /*big_endian=*/false)) return "UTF-32LE";
  if (IsUtf32(front, /*big_endian=*/true)) return "UTF-32BE";
  return Utf16OfLatinLetters(front);
}

}  // namespace

absl::StatusOr<size_t> TextStart(std::string_view front, const std::string& path) {
  if (const char* encoding = WideEncodingOf(front)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", encoding, ", but text must be UTF-8: convert it with `iconv -f ",
                     encoding, " -t UTF-8`, or save it as UTF-8"));
  }
  return front.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, limit_bytes));
  ASSIGN_OR_RETURN(const size_t start,
                   TextStart(std::string_view(text).substr(0, kTextFrontBytes), path));
  text.erase(0, start);
  return text;
}

bool IsHiddenOrEditorFile(std::string_view name) {
  return name.starts_with('.') || name.ends_with('~') || name.ends_with(".swp") ||
         (name.size() > 1 && name.starts_with('#') && name.ends_with('#'));
}

}  // namespace tug
