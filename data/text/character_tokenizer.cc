// SPDX-License-Identifier: Apache-2.0
// CHARACTER: token = index of the code point in the alphabet, which is in code point order.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

constexpr char32_t kDirect = 0x800;  // below: a table; above: binary search

class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::vector<char32_t> alphabet)
      : alphabet_(std::move(alphabet)), direct_(kDirect, -1) {
    for (size_t i = 0; i < alphabet_.size() && alphabet_[i] < kDirect; ++i) {
      direct_[alphabet_[i]] = static_cast<int32_t>(i);
    }
  }

  uint32_t symbols() const override { return static_cast<uint32_t>(alphabet_.size()); }

  using Tokenizer::Encode;
  absl::Status Encode(std::string_view text, uint64_t offset_bytes,
                      std::vector<int32_t>& tokens) const override {
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = DecodeUtf8(text.substr(i));
      if (point.state != CodePoint::State::kValid) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "byte 0x%02X at offset %d is not UTF-8: convert the text, or train with data.tokenizer "
            "BYTE",
            static_cast<uint8_t>(text[i]), offset_bytes + i));
      }
      const int32_t token = Find(point.value);
      if (token < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "character ", NameOfCodePoint(point.value), " at offset ", offset_bytes + i,
            " is not in the alphabet of ", alphabet_.size(),
            " characters of the training text: remove it, or train with data.tokenizer BYTE"));
      }
      tokens.push_back(token);
      i += point.size_bytes;
    }
    return absl::OkStatus();
  }

  size_t Cut(std::string_view text) const override { return WholeCodePoints(text); }

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= symbols()) {
        return absl::InvalidArgumentError(
            absl::StrCat("token ", token, " is not in 0..", symbols() - 1));
      }
      AppendUtf8(alphabet_[static_cast<size_t>(token)], text);
    }
    return text;
  }

 private:
  int32_t Find(char32_t code_point) const {
    if (code_point < kDirect) return direct_[code_point];
    const auto found = std::lower_bound(alphabet_.begin(), alphabet_.end(), code_point);
    if (found == alphabet_.end() || *found != code_point) return -1;
    return static_cast<int32_t>(found - alphabet_.begin());
  }

  const std::vector<char32_t> alphabet_;  // ascending
  std::vector<int32_t> direct_;           // token by code point, -1 = none
};

}  // namespace

absl::Status ResolveCharacters(const EncodedText& text, DataConfig& config) {
  AlphabetCollector collector;
  RETURN_IF_ERROR(text.for_each_piece(
      WholeCodePoints,
      [&](std::string_view piece, uint64_t offset_bytes) {
        return collector.Add(piece, offset_bytes);
      },
      TextSource::kPieceBytes));
  config.set_resolved_alphabet(collector.Utf8());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeCharacterTokenizer(const DataConfig& config) {
  std::string_view alphabet = config.resolved_alphabet();
  std::vector<char32_t> points;
  while (!alphabet.empty()) {
    const CodePoint point = DecodeUtf8(alphabet);
    if (point.state != CodePoint::State::kValid ||
        (!points.empty() && points.back() >= point.value)) {
      return absl::InvalidArgumentError(
          "data.resolved_alphabet is not UTF-8 in code point order; it is filled in by the "
          "coordinator from the text");
    }
    points.push_back(point.value);
    alphabet.remove_prefix(point.size_bytes);
  }
  if (points.empty()) {
    return absl::InvalidArgumentError(
        "the alphabet of data.tokenizer CHARACTER is empty: the text has not been read yet, or has "
        "no characters");
  }
  return std::make_unique<CharacterTokenizer>(std::move(points));
}

}  // namespace tug
