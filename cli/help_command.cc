#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "proto/job_config.h"

namespace tug {

void AddHelpCommand(CLI::App& app, Command& chosen) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("help", "Describes the job file: every field, its default and range");
  command->add_option("TOPIC", *topic, "What to describe: job")
      ->required()
      ->check(CLI::IsMember({"job"}));
  command->footer("Example:\n  tug help job");
  command->callback([topic, &chosen] {
    chosen = [topic] {
      std::printf("%s", FieldHelp().c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace tug
