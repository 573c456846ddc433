#include "data/tokenizer.h"

#include <random>
#include <string>

#include "data/alphabet.h"
#include "data/utf8.h"
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

std::unique_ptr<Tokenizer> Characters(const std::string& alphabet) {
  auto tokenizer = MakeCharacterTokenizer(alphabet);
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

// Conformance: every row gives back the text it was given and refuses tokens it does not have.
TEST(Tokenizers, RoundTripRandomText) {
  const uint32_t seed = 7;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const TokenizerKind& row : Tokenizers()) {
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (uint32_t n = 1 + random() % 300; n > 0; --n) {
        const char32_t limits[] = {0x80, 0x900, 0xD800, kMaxCodePoint};
        const char32_t c = random() % limits[random() % 4];
        AppendUtf8(c >= 0xD800 && c <= 0xDFFF ? U'x' : c, text);
      }
      const auto tokenizer = row.make(AlphabetOf(text));
      ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
      const auto tokens = (*tokenizer)->Encode(text);
      ASSERT_TRUE(tokens.ok()) << tokens.status();
      const auto again = (*tokenizer)->Decode(*tokens);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_EQ(*again, text);
      const int32_t beyond[] = {static_cast<int32_t>((*tokenizer)->symbols())};
      const int32_t below[] = {-1};
      EXPECT_FALSE((*tokenizer)->Decode(beyond).ok());
      EXPECT_FALSE((*tokenizer)->Decode(below).ok());
    }
  }
}

TEST(ByteTokenizer, TakesAnyBytes) {
  auto tokenizer = MakeByteTokenizer("");
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
  EXPECT_FALSE(MakeCharacterTokenizer("").ok());
  EXPECT_FALSE(MakeCharacterTokenizer("ba").ok());
  EXPECT_FALSE(MakeCharacterTokenizer("aa").ok());
  EXPECT_FALSE(MakeCharacterTokenizer("a\xC3").ok());
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
