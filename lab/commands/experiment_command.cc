// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/lab_program.h"
#include "lab/experiment/run/built_in_experiments.h"
#include "lab/experiment/run/experiment_job.h"
#include "lab/experiment/run/experiment_offload.h"
#include "lab/experiment/run/experiment_runner.h"
#include "lab/lab_commands.h"

namespace tug {
namespace {

void AddFileOptions(CLI::App& experiment, ExperimentFileArguments& a) {
  experiment.add_option(
      "FILE", a.file,
      absl::StrCat("Experiment file (tug help experiment), or a built-in experiment: ",
                   absl::StrJoin(BuiltInExperimentNames(), ", ")));
  experiment
      .add_option(
          "--out", a.out,
          "Folder for report and runs; in an existing one, only missing runs are made [runs/NAME]")
      ->type_name("DIR");
  experiment
      .add_option("--set", a.settings,
                  "Override a field of the job in all cases, or of `place` (place.testbed.hosts): "
                  "path.to.field=value; axes override it. May be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  experiment.add_option("--repeats", a.repeats, "Runs of each case [the file's number]");
  experiment
      .add_option("--case", a.only_case,
                  "Run only the cases with these axis values, such as \"link=none\", or the case "
                  "with this full name")
      ->type_name("NAME");
  experiment.add_flag("--dry-run", a.dry_run,
                      "Check the file, list cases and commands, and run nothing");
  experiment.add_flag("--retry-failed", a.retry_failed, "Repeat the runs that failed");
}

// Refuses options before the name of another experiment, which would not see them.
void RefuseFileOptions(const CLI::App& experiment) {
  for (const CLI::Option* option : experiment.get_options()) {
    if (option->count() == 0 || option == experiment.get_help_ptr()) continue;
    throw CLI::ValidationError(option->get_name(),
                               absl::StrCat("applies to experiment files only; ",
                                            experiment.get_subcommands().front()->get_name(),
                                            " has its own options (--help)"));
  }
}

}  // namespace

void AddExperimentCommand(CLI::App& app, Command& chosen) {
  CLI::App* experiment = app.add_subcommand(kExperimentCommand.name, kExperimentCommand.summary);
  experiment->require_subcommand(0, 1);
  auto a = std::make_shared<ExperimentFileArguments>();
  AddFileOptions(*experiment, *a);
  experiment->footer(
      "An experiment file defines what is varied, repeated and measured; an interrupted experiment "
      "can be continued. Writes report.html (self-contained), report.md, pictures, rows.jsonl and "
      "one run folder per run.\n"
      "Examples:\n"
      "  tug experiment deploy/experiments/partition_credit.textproto --dry-run\n"
      "  tug experiment sync --repeats 5\n"
      "  sudo tug experiment sync --set place.testbed.link=200mbit --out runs/sync_links\n"
      "  tug experiment mine.textproto --out /tmp/mine --set train.steps=100\n"
      "  sudo tug experiment scheduling --set place.testbed.loopback=false --out runs/links\n"
      "  tug experiment exchange --case link=none\n"
      "  tug experiment offload --set device=CPU\n"
      "`tug experiment offload` has its own options (--help).");
  AddExperimentOffload(*experiment, chosen);
  experiment->callback([a, experiment, &chosen] {
    if (!experiment->get_subcommands().empty()) return RefuseFileOptions(*experiment);
    if (a->file.empty()) throw CLI::RequiredError("FILE, or one of the experiments,");
    a->command = CommandLine("tug experiment", *experiment);
    chosen = [a] { return RunExperimentFile(*a); };
  });
}

}  // namespace tug
