// SPDX-License-Identifier: Apache-2.0
#include "base/files/shell_word.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(ShellWord, IsQuotedWhereItNeedsTo) {
  EXPECT_EQ(ShellWord("train.steps=3e-4"), "train.steps=3e-4");
  EXPECT_EQ(ShellWord("runs/a@b:1,c+d"), "runs/a@b:1,c+d");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("~/it's $HOME"), "'~/it'\\''s $HOME'");
}

TEST(ShellCommand, IsALineForAShell) {
  EXPECT_EQ(ShellCommand({}), "");
  EXPECT_EQ(ShellCommand({"tug", "train", "my job", "--set", "seed=2"}),
            "tug train 'my job' --set seed=2");
}

}  // namespace
}  // namespace tug
