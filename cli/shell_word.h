#ifndef TUG_CLI_SHELL_WORD_H_
#define TUG_CLI_SHELL_WORD_H_

#include <string>
#include <vector>

namespace tug {

// A word for any shell, whatever is in it: in single quotes. Pure.
std::string Quoted(const std::string& word);

// The same, without quotes where it needs none. Pure.
std::string ShellWord(const std::string& word);

// Words as a line for a shell. Pure.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace tug

#endif  // TUG_CLI_SHELL_WORD_H_
