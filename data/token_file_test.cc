// SPDX-License-Identifier: Apache-2.0
#include "data/token_file.h"

#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "data/source/text_source.h"
#include "data/text/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TokenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    out_ = folder_ + "/tokens.bin";
  }

  std::string WriteText(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  absl::StatusOr<TokenFileInfo> Prepare(const std::string& path, DataConfig::Tokenizer kind) {
    config_.Clear();
    config_.set_path(path);
    config_.set_tokenizer(kind);
    auto info = PrepareTokenFile(config_, out_);
    if (info.ok()) info->Resolve(config_);
    return info;
  }

  std::string ErrorOf(const std::string& path, DataConfig::Tokenizer kind) {
    const absl::Status status = Prepare(path, kind).status();
    EXPECT_FALSE(fs::exists(out_ + ".tmp"));
    return std::string(status.message());
  }

  std::string DecodeAll() {
    auto file = TokenFile::Open(out_);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->VerifyContents().ok());
    std::vector<int32_t> tokens(file->size());
    file->Read(0, tokens);
    auto tokenizer = MakeTokenizer(config_);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    auto text = (*tokenizer)->Decode(tokens);
    EXPECT_TRUE(text.ok()) << text.status();
    return *text;
  }

  std::string folder_;
  std::string out_;
  DataConfig config_;
};

TEST_F(TokenFileTest, RoundTripsTextOfEveryWidth) {
  std::string many;  // 70000 distinct code points; prefixes cover every token width
  for (char32_t c = 0x10000; c < 0x10000 + 70000; ++c) {
    many += {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3F)),
             static_cast<char>(0x80 | ((c >> 6) & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
  }
  struct Case {
    std::string text;
    DataConfig::Tokenizer kind;
    uint32_t symbols;
  };
  for (const Case& c :
       {Case{"hello, héllo", DataConfig::BYTE, 256}, Case{"hello, héllo", DataConfig::CHARACTER, 7},
        Case{many.substr(0, 4 * 1000), DataConfig::CHARACTER, 1000},
        Case{many, DataConfig::CHARACTER, 70000}}) {
    const auto info = Prepare(WriteText("text", c.text), c.kind);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->symbols, c.symbols);
    EXPECT_EQ(config_.resolved_symbols(), c.symbols);
    EXPECT_FALSE(info->reused);
    EXPECT_EQ(DecodeAll(), c.text);
  }
}

// Pieces are 1 MiB: code points straddle their boundaries.
TEST_F(TokenFileTest, StreamsTextLongerThanAPiece) {
  std::string text = "x";
  while (text.size() < (5 << 19)) text += "a漢é😀";
  ASSERT_TRUE(Prepare(WriteText("text", text), DataConfig::CHARACTER).ok());
  EXPECT_TRUE(DecodeAll() == text);
  ASSERT_TRUE(Prepare(WriteText("text", text), DataConfig::BYTE).ok());
  EXPECT_TRUE(DecodeAll() == text);
}

TEST_F(TokenFileTest, ReadsAFolderInNameOrderSkippingSubfolders) {
  WriteText("in/b.txt", "second ");
  WriteText("in/a.txt", "first ");
  WriteText("in/c.txt", "third");
  WriteText("in/sub/d.txt", "not this");
  ASSERT_TRUE(Prepare(folder_ + "/in", DataConfig::BYTE).ok());
  EXPECT_EQ(DecodeAll(), "first second third");
}

TEST_F(TokenFileTest, HiddenFilesAndCopiesOfEditorsAreNoText) {
  for (const char* name : {".DS_Store", ".a.txt.swp", "a.txt~", "#a.txt#"}) {
    WriteText(std::string("in/") + name, "not this");
  }
  EXPECT_THAT(ErrorOf(folder_ + "/in", DataConfig::BYTE), HasSubstr("except hidden files"));
  fs::create_symlink("me@host.1:2", folder_ + "/in/.#a.txt");  // Emacs lock file: a dangling link
  WriteText("in/a.txt", "this");
  fs::create_directories(folder_ + "/in/old");
  ASSERT_TRUE(Prepare(folder_ + "/in", DataConfig::BYTE).ok());
  EXPECT_EQ(DecodeAll(), "this");
  const auto source = TextSource::Open(folder_ + "/in");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(source->left_out(),
              ElementsAre("#a.txt#", ".#a.txt", ".DS_Store", ".a.txt.swp", "a.txt~", "old/"));
  ASSERT_TRUE(Prepare(folder_ + "/in/a.txt~", DataConfig::BYTE).ok()) << "named, it is read";
}

