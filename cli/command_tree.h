// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_COMMAND_TREE_H_
#define TUG_CLI_COMMAND_TREE_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// The command line in other formats, generated from the parser's tree of commands, so that no text
// is written twice. Omits commands and options without a group, which are for programs.

// The page tug(1), in man(7) macros. `version`: output of `tug --version`.
std::string ManPage(const CLI::App& app, const std::string& version);

// A script for bash 4 or newer that completes commands and options; where neither applies, bash
// completes file names.
std::string BashCompletion(const CLI::App& app);

}  // namespace tug

#endif  // TUG_CLI_COMMAND_TREE_H_
