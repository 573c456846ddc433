// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_SHELL_WORD_H_
#define TUG_BASE_FILES_SHELL_WORD_H_

#include <string>
#include <vector>

namespace tug {

// Quotes any word for any shell, in single quotes. Pure.
std::string Quoted(const std::string& word);

// Quoted only if the word needs it. Pure.
std::string ShellWord(const std::string& word);

// Joins words to a shell command line. Pure.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace tug

#endif  // TUG_BASE_FILES_SHELL_WORD_H_