TEST_F(TokenFileTest, EveryTokenizerReadsTheTextBehindAByteOrderMarkAndNoUtf16) {
  const std::string text = "some text, some more text, some text\n";
  std::string wide = "\xFF\xFE";
  for (const char c : text) wide += {c, '\0'};
  const auto prepare = [&](DataConfig::Tokenizer tokenizer, const std::string& bytes) {
    config_.Clear();
    config_.set_path(WriteText("in/b.txt", bytes));
    WriteText("in/a.txt", bytes);
    config_.set_path(folder_ + "/in");
    config_.set_tokenizer(tokenizer);
    if (tokenizer == DataConfig::GPT2_BPE) config_.set_tokenizer_path("data/testdata/gpt2");
    if (tokenizer == DataConfig::SENTENCEPIECE) config_.set_pieces(270);
    return PrepareTokenFile(config_, out_);
  };
  for (const DataConfig::Tokenizer tokenizer :
       {DataConfig::BYTE, DataConfig::CHARACTER, DataConfig::SENTENCEPIECE, DataConfig::GPT2_BPE}) {
    SCOPED_TRACE(DataConfig::Tokenizer_Name(tokenizer));
    const auto without = prepare(tokenizer, text);
    ASSERT_TRUE(without.ok()) << without.status();
    const auto with = prepare(tokenizer, "\xEF\xBB\xBF" + text);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_FALSE(with->reused);
    EXPECT_EQ(with->fingerprint, without->fingerprint);
    EXPECT_THAT(std::string(prepare(tokenizer, wide).status().message()),
                AllOf(HasSubstr("in/a.txt is UTF-16"), HasSubstr("iconv")));
  }
  EXPECT_THAT(ErrorOf(WriteText("far",
                                "\xEF\xBB\xBF"
                                "caf\xE9"),
                      DataConfig::CHARACTER),
              HasSubstr("0xE9 at offset 6"))
      << "in the file";
}

TEST_F(TokenFileTest, IsReusedUntilTextTokenizerOrFileChange) {
  const std::string path = WriteText("text", "some text");
  const auto first = Prepare(path, DataConfig::BYTE);
  ASSERT_TRUE(first.ok());
  const auto second = Prepare(path, DataConfig::BYTE);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->reused);
  EXPECT_EQ(second->fingerprint, first->fingerprint);

  const auto characters = Prepare(path, DataConfig::CHARACTER);
  EXPECT_FALSE(characters->reused);
  EXPECT_NE(characters->fingerprint, first->fingerprint);
  EXPECT_TRUE(Prepare(path, DataConfig::CHARACTER)->reused);

  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2));
  const auto touched = Prepare(path, DataConfig::CHARACTER);
  EXPECT_FALSE(touched->reused);
  EXPECT_EQ(touched->fingerprint, characters->fingerprint);

  std::fstream file(out_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x01');
  file.close();
  EXPECT_FALSE(Prepare(path, DataConfig::CHARACTER)->reused);
  EXPECT_EQ(DecodeAll(), "some text");
}

// Earlier releases tokenized some texts differently, under rules below 3.
TEST_F(TokenFileTest, IsNotTakenForOneOfAnEarlierReleasesRules) {
  const std::string path = WriteText("text", "some text");
  ASSERT_TRUE(Prepare(path, DataConfig::BYTE).ok());
  const auto file = TokenFile::Open(out_);
  const auto source = TextSource::Open(path);
  ASSERT_TRUE(file.ok() && source.ok());
  const auto key_by_rules = [&](uint64_t rules) {
    const uint64_t parts[] = {source->Key(), DataConfig::BYTE,
                              static_cast<uint64_t>(TextForm::kRunning), kTokenFileVersion, rules};
    return XXH3_64bits(parts, sizeof(parts));
  };
  uint64_t rules = 0;
  while (rules < 1000 && key_by_rules(rules) != file->source_key()) ++rules;
  EXPECT_GE(rules, 3u);
  EXPECT_LT(rules, 1000u) << "the key is made otherwise: this test must follow";
}

TEST_F(TokenFileTest, HoldsWhatTheTokenizerKnowsAndIsMadeAgainWhenItsFilesChange) {
  const std::string path = WriteText("text", "some text, some more text, some text");
  for (const char* name : {"vocab.json", "merges.txt"}) {
    fs::create_directories(folder_ + "/bpe");
    fs::copy(std::string("data/testdata/gpt2/") + name, folder_ + "/bpe");
  }
  DataConfig config;
  config.set_path(path);
  config.set_tokenizer(DataConfig::GPT2_BPE);
  config.set_tokenizer_path(folder_ + "/bpe");
  const auto first = PrepareTokenFile(config, out_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->symbols, 657u);
  EXPECT_TRUE(PrepareTokenFile(config, out_)->reused);
  const fs::path merges = folder_ + "/bpe/merges.txt";
  fs::last_write_time(merges, fs::last_write_time(merges) + std::chrono::seconds(2));
  EXPECT_FALSE(PrepareTokenFile(config, out_)->reused);

  // A resolved configuration needs no tokenizer files; another host makes the same file.
  DataConfig resolved = config;
  first->Resolve(resolved);
  fs::remove_all(folder_ + "/bpe");
  EXPECT_TRUE(PrepareTokenFile(resolved, out_)->reused);
  const auto elsewhere = PrepareTokenFile(resolved, folder_ + "/elsewhere");
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(elsewhere->known, first->known);
  EXPECT_EQ(elsewhere->fingerprint, first->fingerprint);
  EXPECT_THAT(std::string(PrepareTokenFile(config, out_).status().message()),
              AllOf(HasSubstr("data.tokenizer_path"), HasSubstr(folder_ + "/bpe")));
}

