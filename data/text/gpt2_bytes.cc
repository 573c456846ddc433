// SPDX-License-Identifier: Apache-2.0
#include "data/text/gpt2_bytes.h"

#include <array>
#include <cstdint>

#include "data/text/utf8.h"

namespace tug {
namespace {

constexpr size_t kByteValues = 256;

// Printable character of each byte: the byte itself if printable in Latin-1, else the next one from
// U+0100 on.
std::array<char32_t, kByteValues> CharacterOfByte() {
  std::array<char32_t, kByteValues> characters;
  char32_t next = 0x100;
  for (char32_t b = 0; b < kByteValues; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    characters[b] = printable ? b : next++;
  }
  return characters;
}

}  // namespace

std::string Gpt2Printable(std::string_view bytes) {
  static const std::array<char32_t, kByteValues> kCharacters = CharacterOfByte();
  std::string text;
  for (const char c : bytes) AppendUtf8(kCharacters[static_cast<uint8_t>(c)], text);
  return text;
}

std::optional<std::string> Gpt2BytesOf(std::string_view printable) {
  static const auto kByteOf = [] {
    std::array<int, 0x200> bytes;
    bytes.fill(-1);
    const auto characters = CharacterOfByte();
    for (size_t b = 0; b < kByteValues; ++b) bytes[characters[b]] = static_cast<int>(b);
    return bytes;
  }();
  std::string bytes;
  while (!printable.empty()) {
    const CodePoint point = DecodeUtf8(printable);
    if (point.state != CodePoint::State::kValid || point.value >= kByteOf.size() ||
        kByteOf[point.value] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kByteOf[point.value]));
    printable.remove_prefix(point.size_bytes);
  }
  return bytes;
}

}  // namespace tug
