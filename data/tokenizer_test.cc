// SPDX-License-Identifier: Apache-2.0
#include "data/text/tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "data/line_text.h"
#include "data/text/alphabet.h"
#include "data/text/gpt2_files.h"
#include "data/text/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string AlphabetOf(const std::string& text) {
  AlphabetCollector collector;
  EXPECT_TRUE(collector.Add(text, 0).ok());
  return collector.Utf8();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeCharacters(const std::string& alphabet) {
  DataConfig config;
  config.set_resolved_alphabet(alphabet);
  return MakeCharacterTokenizer(config);
}

std::unique_ptr<Tokenizer> Characters(const std::string& alphabet) {
  auto tokenizer = MakeCharacters(alphabet);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Random code points, mostly white space, quotes and letters, some of them repeated.
std::string RandomText(std::mt19937& random, size_t characters) {
  constexpr std::string_view kFrequent = "  \n\t'' thesvrlmd01. <|endoftext|>";
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    const char32_t limits[] = {0x80, 0x900, 0xD800, kMaxCodePoint};
    const char32_t c = std::max<char32_t>(1, random() % limits[random() % 4]);  // NUL is no text
    switch (random() % 4) {
      case 0:
        AppendUtf8(c >= 0xD800 && c <= 0xDFFF ? U'x' : c, text);
        break;
      case 1:
        text += kGpt2EndOfText.substr(0, random() % (kGpt2EndOfText.size() + 1));
        break;
      default:
        text += kFrequent[random() % kFrequent.size()];
    }
  }
  return text;
}

