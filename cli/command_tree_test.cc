// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A program with all kinds of commands and options.
class CommandTreeTest : public ::testing::Test {
 protected:
  CommandTreeTest() : app_("Boat: pulls ships. Slowly.", "boat") {
    app_.set_version_flag("--version", "boat 1");
    CLI::App* pull = app_.add_subcommand("pull", "Pulls 'one' ship \\ or more");
    pull->add_option("SHIP", ship_, "Which")->required();
    pull->add_option("--rope", rope_, ".of rope")->type_name("FILE");
    pull->add_flag("--fast", fast_, "At once");
    pull->add_option("--inner", inner_, "For programs")->group("");
    pull->footer("Example:\n  boat pull it");
    app_.add_subcommand("inner", "For programs")->group("");
    CLI::App* harbour = app_.add_subcommand("harbour", "Of harbours");
    harbour->add_subcommand("pull", "Another pull");
    harbour->add_subcommand("push", "Pushes")->add_option("--rope", rope_, "Rope");
  }

  // Bash's proposals for the last of the words.
  std::string Complete(const std::string& words) {
    return OutputOf("bash -eu",
                    BashCompletion(app_) + "COMP_WORDS=(" + words + ")\n" +
                        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_boat\necho \"${COMPREPLY[*]}\"\n");
  }
  // Zsh's: all words from which it selects; FILES: it completes file names.
  std::string CompleteInZsh(const std::string& words) {
    return OutputOf("zsh -feu", "compadd() { shift; echo $*; }\n_files() { echo FILES; }\nwords=(" +
                                    words + ")\nCURRENT=$#words\n" + ZshCompletion(app_));
  }
  static std::string OutputOf(const std::string& shell, const std::string& script) {
    const std::filesystem::path path =
        std::filesystem::path(::testing::TempDir()) / "command_tree_test.sh";
    std::ofstream(path) << script;
    const std::string command = absl::StrCat(shell, " ", path.string(), " 2>&1");
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    char line[4096] = "";
    const bool read = std::fgets(line, sizeof(line), pipe.get()) != nullptr;
    return read ? std::string(line, std::string(line).find('\n')) : "";
  }

  CLI::App app_;
  std::string ship_, rope_, inner_;
  bool fast_ = false;
};

TEST_F(CommandTreeTest, CompletesCommandsAndOptions) {
  EXPECT_EQ(Complete("boat ''"), "pull harbour");
  EXPECT_EQ(Complete("boat h"), "harbour");
  EXPECT_EQ(Complete("boat --v"), "--version");
  EXPECT_EQ(Complete("boat pull --"), "--help --rope --fast");
  EXPECT_EQ(Complete("boat harbour p"), "pull push");
  EXPECT_EQ(Complete("boat harbour pull --"), "--help");
  EXPECT_EQ(Complete("boat harbour push --r"), "--rope");
}

TEST_F(CommandTreeTest, LeavesFilesToBash) {
  EXPECT_EQ(Complete("boat pull x"), "");
  EXPECT_EQ(Complete("boat pull --rope ''"), "");
  EXPECT_EQ(Complete("boat pull --rope -"), "") << "the value of an option";
}

TEST_F(CommandTreeTest, CompletesInZsh) {
  if (!std::filesystem::exists("/usr/bin/zsh")) {
    GTEST_SKIP() << "skipped: no zsh; deploy/setup --tests installs it";
  }
  EXPECT_EQ(CompleteInZsh("boat ''"), "pull harbour");
  EXPECT_EQ(CompleteInZsh("boat pull --"), "--help --rope --fast");
  EXPECT_EQ(CompleteInZsh("boat harbour push --"), "--help --rope");
  EXPECT_EQ(CompleteInZsh("boat pull x"), "FILES");
  EXPECT_EQ(CompleteInZsh("boat pull --rope -"), "FILES") << "the value of an option";
}

TEST_F(CommandTreeTest, ManPageHasEveryCommandAndOption) {
  const std::string page = ManPage(app_, "boat 1.2");
  EXPECT_THAT(page, HasSubstr(".TH BOAT 1 \"\" \"boat 1.2\""));
  EXPECT_THAT(page, HasSubstr("boat \\- pulls ships\n"));
  EXPECT_THAT(page,
              AllOf(HasSubstr(".SS \"boat pull\"\n"), HasSubstr(".SS \"boat harbour push\"")));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-rope\\fR \\fIFILE\\fR\n\\&.of rope\n"));
  EXPECT_THAT(page, HasSubstr(".nf\nExample:\n  boat pull it\n.fi"));
  EXPECT_THAT(page, HasSubstr("Pulls 'one' ship \\e or more"));
  EXPECT_THAT(page, Not(HasSubstr("inner")));
}

TEST(JobManPage, HasTheTextAsItIs) {
  EXPECT_THAT(JobManPage("message A {\n  .b = 'c\\d'\n", "boat 1.2"),
              AllOf(HasSubstr(".TH TUG\\-JOB 5 \"\" \"boat 1.2\""),
                    HasSubstr(".nf\nmessage A {\n  .b = 'c\\ed'\n")));
}

}  // namespace
}  // namespace tug