TEST_F(TokenFileTest, OnlyTheTokenizersFilesCountAndErrorsNameThem) {
  DataConfig config;
  config.set_path(WriteText("text", "some text, some more text, some text"));
  config.set_tokenizer(DataConfig::GPT2_BPE);
  config.set_tokenizer_path(folder_ + "/bpe");
  const auto error = [&] { return std::string(PrepareTokenFile(config, out_).status().message()); };
  WriteText("bpe/notes.txt", "");
  EXPECT_THAT(error(), AllOf(HasSubstr("data.tokenizer_path " + folder_ + "/bpe/vocab.json"),
                             HasSubstr("check the path"), Not(HasSubstr("data.path"))));
  for (const char* name : {"vocab.json", "merges.txt"}) {
    fs::copy(std::string("data/testdata/gpt2/") + name, folder_ + "/bpe");
  }
  ASSERT_EQ(error(), "");
  WriteText("bpe/notes.txt", "longer");
  WriteText("bpe/more.txt", "a file that nobody reads");
  EXPECT_TRUE(PrepareTokenFile(config, out_)->reused);

  config.set_tokenizer(DataConfig::SENTENCEPIECE);
  EXPECT_THAT(error(), AllOf(HasSubstr("data.tokenizer_path " + folder_ + "/bpe"),
                             HasSubstr("is not a regular file")));
  config.set_tokenizer_path(WriteText("empty.model", ""));
  EXPECT_THAT(error(), AllOf(HasSubstr("data.tokenizer_path " + folder_ + "/empty.model"),
                             HasSubstr("not a SentencePiece model"), Not(HasSubstr("data.path"))));
}

TEST_F(TokenFileTest, SentencePieceSettingsMakeAnotherFile) {
  DataConfig config;
  config.set_path(WriteText("text", "the server and the server and the worker and the worker\n"));
  config.set_tokenizer(DataConfig::SENTENCEPIECE);
  config.set_pieces(280);
  const auto first = PrepareTokenFile(config, out_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(PrepareTokenFile(config, out_)->reused);
  config.set_pieces(275);
  EXPECT_FALSE(PrepareTokenFile(config, out_)->reused);
}

TEST_F(TokenFileTest, FilesBesideASentencePieceModelCountUntilItIsResolved) {
  DataConfig config;
  config.set_path(WriteText("text", "the server and the worker\n"));
  config.set_tokenizer(DataConfig::SENTENCEPIECE);
  config.set_tokenizer_path(folder_ + "/sp/m.model");
  fs::create_directories(folder_ + "/sp");
  fs::copy("data/testdata/sentencepiece/bpe.model", config.tokenizer_path());
  const auto first = PrepareTokenFile(config, out_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(PrepareTokenFile(config, out_)->reused);
  WriteText("sp/added_tokens.json", R"({"<pad>": 1000000})");
  EXPECT_THAT(std::string(PrepareTokenFile(config, out_).status().message()),
              AllOf(HasSubstr("sp/added_tokens.json"), HasSubstr("<pad>")));
  DataConfig resolved = config;
  first->Resolve(resolved);
  EXPECT_TRUE(PrepareTokenFile(resolved, out_).ok()) << "a job that goes on reads no files";
}

TEST_F(TokenFileTest, ErrorsNameTheFileAndTheRemedy) {
  EXPECT_THAT(ErrorOf(folder_ + "/missing", DataConfig::BYTE),
              AllOf(HasSubstr("data.path"), HasSubstr("/missing"), HasSubstr("check the path")));
  EXPECT_THAT(ErrorOf(WriteText("empty", ""), DataConfig::BYTE),
              AllOf(HasSubstr("/empty is empty"), HasSubstr("with text in it")));
  fs::create_directories(folder_ + "/hollow");
  EXPECT_THAT(ErrorOf(folder_ + "/hollow", DataConfig::BYTE), HasSubstr("no regular file"));
  EXPECT_THAT(ErrorOf(WriteText("latin1", "caf\xE9 au lait"), DataConfig::CHARACTER),
              AllOf(HasSubstr("/latin1: byte 0xE9 at offset 3"), HasSubstr("BYTE")));
  EXPECT_THAT(ErrorOf(WriteText("cut", "caf\xC3"), DataConfig::CHARACTER),
              HasSubstr("/cut: byte 0xC3 at offset 3"));
  const std::string far = std::string((1 << 20) + 10, 'x') + "\xFF";
  EXPECT_THAT(ErrorOf(WriteText("far", far), DataConfig::CHARACTER),
              HasSubstr("0xFF at offset 1048586"));
  out_ = folder_ + "/no/such/folder/tokens";
  EXPECT_THAT(ErrorOf(WriteText("text", "x"), DataConfig::BYTE), HasSubstr(out_));
  out_ = folder_ + "/in/tokens";
  WriteText("in/a.txt", "x");
  EXPECT_THAT(ErrorOf(folder_ + "/in", DataConfig::BYTE), HasSubstr("in the folder of the text"));
}

TEST_F(TokenFileTest, RacingProcessesMakeItOnceAndAgree) {
  const std::string path = WriteText("text", std::string(1 << 22, 'a') + "b");
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto info = Prepare(path, DataConfig::CHARACTER);
      _exit(!info.ok() ? 2 : info->reused ? 1 : 0);
    }
    children.push_back(pid);
  }
  int made = 0;
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_LE(WEXITSTATUS(status), 1);
    made += WEXITSTATUS(status) == 0;
  }
  EXPECT_EQ(made, 1);
}

