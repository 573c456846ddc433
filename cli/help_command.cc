// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"
#include "base/status_macros.h"
#include "cli/command_tree.h"
#include "config/job_help.h"
#include "process/commands.h"
#include "process/version.h"

namespace tug {
namespace {

using Words = std::vector<std::string>;

// Help of the command that `words` name; no words: of tug.
absl::StatusOr<std::string> CommandHelp(const CLI::App& app, const Words& words) {
  const CLI::App* command = &app;
  Words path = {app.get_name()};
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<std::string> names = CommandNames(*command);
    const CLI::App* found = FindCommand(*command, words[i]);
    if (found == nullptr) {
      if (i == 0) names.insert(names.end(), {"job", "man", "man-job", "bash", "zsh"});
      return absl::InvalidArgumentError(
          absl::StrCat("tug help: unknown topic \"", absl::StrJoin(words, " "), "\"",
                       DidYouMean(words[i], names), "; `tug help` lists the commands"));
    }
    command = found;
    path.push_back(words[i]);
  }
  return app.get_formatter()->make_help(command, absl::StrJoin(path, " "),
                                        CLI::AppFormatMode::Normal);
}

absl::StatusOr<std::string> Help(const CLI::App& app, std::string (*experiment_help)(),
                                 const Words& words) {
  const std::string topic = words.empty() ? "" : words.front();
  if (topic == "job" && words.size() == 2) return FieldHelp(words[1]);
  if (words.size() == 1) {
    if (topic == "job") return JobHelp();
    if (topic == "experiment" && experiment_help != nullptr) return experiment_help();
    if (topic == "man") return ManPage(app, VersionText());
    if (topic == "man-job") return JobManPage(JobHelp(), VersionText());
    if (topic == "bash") return BashCompletion(app);
    if (topic == "zsh") return ZshCompletion(app);
  }
  return CommandHelp(app, words);
}

}  // namespace

void AddHelpCommand(CLI::App& app, Command& chosen, std::string (*experiment_help)()) {
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("help", "Describes a command, or a field of a job file");
  command->add_option(
      "TOPIC", *words,
      "A command; `job` or `job FIELD`: fields of a job file with defaults and ranges; "
      "`experiment`: fields of an experiment file; `man`, `man-job`: tug(1), tug-job(5); `bash`, "
      "`zsh`: completion");
  command->footer(
      "Examples:\n  tug help train\n  tug help job train.steps\n  tug help job\n"
      "  tug help experiment\n  tug help man | man -l -\n  source <(tug help bash)");
  command->callback([&app, experiment_help, words, &chosen] {
    chosen = [&app, experiment_help, words]() -> absl::Status {
      ASSIGN_OR_RETURN(const std::string text, Help(app, experiment_help, *words));
      std::printf("%s", text.c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace tug
