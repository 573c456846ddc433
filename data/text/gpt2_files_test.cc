// SPDX-License-Identifier: Apache-2.0
#include "data/text/gpt2_files.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class Gpt2FilesTest : public testing::Test {
 protected:
  Gpt2FilesTest() : folder_(testing::TempDir() + "/gpt2_files") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Write(kGpt2VocabFile, Gpt2VocabJson(ByteTables()));
    Write(kGpt2MergesFile, "#version: 0.2\n");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }

  // Writes vocab.json with the 256 bytes, followed by `more`.
  void WriteVocab(const std::string& more) {
    std::string text = Gpt2VocabJson(ByteTables());
    text.erase(text.rfind('}'));
    Write(kGpt2VocabFile, text + more + "}");
  }

  std::string Error() { return std::string(ReadGpt2Files(folder_).status().message()); }

  std::string folder_;
};

TEST_F(Gpt2FilesTest, ReadsWhatItWrites) {
  const auto fixture = ReadGpt2Files("data/testdata/gpt2");
  ASSERT_TRUE(fixture.ok()) << fixture.status();
  EXPECT_EQ(fixture->tokens_size(), 657);
  EXPECT_EQ(fixture->merges_size(), 2 * 400);
  EXPECT_EQ(fixture->tokens(656), kGpt2EndOfText);
  Write(kGpt2VocabFile, Gpt2VocabJson(*fixture));
  Write(kGpt2MergesFile, Gpt2MergesText(*fixture));
  const auto again = ReadGpt2Files(folder_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), fixture->SerializeAsString());
}

TEST_F(Gpt2FilesTest, TokensAreBytesNotTheirStandIns) {
  WriteVocab(R"(, "\u0120\u010a": 256, "Ã©": 257)");
  const auto tables = ReadGpt2Files(folder_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->tokens(256), " \n");
  EXPECT_EQ(tables->tokens(257), "é");
}

TEST_F(Gpt2FilesTest, OddVocabulariesLoad) {
  Write(kGpt2VocabFile, R"({"a": 0, "b": 2, "ab": 5, "aab": 6, "my pad": 7, "漢": 9, "": 11})");
  Write(kGpt2MergesFile, "#version: 0.2\na b\na ab\na b\n");
  const auto tables = ReadGpt2Files(folder_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_THAT(tables->tokens(), ElementsAre("a", "", "b", "", "", "ab", "aab", "", "", "", "", ""));
  EXPECT_THAT(tables->merges(), ElementsAre(0, 5, 0, 2)) << "the last of equal merges counts";
  EXPECT_EQ(tables->not_in_text_size(), 3);
  Write(kGpt2VocabFile, Gpt2VocabJson(*tables));
  Write(kGpt2MergesFile, Gpt2MergesText(*tables));
  EXPECT_EQ(ReadGpt2Files(folder_)->SerializeAsString(), tables->SerializeAsString());
}

TEST_F(Gpt2FilesTest, AddedTokensAreReadWhereverTheyAreListed) {
  WriteVocab(R"(, "<s>": 256, "<pad>": 257)");
  Write(kGpt2AddedTokensFile, R"({"<|user|>": 258, "my pad": 260})");
  Write("special_tokens_map.json", R"({"bos_token": "<s>", "pad_token": {"content": "<pad>"}})");
  Write(kGpt2SettingsFile, R"({"added_tokens_decoder": {"259": {"content": "<|end|>",
      "special": true, "normalized": false}}, "additional_special_tokens": ["my pad"],
      "unk_token": null, "add_prefix_space": false})");
  const auto tables = ReadGpt2Files(folder_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->tokens_size(), 261);
  std::map<std::string, std::tuple<uint32_t, bool, bool>> added;
  for (const auto& named : tables->added()) {
    added[named.text()] = {named.token(), named.special(), named.normalized()};
  }
  const std::map<std::string, std::tuple<uint32_t, bool, bool>> expected = {
      {"<s>", {256, true, false}},
      {"<pad>", {257, false, true}},
      {"<|user|>", {258, false, true}},
      {"<|end|>", {259, true, false}},
      {"my pad", {260, true, false}}};
  EXPECT_EQ(added, expected);
  EXPECT_EQ(Gpt2FilesIn(folder_).size(), 5u);
  Write("special_tokens_map.json", R"({"pad_token": "[PAD]"})");
  EXPECT_THAT(Error(), AllOf(HasSubstr("special_tokens_map.json"),
                             HasSubstr("\"[PAD]\" has no number"), HasSubstr("added_tokens.json")));
  Write("special_tokens_map.json", "{}");
  Write(kGpt2AddedTokensFile, R"({"<pad>": 258})");
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("added_tokens.json"), HasSubstr("258 here and 257 elsewhere")));
  Write(kGpt2AddedTokensFile, R"({"<new>": 257})");
  EXPECT_THAT(Error(), HasSubstr("has the number 257 of \"<pad>\""));
  Write(kGpt2AddedTokensFile, "{}");
  Write(kGpt2SettingsFile, R"({"add_prefix_space": true})");
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("add_prefix_space is \"true\"")));
}

