// SPDX-License-Identifier: Apache-2.0
#include "cli/token_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

// More tokens than any tokenizer looks back.
constexpr size_t kWindow = 8;
// Decoding time is proportional to the window, which is shortened occasionally, not with every
// token.
constexpr size_t kLongestWindow = 4 * kWindow;
constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

std::string WithoutInvalidBytes(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    const bool is_valid = c.state == CodePoint::State::kValid;
    AppendUtf8(is_valid ? c.value : kReplacement, valid);
    text.remove_prefix(is_valid ? c.size_bytes : 1);
  }
  return valid;
}

// End of the text that later tokens cannot change. A tokenizer may itself have written U+FFFD for
// each byte of an incomplete code point.
size_t EndOfComplete(std::string_view text) {
  text = text.substr(0, WholeCodePoints(text));
  for (int i = 0; i < 3 && text.ends_with(kReplacementUtf8); ++i) {
    text.remove_suffix(kReplacementUtf8.size());
  }
  return text.size();
}

}  // namespace

absl::Status TokenText::Begin(std::span<const int32_t> tokens) {
  const auto last = tokens.last(std::min(tokens.size(), kWindow));
  window_.assign(last.begin(), last.end());
  ASSIGN_OR_RETURN(const std::string text, tokenizer_.Decode(window_));
  shown_bytes_ = text.size();
  held_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenText::Add(int32_t token) {
  window_.push_back(token);
  ASSIGN_OR_RETURN(const std::string text, tokenizer_.Decode(window_));
  const size_t begin = std::min(shown_bytes_, text.size());
  const size_t end = std::max(EndOfComplete(text), begin);
  shown_bytes_ = end;
  held_ = text.substr(end);
  if (window_.size() > kLongestWindow) {
    window_.erase(window_.begin(), window_.end() - kWindow);
    ASSIGN_OR_RETURN(const std::string shorter, tokenizer_.Decode(window_));
    shown_bytes_ = shorter.size() - std::min(held_.size(), shorter.size());
  }
  return WithoutInvalidBytes(std::string_view(text).substr(begin, end - begin));
}

std::string TokenText::Finish() {
  shown_bytes_ += held_.size();
  return WithoutInvalidBytes(std::exchange(held_, {}));
}

}  // namespace tug
