// SPDX-License-Identifier: Apache-2.0
#include "data/text/utf8.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tug {
namespace {

// Properties of a code point's first byte: length of the code point, value bits of the first byte,
// and bounds of the second byte (which exclude overlong forms, surrogates and values above
// U+10FFFF).
struct Lead {
  size_t size_bytes;  // 0 = no code point begins with this byte
  uint8_t mask;
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0x7F, 0, 0};
  if (byte < 0xC2) return {0, 0, 0, 0};
  if (byte < 0xE0) return {2, 0x1F, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0x0F, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x0F, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x0F, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x07, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x07, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x07, 0x80, 0x8F};
  return {0, 0, 0, 0};
}

}  // namespace

CodePoint DecodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = LeadOf(byte(0));
  if (lead.size_bytes == 0) return {CodePoint::State::kInvalid, 0, 0};
  char32_t value = byte(0) & lead.mask;
  for (size_t i = 1; i < lead.size_bytes; ++i) {
    if (i >= text.size()) return {CodePoint::State::kIncomplete, 0, 0};
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {CodePoint::State::kInvalid, 0, 0};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  return {CodePoint::State::kValid, value, lead.size_bytes};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = DecodeUtf8(text);
    if (point.state != CodePoint::State::kValid) return false;
    text.remove_prefix(point.size_bytes);
  }
  return true;
}

size_t CharacterBytes(std::string_view text) {
  const CodePoint point = DecodeUtf8(text);
  return point.state == CodePoint::State::kValid ? point.size_bytes : 1;
}

void AppendUtf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t WholeCodePoints(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const size_t begin = text.size() - back;
    if (DecodeUtf8(text.substr(begin)).state == CodePoint::State::kIncomplete) return begin;
  }
  return text.size();
}

std::string NameOfCodePoint(char32_t code_point) {
  std::string name = absl::StrFormat("U+%04X", static_cast<uint32_t>(code_point));
  if (code_point > 0x20 && code_point != 0x7F && (code_point < 0x80 || code_point > 0x9F)) {
    name += " (";
    AppendUtf8(code_point, name);
    name += ")";
  }
  return name;
}

}  // namespace tug
