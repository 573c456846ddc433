// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_PLAN_H_
#define TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_PLAN_H_

// The plan of an experiment file: its cases, with the settings of each. All of it is checked before
// anything runs: every case is a job that the validator accepts. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/experiment/measures/measure.h"
#include "lab/experiment/plan/experiment_axes.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Limits on the cost of a mistake.
inline constexpr uint64_t kExperimentFileLimitBytes = 1 << 20;
inline constexpr size_t kMaxCases = 2000;
inline constexpr uint32_t kMaxRepeats = 1000;

struct PlannedCase {
  std::vector<size_t> values;           // by axis: index of the label
  std::string name;                     // "policy=asp, workers=4"; "the job" without axes
  std::string folder;                   // of its runs: "003-asp-4"
  std::vector<std::string> overrides;   // of the job, except the seed and a made-up text
  JobConfig config;                     // resolved, with the first seed
  uint64_t warm_up_steps = 0;           // job steps
  std::optional<uint64_t> own_warm_up;  // set by a condition; before sync.local_steps divides it
  Place place;
};

struct PlannedFigure {
  const Measure* measure = nullptr;
  std::optional<size_t> over, by, panels;  // axes
  std::string title;
  const Measure* part = nullptr;
};

struct PlannedVerdict {
  const Measure* measure = nullptr;
  double margin = 0;
  std::string yes, no;
  std::optional<size_t> best_over;  // an axis
};

struct ExperimentPlan {
  Experiment file;
  std::string source;    // name for messages
  std::string job_text;  // of the base job, as text proto
  std::vector<PlannedAxis> axes;
  std::vector<PlannedCase> cases;  // the last axis varies fastest
  uint32_t repeats = 1;
  uint64_t first_seed = 1;
  std::vector<const Measure*> measures;
  std::vector<PlannedFigure> figures;
  std::vector<PlannedVerdict> verdicts;
  std::string made_up_text_path;  // empty: none

  uint64_t seed(uint32_t repeat) const { return first_seed + repeat; }
  size_t runs() const { return cases.size() * repeats; }
  // Values of an axis that some case has, in the order of the axis.
  std::vector<size_t> ValuesInCases(size_t axis) const;
  bool HasSection(Experiment::Section section) const;
  // The case that a case is compared with; none: no baseline, or the case is the baseline.
  std::optional<size_t> BaselineOf(size_t number) const;
  // Axes of which the baseline has a value, in order.
  std::vector<size_t> BaselineAxes() const;
  // Everything that results depend on: cases, settings, seeds, but neither the number of repeats
  // nor the presentation. Results of one plan may be continued by another with the same identity.
  nlohmann::ordered_json Identity() const;
};

// The job file that the experiment file names; empty: the experiment file contains the job. Errors:
// those of ParseTextProto.
absl::StatusOr<std::string> JobFileOf(const std::string& text, const std::string& source);

// Inputs of PlanExperiment.
struct ExperimentSource {
  std::string text;                // of the file
  std::string name;                // of the file, for messages
  std::string job_text, job_name;  // of the job file that it names
  std::string made_up_text_path;   // path at which a made-up text will be written
  // From the command line; settings of axes are applied after them.
  std::vector<std::string> settings;
  std::optional<uint32_t> repeats;
};

// Errors: INVALID_ARGUMENT, one line, "file:line: what; remedy".
absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentSource& source);

// All --set values of a case in one repeat.
std::vector<std::string> OverridesOf(const ExperimentPlan& plan, const PlannedCase& one,
                                     uint32_t repeat);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_PLAN_H_
