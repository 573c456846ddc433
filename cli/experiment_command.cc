#include "cli/commands.h"
#include "cli/experiment_scheduling.h"

namespace tug {

void AddExperimentCommand(CLI::App& app, Command& chosen) {
  CLI::App* experiment = app.add_subcommand(
      "experiment", "Runs the same job in several ways, and reports on them side by side");
  experiment->require_subcommand(1);
  experiment->footer(
      "Examples:\n"
      "  sudo tug experiment scheduling --hosts 6 --link 200mbit\n"
      "  tug experiment scheduling --profiles vgg16 --ratios 1 --link 1gbit\n"
      "Each has its own --help.");
  AddExperimentScheduling(*experiment, chosen);
}

}  // namespace tug