// Other tokenizers also have a vocab.json and a merges.txt.
TEST_F(Gpt2FilesTest, TheClassOfTheFolderDecidesWhetherItIsGpt2s) {
  const auto with_class = [this](const std::string& value) {
    Write(kGpt2SettingsFile, "{\"tokenizer_class\": " + value + "}");
    return Error();
  };
  for (const char* known : {"null", "\"GPT2Tokenizer\"", "\"GPT2TokenizerFast\"",
                            "\"PreTrainedTokenizerFast\"", "\"TokenizersBackend\""}) {
    EXPECT_EQ(with_class(known), "") << known;
  }
  for (const char* other :
       {"\"Qwen2Tokenizer\"", "\"RobertaTokenizerFast\"", "\"CLIPTokenizer\"", "\"\""}) {
    EXPECT_THAT(with_class(other),
                AllOf(HasSubstr(absl::StrCat(folder_, "/tokenizer_config.json: tokenizer_class is ",
                                             other, ",")),
                      HasSubstr("save the folder again"), HasSubstr("which writes tokenizer.json"),
                      testing::Not(HasSubstr("\n"))));
  }
  EXPECT_THAT(with_class("[\"GPT2Tokenizer\"]"), HasSubstr("tokenizer_class is "));
}

class TokenizerJsonTest : public Gpt2FilesTest {
 protected:
  TokenizerJsonTest() {
    fs::remove(folder_ + "/merges.txt");
    json_ = nlohmann::json::parse(R"({"normalizer": null,
      "added_tokens": [{"id": 256, "content": "<|endoftext|>", "special": true,
                        "normalized": false, "lstrip": false}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "post_processor": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "ignore_merges": false,
                "continuing_subword_prefix": "", "merges": [["\u0120", "a"], "\u0120a b"],
                "vocab": {"a": 0, "b": 1, "\u0120": 2, "\u0120a": 3, "\u0120ab": 4}}})");
  }

  std::string ErrorOf(const char* pointer, const nlohmann::json& value) {
    nlohmann::json changed = json_;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    Write("tokenizer.json", changed.dump());
    return Error();
  }

  nlohmann::json json_;
};

TEST_F(TokenizerJsonTest, IsReadInPlaceOfTheOtherFiles) {
  Write("tokenizer.json", json_.dump());
  const auto tables = ReadGpt2Files(folder_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->tokens_size(), 257);
  EXPECT_EQ(tables->tokens(4), " ab");
  EXPECT_THAT(tables->merges(), ElementsAre(2, 0, 3, 1));
  EXPECT_EQ(Gpt2EndOfTextToken(*tables), 256);
  EXPECT_THAT(Gpt2FilesIn(folder_), ElementsAre(folder_ + "/tokenizer.json"));
}

