// SPDX-License-Identifier: Apache-2.0
#include "base/files/shell_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tug {

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-_./=,:+@%", std::string(1, c));
  });
  return plain ? word : Quoted(word);
}

std::string ShellCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* command, const std::string& word) {
    command->append(ShellWord(word));
  });
}

}  // namespace tug