// A text file, deleted by the destructor.
class TextFile {
 public:
  explicit TextFile(const std::string& text) : path_(testing::TempDir() + "/tokenizer_test.txt") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() { std::remove(path_.c_str()); }
  TextSource Open() const {
    auto source = TextSource::Open(path_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

 private:
  std::string path_;
};

// Tokenizer of a kind, resolved for some text.
std::unique_ptr<Tokenizer> MakeFor(const TokenizerKind& kind, const std::string& text) {
  DataConfig config;
  config.set_tokenizer(kind.kind);
  config.set_pieces(400);
  if (kind.kind == DataConfig::GPT2_BPE) config.set_tokenizer_path("data/testdata/gpt2");
  if (kind.resolve != nullptr) {
    const TextFile file(text);
    const TextSource source = file.Open();
    const absl::Status resolved = kind.resolve(EncodedTextOf(source, TextForm::kRunning), config);
    EXPECT_TRUE(resolved.ok()) << resolved;
  }
  auto tokenizer = kind.make(config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(Tokenizers, HaveARowPerCaseOfTheProto) {
  const auto& type = *DataConfig::Tokenizer_descriptor();
  for (int i = 0; i < type.value_count(); ++i) {
    const auto kind = static_cast<DataConfig::Tokenizer>(type.value(i)->number());
    EXPECT_EQ(FindTokenizerKind(kind).ok(), kind != DataConfig::TOKENIZER_DEFAULT)
        << type.value(i)->name();
  }
  EXPECT_EQ(Tokenizers().size() + 1, static_cast<size_t>(type.value_count()));
}

// Conformance: every tokenizer reproduces its input and refuses unknown tokens.
TEST(Tokenizers, RoundTripRandomText) {
  const uint32_t seed = 7;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const TokenizerKind& row : Tokenizers()) {
    for (int i = 0; i < 100; ++i) {
      std::string text = RandomText(random, 1 + random() % 300);
      text += "\xE2\x96\x81 \xE2\x96\x81";  // SentencePiece's mark for a space
      const auto tokenizer = MakeFor(row, text);
      const auto tokens = tokenizer->Encode(text);
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      const auto again = tokenizer->Decode(*tokens);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_EQ(*again, text);
      const int32_t beyond[] = {static_cast<int32_t>(tokenizer->symbols())};
      const int32_t below[] = {-1};
      EXPECT_FALSE(tokenizer->Decode(beyond).ok());
      EXPECT_FALSE(tokenizer->Decode(below).ok());
      for (const int32_t token : *tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(static_cast<uint32_t>(token), tokenizer->symbols());
      }
    }
  }
}

TEST(Tokenizers, TokensDoNotDependOnThePiecesTextIsReadIn) {
  const uint32_t seed = 13;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const TokenizerKind& row : Tokenizers()) {
    for (int i = 0; i < 30; ++i) {
      std::string text = RandomText(random, 1 + random() % 400);
      // Words longer than kMaxUnitBytes, of one character class and of alternating ones.
      if (i == 0) text += std::string(kMaxUnitBytes + random() % 99, 'a') + "' \u00e9";
      if (i == 1) text.insert(0, std::string(kMaxUnitBytes + random() % 99, ' ') + "\u00e9");
      for (int n = 0; i == 2 && n < 50000; ++n) text += n % 3 == 0 ? "'s" : "\u6f22";
      const auto tokenizer = MakeFor(row, text);
      const auto whole = tokenizer->Encode(text);
      ASSERT_TRUE(whole.ok()) << whole.status();
      const TextFile file(text);
      for (const size_t piece_bytes : {1, 7, 64, 1000, 70000}) {
        if (text.size() > 10000 && piece_bytes < 1000) continue;  // slow
        std::vector<int32_t> tokens;
        const absl::Status read =
            file.Open().ForEachPiece([&](std::string_view piece) { return tokenizer->Cut(piece); },
                                     [&](std::string_view piece, uint64_t offset_bytes) {
                                       EXPECT_EQ(text.substr(offset_bytes, piece.size()), piece);
                                       return tokenizer->Encode(piece, offset_bytes, tokens);
                                     },
                                     piece_bytes);
        ASSERT_TRUE(read.ok()) << read;
        ASSERT_TRUE(tokens == *whole)
            << DataConfig::Tokenizer_Name(row.kind) << ", " << i << ", pieces of " << piece_bytes;
      }
    }
  }
}

TEST(Tokenizers, CutAnyTextThatIsLongEnough) {
  for (const TokenizerKind& row : Tokenizers()) {
    for (const std::string unit : {"a", " ", "'", "1", "\xFF", "\u6f22", "\n", "<|endoftext|>"}) {
      if (unit == "\xFF" && row.kind == DataConfig::CHARACTER) continue;
      std::string text;
      while (text.size() <= kMaxUnitBytes + 64) text += unit;
      EXPECT_GT(MakeFor(row, text)->Cut(text), 0u)
          << DataConfig::Tokenizer_Name(row.kind) << " " << unit;
    }
  }
}

TEST(Tokenizers, RefuseAConfigurationThatIsNotResolved) {
  for (const TokenizerKind& row : Tokenizers()) {
    DataConfig config;
    config.set_tokenizer(row.kind);
    EXPECT_EQ(row.make(config).ok(), row.resolve == nullptr);
    config.set_resolved_tokenizer("no such thing");
    EXPECT_EQ(row.make(config).ok(), row.resolve == nullptr);
  }
}

TEST(ByteTokenizer, TakesAnyBytes) {
  auto tokenizer = MakeByteTokenizer(DataConfig());
  ASSERT_TRUE(tokenizer.ok());
  const auto tokens = (*tokenizer)->Encode(std::string_view("a\xFF\0", 3));
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(*tokens, ElementsAre('a', 255, 0));
}

TEST(CharacterTokenizer, NumbersCodePointsInOrder) {
  const std::string alphabet = AlphabetOf("banané😀\n");
  EXPECT_EQ(alphabet, "\nabné😀");
  const auto tokens = Characters(alphabet)->Encode("é😀ab\n");
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(*tokens, ElementsAre(4, 5, 1, 2, 0));
}

TEST(CharacterTokenizer, NamesWhatHasNoToken) {
  const auto tokenizer = Characters("abc");
  EXPECT_THAT(std::string(tokenizer->Encode("abé").status().message()),
              testing::AllOf(HasSubstr("U+00E9 (é) at offset 2"), HasSubstr("BYTE")));
  EXPECT_THAT(std::string(tokenizer->Encode("漢").status().message()), HasSubstr("U+6F22"));
  EXPECT_THAT(std::string(tokenizer->Encode("ab\xFF").status().message()),
              testing::AllOf(HasSubstr("0xFF at offset 2"), HasSubstr("BYTE")));
}

TEST(CharacterTokenizer, RefusesABadAlphabet) {
  EXPECT_FALSE(MakeCharacters("").ok());
  EXPECT_FALSE(MakeCharacters("ba").ok());
  EXPECT_FALSE(MakeCharacters("aa").ok());
  EXPECT_FALSE(MakeCharacters("a\xC3").ok());
}

TEST(Alphabet, NamesByteAndOffsetThatIsNotUtf8) {
  AlphabetCollector collector;
  ASSERT_TRUE(collector.Add("abc", 0).ok());
  EXPECT_THAT(
      std::string(collector.Add("d\xC3(", 3).message()),
      testing::AllOf(HasSubstr("0xC3 at offset 4"), HasSubstr("set data.tokenizer to BYTE")));
}

}  // namespace
}  // namespace tug
