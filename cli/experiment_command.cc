// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiment/run/built_in_experiments.h"
#include "experiment/run/experiment_job.h"
#include "experiment/run/experiment_offload.h"
#include "experiment/run/experiment_runner.h"
#include "process/commands.h"

namespace tug {
namespace {

void AddFileOptions(CLI::App& experiment, ExperimentFileArguments& a) {
  experiment.add_option("FILE", a.file,
                        absl::StrCat("Experiment file (tug help experiment), or one that comes "
                                     "with tug: ",
                                     absl::StrJoin(BuiltInExperimentNames(), ", ")));
  experiment
      .add_option("--out", a.out,
                  "Folder for report and runs; started again with the same one, what is missing "
                  "is run [runs/NAME]")
      ->type_name("DIR");
  experiment
      .add_option("--set", a.settings,
                  "Override a field of the job in all cases, or of `place` (place.testbed.hosts): "
                  "path.to.field=value; axes come after it. May be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  experiment.add_option("--repeats", a.repeats, "Times that every case is run [as the file says]");
  experiment
      .add_option("--case", a.only_case,
                  "Run only cases with these values of axes: \"link=none\", or a whole name")
      ->type_name("NAME");
  experiment.add_flag("--dry-run", a.dry_run,
                      "Check the file, list cases and commands, and run nothing");
  experiment.add_flag("--retry-failed", a.retry_failed, "Run those again that have failed");
}

// Refuses options before the name of another experiment, which would not see them.
void RefuseFileOptions(const CLI::App& experiment) {
  for (const CLI::Option* option : experiment.get_options()) {
    if (option->count() == 0 || option == experiment.get_help_ptr()) continue;
    throw CLI::ValidationError(
        option->get_name(),
        absl::StrCat("is of experiment files; ", experiment.get_subcommands().front()->get_name(),
                     " has options of its own (--help)"));
  }
}

}  // namespace

void AddExperimentCommand(CLI::App& app, Command& chosen) {
  CLI::App* experiment = app.add_subcommand(
      "experiment", "Runs the same job in several ways, and reports on them side by side");
  experiment->require_subcommand(0, 1);
  auto a = std::make_shared<ExperimentFileArguments>();
  AddFileOptions(*experiment, *a);
  experiment->footer(
      "A file says what is varied, how often it is repeated and what is measured; its runs can be "
      "interrupted and gone on with. Leaves report.html (needs no other file), report.md, "
      "pictures, "
      "rows.jsonl and a run folder for each run.\n"
      "Examples:\n"
      "  tug experiment deploy/experiments/partition_credit.textproto --dry-run\n"
      "  tug experiment sync --repeats 5\n"
      "  sudo tug experiment sync --set place.testbed.link=200mbit --out runs/sync_links\n"
      "  tug experiment mine.textproto --out /tmp/mine --set train.steps=100\n"
      "  sudo tug experiment scheduling --set place.testbed.loopback=false --out runs/links\n"
      "  tug experiment exchange --case link=none\n"
      "  tug experiment offload --set device=CPU\n"
      "The last one has options of its own (--help).");
  AddExperimentOffload(*experiment, chosen);
  experiment->callback([a, experiment, &chosen] {
    if (!experiment->get_subcommands().empty()) return RefuseFileOptions(*experiment);
    if (a->file.empty()) throw CLI::RequiredError("FILE, or one of the experiments,");
    a->command = CommandLine("tug experiment", *experiment);
    chosen = [a] { return RunExperimentFile(*a); };
  });
}

}  // namespace tug
