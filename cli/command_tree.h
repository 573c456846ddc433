#ifndef TUG_CLI_COMMAND_TREE_H_
#define TUG_CLI_COMMAND_TREE_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// What the command line takes, for other readers than its own parser: all from the same tree of
// commands, so that no text is written twice. Commands and options without a group are for
// programs, and left out.

// The page tug(1), in man(7) macros. `version`: of `tug --version`.
std::string ManPage(const CLI::App& app, const std::string& version);

// A script for bash 4 or newer that completes commands and options; where neither fits, bash
// completes names of files.
std::string BashCompletion(const CLI::App& app);

}  // namespace tug

#endif  // TUG_CLI_COMMAND_TREE_H_
