// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_exports.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "coordinator/observe/run_folder.h"
#include "optimizer/learning_rate.h"

namespace tug {
namespace {

constexpr char kStepColumns[] =
    "timeline,step,at_seconds,loss,learning_rate,tokens,seconds,tokens_per_second,compute_seconds,"
    "wait_seconds,communication_seconds,overlap,mean_seconds,mean_wait_seconds,straggle_seconds,"
    "skipped,pushed_bytes,pulled_bytes,staleness,residual_norm";
constexpr char kEvaluationColumns[] =
    "timeline,step,at_seconds,loss,perplexity,accuracy,targets,final";

// Shortest digits that identify the number; whole numbers, such as counts, without an exponent.
std::string Number(double number) {
  constexpr double kLargestCount = 1e15;
  const bool whole = std::abs(number) < kLargestCount && std::trunc(number) == number;
  char text[40];
  const std::to_chars_result end =
      std::to_chars(std::begin(text), std::end(text), number,
                    whole ? std::chars_format::fixed : std::chars_format::general);
  return std::string(text, end.ptr);
}

}  // namespace

absl::StatusOr<RunExports> RunExports::Open(const JobConfig& config, const Run& run) {
  RunExports exports(config);
  exports.timeline_ = run.start.number;
  if (config.watch().tensorboard()) {
    exports.events_.emplace(absl::StrCat(run.run_dir, "/", kTensorboardFolder),
                            run.start.version + 1);
  }
  if (config.watch().csv()) {
    ASSIGN_OR_RETURN(exports.steps_, CsvTable::Open(absl::StrCat(run.run_dir, "/", kStepTable),
                                                    kStepColumns, run.taken_up));
    ASSIGN_OR_RETURN(exports.evaluations_,
                     CsvTable::Open(absl::StrCat(run.run_dir, "/", kEvaluationTable),
                                    kEvaluationColumns, run.taken_up));
  }
  return exports;
}

void RunExports::Step(const StepMetrics& metrics, double at_seconds, absl::Time now, bool there) {
  const bool replays = config_.compute() == JobConfig::REPLAY;
  const double rate = LearningRateAt(config_.optimizer(), static_cast<double>(metrics.step - 1));
  if (events_.has_value() && there) events_->Skip(metrics.step);
  if (events_.has_value() && !there) {
    EventFiles::Scalars scalars = {
        {"speed/tokens_per_second", metrics.tokens_per_second()},
        {"speed/step_seconds", metrics.seconds},
        {"speed/compute_seconds", metrics.compute_seconds},
        {"speed/wait_seconds", metrics.wait_seconds},
        {"speed/overlap", metrics.overlap},
        {"bytes/pushed", static_cast<double>(metrics.pushed_bytes)},
        {"bytes/pulled", static_cast<double>(metrics.pulled_bytes)},
        {"sync/staleness", staleness_},
    };
    if (metrics.residual_norm > 0) scalars.push_back({"norm/residual", metrics.residual_norm});
    if (!replays) {
      scalars.push_back({"train/loss", metrics.loss});
      scalars.push_back({"train/learning_rate", rate});
    }
    events_->Write(metrics.step, now, scalars);
  }
  if (!steps_.has_value() || there) return;
  const double numbers[] = {at_seconds,
                            metrics.loss,
                            rate,
                            static_cast<double>(metrics.tokens),
                            metrics.seconds,
                            metrics.tokens_per_second(),
                            metrics.compute_seconds,
                            metrics.wait_seconds,
                            metrics.communication_seconds,
                            metrics.overlap,
                            metrics.mean_seconds,
                            metrics.mean_wait_seconds,
                            metrics.straggle_seconds,
                            static_cast<double>(metrics.skipped),
                            static_cast<double>(metrics.pushed_bytes),
                            static_cast<double>(metrics.pulled_bytes),
                            staleness_,
                            metrics.residual_norm};
  steps_->Row(timeline_, metrics.step,
              absl::StrJoin(numbers, ",", [](std::string* out, double number) {
                absl::StrAppend(out, Number(number));
              }));
}

void RunExports::Eval(const EvalMetrics& metrics, double at_seconds, absl::Time now, bool there) {
  if (events_.has_value() && !there) {
    events_->Write(metrics.version, now,
                   {{"validation/loss", metrics.loss}, {"validation/accuracy", metrics.accuracy}});
  }
  if (!evaluations_.has_value() || there) return;
  evaluations_->Row(timeline_, metrics.version,
                    absl::StrCat(Number(at_seconds), ",", Number(metrics.loss), ",",
                                 Number(std::exp(metrics.loss)), ",", Number(metrics.accuracy), ",",
                                 metrics.targets, ",", metrics.final ? 1 : 0));
}

void RunExports::BeginTimeline(uint32_t number, uint64_t version, absl::Time now, bool there) {
  timeline_ = number;
  if (!events_.has_value()) return;
  if (there) {
    events_->Skip(version);
  } else {
    events_->GoBack(version, now);
  }
}

void RunExports::SetSync(const SyncFigures& figures) {
  if (figures.updates == sync_.updates) return;
  const double updates = static_cast<double>(figures.updates) - static_cast<double>(sync_.updates);
  const double before = sync_.MeanStaleness() * static_cast<double>(sync_.updates);
  const double now = figures.MeanStaleness() * static_cast<double>(figures.updates);
  // Counts of lost servers disappear, so the difference may be 0 or negative.
  staleness_ = updates > 0 ? std::max(0.0, (now - before) / updates) : figures.MeanStaleness();
  sync_ = figures;
}

absl::Status RunExports::status() const {
  if (events_.has_value()) RETURN_IF_ERROR(events_->status());
  if (steps_.has_value()) RETURN_IF_ERROR(steps_->status());
  return evaluations_.has_value() ? evaluations_->status() : absl::OkStatus();
}

}  // namespace tug
