// SPDX-License-Identifier: Apache-2.0
// tug explain: explains the duration of a traced run's steps, and predicts the effect of changes.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/observe/run_folder.h"
#include "explain/explain_text.h"
#include "explain/path_file.h"
#include "explain/record_command.h"
#include "explain/traced_profile.h"
#include "explain/what_if_prediction.h"
#include "nlohmann/json.hpp"
#include "plan/link_rate.h"
#include "process/commands.h"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct ExplainArguments {
  std::string run;
  uint64_t step = 0;  // 0: all
  bool json = false;
  std::string link;  // empty: from the trace
};

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }
void Print(const OrderedJson& json) {
  Print(json.dump(1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace) + "\n");
}

absl::Status ExplainStep(const ExplainArguments& arguments, const std::vector<StepPath>& paths) {
  for (const StepPath& path : paths) {
    if (path.clock + 1 != arguments.step) continue;
    if (arguments.json) {
      Print(ChainJson(path));
    } else {
      Print(ChainText(path));
    }
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("step ", arguments.step,
                                          " has no critical path: the trace has steps ",
                                          paths.front().clock + 1, " to ", paths.back().clock + 1));
}

// The traced run, or one line with the command that records a trace of it.
absl::StatusOr<TracedRun> ReadRun(const ExplainArguments& arguments) {
  TracedRun run{.folder = arguments.run};
  absl::StatusOr<JobConfig> config = ReadRunConfig(arguments.run);
  if (absl::IsNotFound(config.status())) {
    return absl::NotFoundError(
        absl::StrCat(arguments.run, " is not a run folder: name one, e.g. runs/job-1"));
  }
  RETURN_IF_ERROR(config.status());
  run.config = *std::move(config);
  if (!arguments.link.empty()) {
    ASSIGN_OR_RETURN(const double bits, ParseLinkRate(arguments.link));
    run.link_bytes_per_second = PayloadBytesPerSecond(bits);
  }
  return run;
}

// The error of a run without a trace, with the remedy.
absl::Status WithRemedy(const absl::Status& status, const TracedRun& run) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(status.message(),
                                          "; this command records a run that has one: ",
                                          RecordCommand(run.folder, run.config, /*hosts=*/1, {})));
}

void PrintJson(const std::vector<StepPath>& paths, const absl::StatusOr<WhatIfReport>& report) {
  OrderedJson json = BlameJson(paths);
  json["what_if"] = report.ok() ? WhatIfJson(*report) : OrderedJson(nullptr);
  if (!report.ok()) json["no_what_if"] = std::string(report.status().message());
  Print(json);
}

absl::Status Explain(const ExplainArguments& arguments) {
  ASSIGN_OR_RETURN(const TracedRun run, ReadRun(arguments));
  const std::string path = absl::StrCat(arguments.run, "/", kTraceFile);
  const absl::StatusOr<nlohmann::json> trace = ReadTraceJson(path);
  RETURN_IF_ERROR(WithRemedy(trace.status(), run));
  const absl::StatusOr<std::vector<StepPath>> paths = PathsIn(*trace, path);
  RETURN_IF_ERROR(WithRemedy(paths.status(), run));
  if (arguments.step > 0) return ExplainStep(arguments, *paths);
  // A job that cannot be simulated is still explained; its first line says why it cannot.
  const absl::StatusOr<TracedProfile> traced = ProfileOfTrace(*trace, run);
  if (!arguments.json) {
    if (!traced.ok()) Print(absl::StrCat(traced.status().message(), "\n\n"));
    Print(BlameReport(*paths));
    std::fflush(stdout);  // predictions take a while
  }
  const absl::StatusOr<WhatIfReport> report =
      traced.ok() ? PredictWhatIfs(*traced, BlameOf(*paths).step_seconds)
                  : absl::StatusOr<WhatIfReport>(traced.status());
  if (arguments.json) {
    PrintJson(*paths, report);
  } else if (traced.ok()) {
    Print(absl::StrCat(
        "\n", report.ok() ? WhatIfText(*report) : absl::StrCat(report.status().message(), "\n")));
  }
  return absl::OkStatus();
}

}  // namespace

void AddExplainCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explains the step time of a traced run, and predicts what would shorten it");
  command->add_option("RUN", arguments->run, "Run folder of a job that was run with --trace")
      ->required();
  command
      ->add_option("--step", arguments->step,
                   "Print only the critical path of this step, part by part")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "Print everything as JSON, in seconds");
  command
      ->add_option(
          "--link", arguments->link,
          "Link rate of a host for the predictions, in tc's notation (200mbit) [from the trace; "
          "1gbit for hosts of their own, if the job ran on one host]")
      ->type_name("RATE");
  command->footer(
      "The critical path of a step is the chain of waits from its end back to its start, over all "
      "processes; docs/explain.md explains how to read it.\n"
      "Examples:\n"
      "  tug train job.textproto --run-dir runs/a --trace\n"
      "  tug explain runs/a\n"
      "  tug explain runs/a --step 12");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Explain(*arguments); }; });
}

}  // namespace tug
