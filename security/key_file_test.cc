// SPDX-License-Identifier: Apache-2.0
#include "security/key_file.h"

#include <sys/stat.h>

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/files/test_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSeed = 161803;

std::string PathOf(const std::string& name) {
  static const TestFolder folder;
  return folder.path() + "/" + name;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<JobKeys> keys = ParseKeyFile(text, "some file");
  return keys.ok() ? "" : std::string(keys.status().message());
}

class KeyFile : public ::testing::TestWithParam<SecurityConfig::Mode> {
 protected:
  const JobKeys keys_ = MakeJobKeys(GetParam()).value();
  const std::string text_ = KeyFileText(keys_);
};

INSTANTIATE_TEST_SUITE_P(Modes, KeyFile,
                         ::testing::Values(SecurityConfig::TOKEN, SecurityConfig::CURVE),
                         [](const auto& mode) { return ModeName(mode.param); });

TEST_P(KeyFile, IsReadAsItWasWritten) {
  const absl::StatusOr<JobKeys> read = ParseKeyFile(text_, "a");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, keys_);
  EXPECT_TRUE(absl::StartsWith(text_, "tug keys 1\nmode " + ModeName(GetParam()) + "\n"));
}

TEST_P(KeyFile, DoesNotDependOnEndsOfLines) {
  const std::string without = text_.substr(0, text_.size() - 1);
  const std::string windows = absl::StrReplaceAll(text_, {{"\n", "\r\n"}});
  for (const std::string& text : {without, windows, windows.substr(0, windows.size() - 1)}) {
    const absl::StatusOr<JobKeys> read = ParseKeyFile(text, "a");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, keys_);
  }
}

TEST_P(KeyFile, CutAnywhereIsRefused) {
  for (size_t length = 0; length + 1 < text_.size(); ++length) {
    EXPECT_THAT(ErrorOf(text_.substr(0, length)), HasSubstr("some file is not a key file"))
        << length;
  }
}

TEST_P(KeyFile, WithAnyBitFlippedIsRefused) {
  for (size_t i = 0; i < text_.size(); ++i) {
    for (int bit = 0; bit < 8; bit += GetParam() == SecurityConfig::TOKEN ? 1 : 7) {
      std::string flipped = text_;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      ASSERT_THAT(ErrorOf(flipped), HasSubstr("some file is not a key file")) << i << " " << bit;
    }
  }
}

TEST_P(KeyFile, WithAnythingAddedIsRefused) {
  std::mt19937_64 random(kSeed);
  std::cout << "seed " << kSeed << std::endl;
  for (const std::string& more :
       std::vector<std::string>{"\n", " ", "#", "\r", std::string(1, 0), text_}) {
    EXPECT_NE(ErrorOf(text_ + more), "");
    EXPECT_NE(ErrorOf(more + text_), "");
  }
  for (int i = 0; i < 300; ++i) {
    std::string changed = text_;
    changed.insert(random() % (text_.size() + 1), 1, static_cast<char>(random()));
    ASSERT_NE(ErrorOf(changed), "") << i;
  }
}

TEST_P(KeyFile, ErrorsTellNothingOfIt) {
  for (size_t i = 11; i + 1 < text_.size(); i += 5) {
    std::string flipped = text_;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    const std::string error = ErrorOf(flipped);
    ASSERT_THAT(error, Not(HasSubstr(keys_.token.substr(0, 8))));
    ASSERT_LT(error.size(), 200u);
  }
}

TEST_P(KeyFile, IsItsOwnersOnlyAndNeverOverwritten) {
  const std::string path = PathOf(ModeName(GetParam()));
  ASSERT_TRUE(WriteNewKeyFile(path, keys_).ok());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(ReadKeyFile(path).value(), keys_);
  EXPECT_EQ(WriteNewKeyFile(path, keys_).code(), absl::StatusCode::kAlreadyExists);
  const JobKeys others = MakeJobKeys(GetParam()).value();
  ASSERT_TRUE(ReplaceKeyFile(path, others).ok());
  EXPECT_EQ(ReadKeyFile(path).value(), others);
  EXPECT_EQ(ReadText(path), KeyFileText(others));
}

TEST_P(KeyFile, RefusesFileAccessibleToOtherUsers) {
  const std::string path = PathOf("open-" + ModeName(GetParam()));
  ASSERT_TRUE(WriteNewKeyFile(path, keys_).ok());
  for (const mode_t mode : {0640u, 0604u, 0620u, 0602u, 0610u}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(
        std::string(ReadKeyFile(path).status().message()),
        AllOf(HasSubstr(path), HasSubstr("accessible to other users"), HasSubstr("chmod 600")));
  }
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(ReadKeyFile(path).ok());
}

TEST(ReadKeyFile, WaitsForNoWriterOfAPipe) {
  const TestFolder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadKeyFile(path).status().message()),
              HasSubstr("it is not a regular file"));
}

TEST(ParseKeyFile, SaysWhichVersionItReads) {
  EXPECT_THAT(ErrorOf("tug keys 2\nmode token\n"),
              AllOf(HasSubstr("another version"), HasSubstr("'tug keys 1'")));
  EXPECT_THAT(ErrorOf("-----BEGIN PRIVATE KEY-----\n"), HasSubstr("first line"));
}

TEST(ParseKeyFile, RefusesKeysThatDoNotBelongTogether) {
  JobKeys keys = MakeJobKeys(SecurityConfig::CURVE).value();
  const JobKeys others = MakeJobKeys(SecurityConfig::CURVE).value();
  JobKeys mixed = keys;
  mixed.curve.public_key = others.curve.public_key;
  EXPECT_NE(ErrorOf(KeyFileText(mixed)), "");
  mixed = keys;
  mixed.tls = others.tls;
  EXPECT_NE(ErrorOf(KeyFileText(mixed)), "");
  mixed = keys;
  mixed.token = "0123";
  EXPECT_NE(ErrorOf(KeyFileText(mixed)), "");
}

TEST(ReadKeyFile, NamesWhatItCannotRead) {
  EXPECT_THAT(std::string(ReadKeyFile("/nowhere/keys").status().message()),
              HasSubstr("/nowhere/keys"));
  EXPECT_THAT(std::string(ReadKeyFile("/dev/null").status().message()),
              HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace tug
