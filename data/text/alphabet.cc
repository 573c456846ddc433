// SPDX-License-Identifier: Apache-2.0
#include "data/text/alphabet.h"

#include "absl/strings/str_format.h"
#include "data/text/utf8.h"

namespace tug {

AlphabetCollector::AlphabetCollector() : seen_(kMaxCodePoint + 1) {}

absl::Status AlphabetCollector::Add(std::string_view text, uint64_t offset_bytes) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text.substr(i));
    if (point.state != CodePoint::State::kValid) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "byte 0x%02X at offset %d is not UTF-8: convert the text, or set data.tokenizer to BYTE",
          static_cast<uint8_t>(text[i]), offset_bytes + i));
    }
    seen_[point.value] = true;
    i += point.size_bytes;
  }
  return absl::OkStatus();
}

std::string AlphabetCollector::Utf8() const {
  std::string text;
  for (size_t c = 0; c < seen_.size(); ++c) {
    if (seen_[c]) AppendUtf8(static_cast<char32_t>(c), text);
  }
  return text;
}

}  // namespace tug
