// SPDX-License-Identifier: Apache-2.0
#include "cli/token_text.h"

#include <random>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/text/utf8.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

// Token t stands for the bytes pieces[t].
class PieceTokenizer : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  uint32_t symbols() const override { return static_cast<uint32_t>(pieces_.size()); }
  absl::Status Encode(std::string_view /*text*/, uint64_t /*offset_bytes*/,
                      std::vector<int32_t>& /*tokens*/) const override {
    return absl::UnimplementedError("not needed");
  }
  size_t Cut(std::string_view /*text*/) const override { return 0; }
  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || token >= static_cast<int32_t>(symbols())) {
        return absl::InvalidArgumentError(absl::StrCat("token ", token));
      }
      text += pieces_[token];
    }
    return text;
  }

 private:
  const std::vector<std::string> pieces_;
};

// Like SentencePiece: the first word of a text has no leading space, and bytes that are not a
// complete code point are replaced.
class WordTokenizer : public PieceTokenizer {
 public:
  using PieceTokenizer::PieceTokenizer;

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    const absl::StatusOr<std::string> text = PieceTokenizer::Decode(tokens);
    if (!text.ok()) return text;
    std::string_view left = *text;
    if (left.starts_with(' ')) left.remove_prefix(1);
    std::string decoded;
    while (!left.empty()) {
      const CodePoint c = DecodeUtf8(left);
      const bool valid = c.state == CodePoint::State::kValid;
      AppendUtf8(valid ? c.value : 0xFFFD, decoded);
      left.remove_prefix(valid ? c.size_bytes : 1);
    }
    return decoded;
  }
};

std::vector<std::string> AllBytes() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  return pieces;
}

// Add's results for each byte of `text`, joined by '|'.
std::string Shown(std::string_view text, bool finish = true) {
  const PieceTokenizer tokenizer(AllBytes());
  TokenText shown(tokenizer);
  std::string joined;
  for (const char byte : text) {
    absl::StrAppend(&joined, *shown.Add(static_cast<uint8_t>(byte)), "|");
  }
  if (finish) joined += shown.Finish();
  return joined;
}

TEST(TokenText, HoldsBytesBackUntilTheirCodePointIsWhole) {
  EXPECT_EQ(Shown("aé€😀b"), "a||é|||€||||😀|b|");
}

TEST(TokenText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(Shown("a\xFF"
                  "b"),
            "a|\xEF\xBF\xBD|b|");
  EXPECT_EQ(Shown("\xC3"
                  "b"),
            "|\xEF\xBF\xBD"
            "b|");
  EXPECT_EQ(Shown("a\xE2\x82"), "a|||\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TokenText, RandomBytesBecomeUtf8WithoutLoss) {
  const PieceTokenizer tokenizer(AllBytes());
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    TokenText shown(tokenizer);
    std::string bytes, text;
    for (int i = 0; i < 500; ++i) {
      if (random() % 2 == 0) AppendUtf8(0x20 + random() % 0xD000, bytes);
      if (random() % 9 == 0) bytes.push_back(static_cast<char>(random() % 256));
    }
    for (const char byte : bytes) {
      const std::string piece = *shown.Add(static_cast<uint8_t>(byte));
      EXPECT_TRUE(IsUtf8(piece));
      text += piece;
    }
    text += shown.Finish();
    // The valid code points of `bytes`, in order.
    std::string expected;
    for (std::string_view left = bytes; !left.empty();) {
      const CodePoint c = DecodeUtf8(left);
      const bool valid = c.state == CodePoint::State::kValid;
      AppendUtf8(valid ? c.value : 0xFFFD, expected);
      left.remove_prefix(valid ? c.size_bytes : 1);
    }
    EXPECT_EQ(text, expected) << "seed " << seed;
  }
}

TEST(TokenText, KeepsTheSpacesBetweenWords) {
  const WordTokenizer tokenizer({" And", " he", " said", "ly"});
  TokenText shown(tokenizer);
  ASSERT_TRUE(shown.Begin(std::vector<int32_t>{0}).ok());
  std::string text = "And";
  for (int i = 0; i < 50; ++i) {
    for (const int32_t token : {1, 2, 3}) text += *shown.Add(token);
  }
  std::string expected = "And";
  for (int i = 0; i < 50; ++i) expected += " he saidly";
  EXPECT_EQ(text, expected);
}

TEST(TokenText, WaitsWhereTheTokenizerReplacesBytesItself) {
  const WordTokenizer tokenizer(AllBytes());
  TokenText shown(tokenizer);
  std::string joined;
  for (const char byte : std::string_view("a😀b")) {
    absl::StrAppend(&joined, *shown.Add(static_cast<uint8_t>(byte)), "|");
  }
  EXPECT_EQ(joined, "a||||😀|b|");
}

TEST(TokenText, NamesATokenThatTheTokenizerDoesNotKnow) {
  const PieceTokenizer tokenizer({"a"});
  TokenText shown(tokenizer);
  EXPECT_FALSE(shown.Add(1).ok());
}

}  // namespace
}  // namespace tug
