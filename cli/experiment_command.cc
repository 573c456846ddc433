#include "cli/commands.h"
#include "cli/experiment_compression.h"
#include "cli/experiment_exchange.h"
#include "cli/experiment_offload.h"
#include "cli/experiment_scheduling.h"
#include "cli/experiment_sync.h"

namespace tug {

void AddExperimentCommand(CLI::App& app, Command& chosen) {
  CLI::App* experiment = app.add_subcommand(
      "experiment", "Runs the same job in several ways, and reports on them side by side");
  experiment->require_subcommand(1);
  experiment->footer(
      "Examples:\n"
      "  sudo tug experiment scheduling --hosts 6 --link 200mbit\n"
      "  tug experiment scheduling --profiles vgg16 --ratios 1 --link 1gbit\n"
      "  tug experiment sync\n"
      "  tug experiment compression --codecs fp32,int8/int8 --links none,100mbit\n"
      "  sudo tug experiment exchange --links none,1gbit,200mbit\n"
      "  tug experiment offload --set device=CPU\n"
      "Each has its own --help.");
  AddExperimentScheduling(*experiment, chosen);
  AddExperimentSync(*experiment, chosen);
  AddExperimentCompression(*experiment, chosen);
  AddExperimentExchange(*experiment, chosen);
  AddExperimentOffload(*experiment, chosen);
}

}  // namespace tug
