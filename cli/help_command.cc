// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "cli/command_tree.h"
#include "config/job_config.h"
#include "experiment/plan/experiment_plan.h"
#include "process/commands.h"
#include "process/version.h"

namespace tug {

void AddHelpCommand(CLI::App& app, Command& chosen) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("help", "Describes a file format: every field, its default and range");
  command
      ->add_option("TOPIC", *topic,
                   "job or experiment: fields of the file; man: manual page of all commands "
                   "(tug.1); bash: completion script")
      ->required()
      ->check(CLI::IsMember({"job", "experiment", "man", "bash"}));
  command->footer(
      "Examples:\n  tug help job\n  tug help experiment\n  tug help man | man -l -\n  "
      "source <(tug help bash)");
  command->callback([&app, topic, &chosen] {
    chosen = [&app, topic] {
      const std::string text = *topic == "man"          ? ManPage(app, VersionText())
                               : *topic == "bash"       ? BashCompletion(app)
                               : *topic == "experiment" ? ExperimentHelp()
                                                        : FieldHelp();
      std::printf("%s", text.c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace tug