TEST_F(TokenFileTest, StaysWhereTheTextHasOtherTokensThanTheWantedOnes) {
  DataConfig config;
  config.set_path(WriteText("text", "some text"));
  config.set_tokenizer(DataConfig::BYTE);
  const auto first = PrepareTokenFile(config, out_);
  ASSERT_TRUE(first.ok()) << first.status();
  const uint64_t wanted = first->fingerprint;
  WriteText("text", "some other text");
  const auto other = PrepareTokenFile(config, out_, TextForm::kRunning, wanted);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(other->fingerprint, wanted);
  EXPECT_EQ(TokenFile::Open(out_)->info().fingerprint, wanted);
  EXPECT_FALSE(fs::exists(out_ + ".tmp"));
  WriteText("text", "some text");
  const auto again = PrepareTokenFile(config, out_, TextForm::kRunning, wanted);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fingerprint, wanted);
}

TEST_F(TokenFileTest, NeedsNoTextWhereItHoldsTheTokensThatTheCoordinatorMeans) {
  const auto open = [this] { return OpenResolvedTokens(config_, out_, TextForm::kRunning); };
  ASSERT_TRUE(Prepare(WriteText("text", "some text"), DataConfig::BYTE).ok());
  WriteText("text", "some other text");
  auto tokens = open();
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->info().fingerprint, config_.resolved_fingerprint());
  fs::remove(folder_ + "/text");
  tokens = open();
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 9u);

  // Without the token file, the text is read.
  fs::remove(out_);
  EXPECT_THAT(std::string(open().status().message()),
              AllOf(HasSubstr("data.path"), HasSubstr("/text")));
  WriteText("text", "some text");
  tokens = open();
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->info().fingerprint, config_.resolved_fingerprint());

  // Another job's tokens in a shared folder are replaced only by the right tokens.
  DataConfig other = config_;
  other.set_path(WriteText("other", "other text"));
  ASSERT_TRUE(PrepareTokenFile(other, out_).ok());
  const uint64_t others = TokenFile::Open(out_)->info().fingerprint;
  WriteText("text", "some other text");
  EXPECT_THAT(std::string(open().status().message()),
              AllOf(HasSubstr(folder_ + "/text"), HasSubstr("copy the same files to this host")));
  EXPECT_EQ(TokenFile::Open(out_)->info().fingerprint, others);
  WriteText("text", "some text");
  EXPECT_TRUE(open().ok());
}

TEST_F(TokenFileTest, DamageOfAnyKindIsFoundAndNeverCrashes) {
  const uint32_t seed = 3;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  ASSERT_TRUE(Prepare(WriteText("text", "some text, not long"), DataConfig::CHARACTER).ok());
  const auto good = ReadWholeFile(out_, 1 << 20);
  ASSERT_TRUE(good.ok());
  for (size_t i = 0; i < 3 * good->size(); ++i) {
    std::string bad = *good;
    if (i < bad.size()) {
      bad.resize(i);
    } else {
      bad[i % bad.size()] ^= static_cast<char>(1 + random() % 255);
    }
    std::ofstream(out_, std::ios::binary) << bad;
    const auto file = TokenFile::Open(out_);
    const absl::Status status = file.ok() ? file->VerifyContents() : file.status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << i;
    ASSERT_THAT(std::string(status.message()), AllOf(HasSubstr(out_), HasSubstr("delete it")));
  }
}

}  // namespace
}  // namespace tug
