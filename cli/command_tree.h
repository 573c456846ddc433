// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_COMMAND_TREE_H_
#define TUG_CLI_COMMAND_TREE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// The command with this name directly below `app`, a hidden one too; null if there is none.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name);
// Names of the commands directly below `app`, and of its options ("--set"); not of hidden ones.
std::vector<std::string> CommandNames(const CLI::App& app);
std::vector<std::string> OptionNames(const CLI::App& app);

// The command line in other formats, generated from the parser's tree of commands, so that no text
// is written twice. Omits commands and options without a group, which are for programs.

// The page tug(1), in man(7) macros. `version`: output of `tug --version`.
std::string ManPage(const CLI::App& app, const std::string& version);

// The page tug-job(5): the text of `tug help job`.
std::string JobManPage(const std::string& job_help, const std::string& version);

// A script for bash 4 or newer that completes commands and options; where neither applies, bash
// completes file names.
std::string BashCompletion(const CLI::App& app);

// The same for zsh: the file _tug of a folder in $fpath.
std::string ZshCompletion(const CLI::App& app);

}  // namespace tug

#endif  // TUG_CLI_COMMAND_TREE_H_
