// SPDX-License-Identifier: Apache-2.0
#include "data/text/gpt2_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "data/text/tokenizer.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

enum class Class { kSpace, kLetter, kNumber, kOther };

// Class of a code point, by Unicode's general category (\p{L}, \p{N}) and its White_Space property
// (\s): the separators and six control characters.
Class ClassOf(char32_t c) {
  if ((c >= U'\t' && c <= U'\r') || c == U'\x85') return Class::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Class::kSpace;
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Class::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Class::kNumber;
    default:
      return Class::kOther;
  }
}

struct Symbol {
  Class kind;
  size_t size_bytes;
};

// First symbol of non-empty text.
Symbol First(std::string_view text) {
  static const auto kAscii = [] {
    std::array<Class, 128> classes;
    for (char32_t c = 0; c < classes.size(); ++c) classes[c] = ClassOf(c);
    return classes;
  }();
  const auto byte = static_cast<uint8_t>(text[0]);
  if (byte < kAscii.size()) return {kAscii[byte], 1};
  const CodePoint point = DecodeUtf8(text);
  if (point.state != CodePoint::State::kValid) return {Class::kOther, 1};
  return {ClassOf(point.value), point.size_bytes};
}

// Length of the longest run of one class at the front of `text`, in whole code points.
size_t Run(std::string_view text, Class kind) {
  size_t size = 0;
  while (size < text.size()) {
    const Symbol symbol = First(text.substr(size));
    if (symbol.kind != kind || size + symbol.size_bytes > kMaxUnitBytes) break;
    size += symbol.size_bytes;
  }
  return size;
}

// Length of the first matching contraction, in the pattern's order; 0 if none.
size_t Contraction(std::string_view text) {
  if (text[0] != '\'') return 0;
  for (const std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

// \s+(?!\S)|\s+ : all leading white space, without its last character if a non-space follows.
size_t Spaces(std::string_view text) {
  const size_t all = Run(text, Class::kSpace);
  const bool more_follows = all < text.size();
  if (!more_follows || First(text.substr(all)).kind == Class::kSpace) return all;
  size_t last = all - 1;
  while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
  return last > 0 ? last : all;
}

// Whether text ends in a code point other than white space; false if its last bytes are no code
// point.
bool EndsInWord(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(4, text.size()); ++back) {
    const CodePoint point = DecodeUtf8(text.substr(text.size() - back));
    if (point.state == CodePoint::State::kValid && point.size_bytes == back) {
      return ClassOf(point.value) != Class::kSpace;
    }
  }
  return false;
}

}  // namespace

size_t Gpt2WordBytes(std::string_view text) {
  if (const size_t size = Contraction(text); size > 0) return size;
  const size_t space = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Class kind = First(text.substr(space)).kind;
  if (kind == Class::kSpace) return Spaces(text);
  return space + Run(text.substr(space), kind);
}

size_t Gpt2Cut(std::string_view text, const AddedTokens& added) {
  // White space after any other character always begins a word: words contain it only at the front.
  for (size_t i = text.size(); i-- > 1;) {
    if ((text[i] == ' ' || text[i] == '\n') && EndsInWord(text.substr(0, i)) &&
        !added.MayReachOver(text, i)) {
      return i;
    }
  }
  // Otherwise go word by word. Fewer than 8 bytes after a word decide it (white space and the next
  // character); max_bytes more rule out an added token that begins among them.
  const size_t settling = 8 + added.max_bytes();
  size_t begin = 0;
  size_t settled = 0;
  const auto pass = [&](size_t size) {
    begin += size;
    if (begin + settling <= text.size()) settled = begin;
  };
  added.Split(
      text,
      [&](std::string_view words) {
        while (!words.empty()) {
          const size_t size = Gpt2WordBytes(words);
          pass(size);
          words.remove_prefix(size);
        }
      },
      [&](int32_t /*token*/, std::string_view token_text) { pass(token_text.size()); });
  return settled;
}

}  // namespace tug
