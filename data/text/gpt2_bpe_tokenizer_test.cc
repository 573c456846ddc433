// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/files/file.h"
#include "data/text/gpt2_files.h"
#include "data/text/gpt2_words.h"
#include "data/text/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, Gpt2WordBytes(text)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::unique_ptr<Tokenizer> FixtureTokenizer() {
  DataConfig config;
  config.set_tokenizer(DataConfig::GPT2_BPE);
  config.set_tokenizer_path("data/testdata/gpt2");
  const absl::Status resolved = ResolveGpt2Bpe(EncodedText(), config);  // the text is not read
  EXPECT_TRUE(resolved.ok()) << resolved;
  auto tokenizer = MakeGpt2BpeTokenizer(config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Expected: matches of GPT-2's pattern in Python's regex module.
TEST(Gpt2Words, AreThoseOfThePattern) {
  EXPECT_THAT(Words("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(Words("we'll've it's"), ElementsAre("we", "'ll", "'ve", " it", "'s"));
  EXPECT_THAT(Words("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(Words("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Words("a \t"), ElementsAre("a", " \t"));
  EXPECT_THAT(Words("x 12½三 !?x"), ElementsAre("x", " 12½", "三", " !?", "x"));
  EXPECT_THAT(Words(" 's"), ElementsAre(" '", "s"));
  EXPECT_THAT(Words("\u00a0\u2003x"), ElementsAre("\u00a0", "\u2003", "x"));
  EXPECT_THAT(Words(" "), ElementsAre(" "));
  EXPECT_THAT(Words("a\xFF\xC3"), ElementsAre("a", "\xFF\xC3"));
}

TEST(Gpt2BpeTokenizer, GivesTheTokensOfTheOriginalAlgorithm) {
  const auto text = ReadWholeFile("data/testdata/gpt2/golden.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto tokenizer = FixtureTokenizer();
  const auto golden = nlohmann::json::parse(*text);
  ASSERT_GT(golden.size(), 100u);
  for (const auto& row : golden) {
    const auto tokens = tokenizer->Encode(row["text"].get<std::string>());
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_EQ(*tokens, row["tokens"].get<std::vector<int32_t>>()) << row["text"];
  }
}

TEST(Gpt2BpeTokenizer, TakesAnyBytes) {
  const auto tokenizer = FixtureTokenizer();
  std::string text;
  for (int i = 0; i < 512; ++i) text.push_back(static_cast<char>(i * 7));
  const auto tokens = tokenizer->Encode(text);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(*tokenizer->Decode(*tokens), text);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const BytePairTables& tables) {
  DataConfig config;
  config.set_resolved_tokenizer(tables.SerializeAsString());
  return MakeGpt2BpeTokenizer(config);
}

BytePairTables WithAdded(std::initializer_list<std::pair<const char*, bool>> added) {
  BytePairTables tables = ByteTables();
  for (const auto& [text, normalized] : added) {
    BytePairTables::Named& named = *tables.add_added();
    named.set_token(static_cast<uint32_t>(tables.tokens_size()));
    named.set_text(text);
    named.set_normalized(normalized);
    tables.add_tokens();
  }
  return tables;
}

TEST(Gpt2BpeTokenizer, FindsAddedTokensFirst) {
  const auto tokenizer = *TokenizerOf(WithAdded({{"<|endoftext|>", false}, {"<|user|>", true}}));
  const std::string text = "<|user|>hi<|endoftext|>\n";
  const auto tokens = *tokenizer->Encode(text);
  EXPECT_THAT(tokens, ElementsAre(257, 'h', 'i', 256, '\n'));  // same as transformers 5.24
  EXPECT_EQ(*tokenizer->Decode(tokens), text);
}

TEST(Gpt2BpeTokenizer, TokensDoNotDependOnTheCutAmongAddedTokens) {
  const auto tokenizer =
      *TokenizerOf(WithAdded({{"my pad", true}, {"a\n\nb", false}, {" x", true}, {"  ", true}}));
  std::mt19937 random(7);
  const char* parts[] = {"my pad", "a\n\nb", " x", "  ", "my", " ", "pad", "\n", "a", "'s", "x"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += parts[random() % std::size(parts)];
    const auto all = *tokenizer->Encode(text);
    std::vector<int32_t> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      size_t cut = 0;
      for (size_t read = 1 + random() % 9; cut == 0 && read < rest.size(); ++read) {
        cut = tokenizer->Cut(rest.substr(0, read));
      }
      const std::string_view front = cut > 0 ? rest.substr(0, cut) : rest;
      const auto tokens = *tokenizer->Encode(front);
      pieces.insert(pieces.end(), tokens.begin(), tokens.end());
      rest.remove_prefix(front.size());
    }
    ASSERT_EQ(pieces, all) << text;
  }
}

TEST(Gpt2BpeTokenizer, RefusesTextWithAByteThatHasNoToken) {
  BytePairTables tables = ByteTables();
  tables.set_tokens('z', "");
  const auto tokenizer = *TokenizerOf(tables);
  EXPECT_EQ((*tokenizer->Encode("a text")).size(), 6u);
  EXPECT_THAT(std::string(tokenizer->Encode("a size").status().message()),
              AllOf(HasSubstr("byte 0x7A at offset 4"), HasSubstr("use a tokenizer")));
}

TEST(Gpt2BpeTokenizer, SaysWhatItNeeds) {
  DataConfig config;
  EXPECT_THAT(std::string(ResolveGpt2Bpe(EncodedText(), config).message()),
              AllOf(HasSubstr("data.tokenizer_path"), HasSubstr("vocab.json and merges.txt")));
  config.set_tokenizer_path("/no/such/folder");
  EXPECT_THAT(std::string(ResolveGpt2Bpe(EncodedText(), config).message()),
              HasSubstr("/no/such/folder/vocab.json: is missing"));
}

}  // namespace
}  // namespace tug
