#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "experiment/experiment_plan.h"
#include "proto/job_config.h"

namespace tug {

void AddHelpCommand(CLI::App& app, Command& chosen) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("help", "Describes a file: every field, its default and range");
  command->add_option("TOPIC", *topic, "What to describe: job, experiment")
      ->required()
      ->check(CLI::IsMember({"job", "experiment"}));
  command->footer("Examples:\n  tug help job\n  tug help experiment");
  command->callback([topic, &chosen] {
    chosen = [topic] {
      std::printf("%s", (*topic == "job" ? FieldHelp() : ExperimentHelp()).c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace tug
