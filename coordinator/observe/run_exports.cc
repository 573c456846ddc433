// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_exports.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/observe/step_columns.h"
#include "optimizer/learning_rate.h"

namespace tug {
namespace {

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

constexpr int kFirstStepColumn = 3;  // after timeline and step

double NumberOf(const StepColumn& column, const StepRow& row) {
  return std::visit([](auto number) { return static_cast<double>(number); }, column.value(row));
}

// A line of steps.csv after timeline and step.
std::string StepLine(absl::FunctionRef<std::string(const StepColumn&)> text) {
  std::vector<std::string> texts(StepColumns().size());
  for (const StepColumn& column : StepColumns()) {
    texts.at(static_cast<size_t>(column.csv_column - kFirstStepColumn)) = text(column);
  }
  return absl::StrJoin(texts, ",");
}

EventFiles::Scalars ScalarsOf(const StepRow& row, bool replays) {
  EventFiles::Scalars scalars;
  for (const StepColumn& column : StepColumns()) {
    const double number = NumberOf(column, row);
    if (*column.tag == 0 || (replays && column.omitted == StepColumn::kInReplays) ||
        (!(number > 0) && column.omitted == StepColumn::kUnlessPositive)) {
      continue;
    }
    scalars.push_back({column.tag, number});
  }
  return scalars;
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
    const std::string header = absl::StrCat(
        "timeline,step,", StepLine([](const StepColumn& column) { return column.name; }));
    ASSIGN_OR_RETURN(exports.steps_, CsvTable::Open(absl::StrCat(run.run_dir, "/", kStepTable),
                                                    header, run.taken_up));
    ASSIGN_OR_RETURN(exports.evaluations_,
                     CsvTable::Open(absl::StrCat(run.run_dir, "/", kEvaluationTable),
                                    kEvaluationColumns, run.taken_up));
  }
  return exports;
}

void RunExports::Step(const StepMetrics& metrics, double at_seconds, absl::Time now, bool there) {
  const StepRow row = {
      .metrics = metrics,
      .at_seconds = at_seconds,
      .learning_rate = LearningRateAt(config_.optimizer(), static_cast<double>(metrics.step - 1)),
      .staleness = staleness_};
  if (events_.has_value() && there) events_->Skip(metrics.step);
  if (events_.has_value() && !there) {
    events_->Write(metrics.step, now, ScalarsOf(row, config_.compute() == JobConfig::REPLAY));
  }
  if (!steps_.has_value() || there) return;
  steps_->Row(timeline_, metrics.step,
              StepLine([&](const StepColumn& column) { return Number(NumberOf(column, row)); }));
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