TEST_F(TokenizerJsonTest, TheClassOfTheFolderDoesNotMatter) {
  Write("tokenizer.json", json_.dump());
  Write(kGpt2SettingsFile, R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_EQ(Error(), "");
}

TEST_F(TokenizerJsonTest, OtherKindsAreRefusedByTheFilesName) {
  const auto refuses = [](const char* field) {
    return AllOf(HasSubstr("/tokenizer.json: "), HasSubstr(field), HasSubstr("tokenizer_path"));
  };
  EXPECT_EQ(ErrorOf("/post_processor", nullptr), "");
  EXPECT_THAT(ErrorOf("/model/type", "WordPiece"), refuses("model is \"WordPiece\""));
  EXPECT_THAT(ErrorOf("/model/ignore_merges", true), refuses("model.ignore_merges"));
  EXPECT_THAT(ErrorOf("/model/end_of_word_suffix", "</w>"), refuses("end_of_word_suffix"));
  EXPECT_THAT(ErrorOf("/normalizer", {{"type", "NFC"}}), refuses("normalizer is \"NFC\""));
  EXPECT_THAT(ErrorOf("/pre_tokenizer", {{"type", "Sequence"}}), refuses("pre_tokenizer"));
  EXPECT_THAT(ErrorOf("/pre_tokenizer/add_prefix_space", true), refuses("add_prefix_space"));
  EXPECT_THAT(ErrorOf("/pre_tokenizer/use_regex", false), refuses("use_regex"));
  EXPECT_THAT(ErrorOf("/post_processor", {{"type", "TemplateProcessing"},
                                          {"single", {{{"SpecialToken", 1}}, {{"Sequence", 1}}}}}),
              refuses("post_processor is \"TemplateProcessing\""));
  EXPECT_THAT(ErrorOf("/added_tokens/0/lstrip", true), refuses("has lstrip"));
  EXPECT_THAT(ErrorOf("/model/merges/0", "ab"), refuses("model.merges[0] is not two tokens"));
  EXPECT_THAT(ErrorOf("/model/vocab", nullptr), refuses("model.vocab is not an object"));
  Write("tokenizer.json", "{");
  EXPECT_THAT(Error(), refuses("is not a JSON object"));
}

TEST_F(Gpt2FilesTest, ErrorsNameTheFileAndTheRemedy) {
  const auto names_vocab = AllOf(HasSubstr(folder_ + "/vocab.json"), HasSubstr("tokenizer_path"),
                                 testing::Not(HasSubstr("\n")));
  const auto names_merges = AllOf(HasSubstr(folder_ + "/merges.txt"), HasSubstr("tokenizer_path"));
  Write(kGpt2VocabFile, "{\"a\": 0");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("not a JSON object")));
  Write(kGpt2VocabFile, "[]");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("not a JSON object")));
  Write(kGpt2VocabFile, "{\"a\": 0, \"b\": 0}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("\"b\" is 0, the same as that of \"a\"")));
  Write(kGpt2VocabFile, "{\"a\": 1000001}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("\"a\" is 1000001: numbers are 0 to")));
  Write(kGpt2VocabFile, "{\"a\": -1}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("\"a\" is -1")));
  Write(kGpt2VocabFile, "{\"a b\": 0}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("byte alphabet of GPT-2")));
  WriteVocab(R"(, "ab": 256)");
  Write(kGpt2MergesFile, "#version: 0.2\na b\nb c\n");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("line 3 \"b c\""), HasSubstr("vocab.json")));
  Write(kGpt2MergesFile, "ab\n");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("not two tokens")));
  Write(kGpt2MergesFile, "a b c\n");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("no byte")));
  fs::remove(folder_ + "/merges.txt");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("is missing")));
  fs::remove(folder_ + "/vocab.json");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("is missing")));
}

TEST_F(Gpt2FilesTest, FuzzedFilesGiveOneLineOrTables) {
  const uint32_t seed = 17;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (const char* name : {kGpt2VocabFile, kGpt2MergesFile}) {
    const auto good = ReadWholeFile(absl::StrCat("data/testdata/gpt2/", name), 1 << 20);
    ASSERT_TRUE(good.ok());
    for (const char* other : {kGpt2VocabFile, kGpt2MergesFile}) {
      fs::copy_file(absl::StrCat("data/testdata/gpt2/", other), absl::StrCat(folder_, "/", other),
                    fs::copy_options::overwrite_existing);
    }
    for (int round = 0; round < 400; ++round) {
      std::string bad = *good;
      for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
        const size_t at = random() % bad.size();
        switch (random() % 4) {
          case 0:
            bad[at] = static_cast<char>(random());
            break;
          case 1:
            bad.erase(at, 1 + random() % 20);
            break;
          case 2:
            bad.insert(at, bad.substr(random() % bad.size(), random() % 40));
            break;
          default:
            bad.resize(at + 1);
        }
      }
      fs::permissions(absl::StrCat(folder_, "/", name), fs::perms::owner_all);
      Write(name, bad);
      const auto tables = ReadGpt2Files(folder_);
      if (tables.ok()) continue;
      const std::string message(tables.status().message());
      ASSERT_THAT(message, HasSubstr(folder_));
      ASSERT_LT(message.size(), 1000u);
    }
  }
}

}  // namespace
}  // namespace tug
