#ifndef TUG_CLI_SHELL_WORD_H_
#define TUG_CLI_SHELL_WORD_H_

#include <string>

namespace tug {

// A word for any shell, whatever is in it: in single quotes. Pure.
std::string Quoted(const std::string& word);

}  // namespace tug

#endif  // TUG_CLI_SHELL_WORD_H_
