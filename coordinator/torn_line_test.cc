// SPDX-License-Identifier: Apache-2.0
#include "coordinator/torn_line.h"

#include <fstream>
#include <string>

#include "base/files/file.h"
#include "base/files/test_folder.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(CutTornLine, LeavesWholeLines) {
  const TestFolder folder;
  const std::string path = folder.path() + "/lines";
  const auto cut = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_TRUE(CutTornLine(path).ok());
    return ReadWholeFile(path, 1 << 20).value_or("cannot be read");
  };
  EXPECT_EQ(cut("a\nb\n"), "a\nb\n");
  EXPECT_EQ(cut("a\nb"), "a\n");
  EXPECT_EQ(cut("a"), "");
  EXPECT_EQ(cut(""), "");
  EXPECT_EQ(cut("\n\n"), "\n\n");
  EXPECT_EQ(cut(std::string("a\n\0\0", 4)), "a\n") << "blocks that a power cut left without data";
}

TEST(CutTornLine, LeavesWhatIsNoFileAlone) {
  const TestFolder folder;
  EXPECT_TRUE(CutTornLine(folder.path() + "/missing").ok());
  EXPECT_TRUE(CutTornLine(folder.path()).ok());
  EXPECT_TRUE(CutTornLine("/dev/full").ok());
}

}  // namespace
}  // namespace tug
