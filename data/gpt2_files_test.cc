#include "data/gpt2_files.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::AllOf;
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

  // Of vocab.json with the bytes and `more` tokens behind them.
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

TEST_F(Gpt2FilesTest, ErrorsNameTheFileAndTheRemedy) {
  const auto names_vocab = AllOf(HasSubstr(folder_ + "/vocab.json"), HasSubstr("tokenizer_path"),
                                 testing::Not(HasSubstr("\n")));
  const auto names_merges = AllOf(HasSubstr(folder_ + "/merges.txt"), HasSubstr("tokenizer_path"));
  Write(kGpt2VocabFile, "{\"a\": 0");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("not a JSON object")));
  Write(kGpt2VocabFile, "[]");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("not a JSON object")));
  Write(kGpt2VocabFile, "{\"a\": 0, \"b\": 2}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("\"b\" is 2"), HasSubstr("0 to 1")));
  Write(kGpt2VocabFile, "{\"a\": 0, \"b\": 0}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("each once")));
  Write(kGpt2VocabFile, "{\"a\": -1}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("\"a\" is -1")));
  Write(kGpt2VocabFile, "{\"a\": 0}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("byte 0x00")));
  Write(kGpt2VocabFile, "{\"a b\": 0}");
  EXPECT_THAT(Error(), AllOf(names_vocab, HasSubstr("stands for no byte")));
  WriteVocab(R"(, "ab": 256)");
  Write(kGpt2MergesFile, "#version: 0.2\na b\nb c\n");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("line 3 \"b c\""), HasSubstr("vocab.json")));
  Write(kGpt2MergesFile, "a b\na b\n");
  EXPECT_THAT(Error(), AllOf(names_merges, HasSubstr("line 2"), HasSubstr("twice")));
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
