// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/ended_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "coordinator/membership/next_lines.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/observe/run_reporter.h"
#include "process/run_end.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

// "done, 300 of 300 steps"; "did not finish: 57 of 300 steps"
std::string EndText(const std::optional<RunEnd>& end, uint64_t step, uint64_t steps) {
  return absl::StrCat(end.has_value() ? absl::StrCat(end->reason, ", ") : "did not finish: ",
                      WithThousands(step), " of ", WithThousands(steps), " steps");
}

// "training loss 2.1234; validation loss 2.2000 at step 300; " and BestText; empty: no losses.
std::string LossText(const LossCurve& curve, const std::vector<EvalMetrics>& evals,
                     const TrainConfig& train) {
  std::string text;
  if (!curve.training.empty()) {
    absl::StrAppendFormat(&text, "training loss %.4f", curve.training.back().loss);
  }
  if (evals.empty()) return text;
  absl::StrAppendFormat(&text, "%svalidation loss %.4f at step %d", text.empty() ? "" : "; ",
                        evals.back().loss, evals.back().version);
  const auto best = std::ranges::min_element(evals, [](const EvalMetrics& a, const EvalMetrics& b) {
    return a.loss < b.loss || (std::isnan(b.loss) && !std::isnan(a.loss));
  });
  if (best->version != evals.back().version && best->loss < evals.back().loss) {
    absl::StrAppend(&text, "; ", BestText(best->loss, best->version, train));
  }
  return text;
}

}  // namespace

bool HasEnded(const std::string& run_dir) {
  std::error_code error;
  return !run_dir.empty() && fs::exists(fs::path(run_dir) / kConfigFile, error) &&
         !fs::exists(fs::path(run_dir) / kCoordinatorFile, error);
}

absl::StatusOr<std::string> EndedRunText(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const JobConfig config, LoadJobConfig((fs::path(run_dir) / kConfigFile), {}));
  const std::string metrics = fs::path(run_dir) / kMetricsFile;
  const LossCurve curve = ReadLossCurve(metrics).value_or(LossCurve());
  const std::vector<EvalMetrics> evals =
      ReadEvaluations(metrics).value_or(std::vector<EvalMetrics>());
  const absl::StatusOr<FoundCheckpoint> checkpoint = FindCheckpoint(run_dir);
  const std::optional<RunEnd> end = ReadRunEnd(run_dir);
  const uint64_t seen = curve.training.empty() ? 0 : curve.training.back().step;
  const uint64_t step = end.has_value() ? end->step : seen;

  std::string text =
      absl::StrCat("job ", config.name(), ": ", EndText(end, step, config.train().steps()), "\n");
  if (const std::string losses = LossText(curve, evals, config.train()); !losses.empty()) {
    absl::StrAppend(&text, losses, "\n");
  }
  const RunOutcome outcome = {.run = run_dir,
                              .continue_with = ReadContinueWith(run_dir),
                              .checkpoint = checkpoint.ok() ? checkpoint->manifest.version() : 0,
                              .complete = end.has_value() && end->reason == "done",
                              .stopped_early = end.has_value() && end->reason == "stopped early"};
  absl::StrAppend(&text, "run folder ", run_dir,
                  outcome.checkpoint == 0
                      ? ""
                      : absl::StrCat(", last checkpoint: step ", WithThousands(outcome.checkpoint)),
                  "\n");
  if (!checkpoint.ok() && !absl::IsNotFound(checkpoint.status())) {
    absl::StrAppend(&text, checkpoint.status().message(), "\n");
  } else if (outcome.checkpoint == 0 && step > 0) {
    absl::StrAppend(&text, "the run has no checkpoint\n");
  } else {
    for (const std::string& line : NextLines(config, outcome)) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace tug
