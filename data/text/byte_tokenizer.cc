// SPDX-License-Identifier: Apache-2.0
// BYTE: token = byte, 256 symbols. Encodes any text; nothing to train.

#include "absl/strings/str_cat.h"
#include "data/text/tokenizer.h"

namespace tug {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  uint32_t symbols() const override { return 256; }

  using Tokenizer::Encode;
  absl::Status Encode(std::string_view text, uint64_t /*offset_bytes*/,
                      std::vector<int32_t>& tokens) const override {
    tokens.reserve(tokens.size() + text.size());
    for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
    return absl::OkStatus();
  }

  size_t Cut(std::string_view text) const override { return text.size(); }

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (const int32_t token : tokens) {
      if (token < 0 || token > 255) {
        return absl::InvalidArgumentError(absl::StrCat("token ", token, " is not in 0..255"));
      }
      text.push_back(static_cast<char>(token));
    }
    return text;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeByteTokenizer(const DataConfig& /*config*/) {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace tug
