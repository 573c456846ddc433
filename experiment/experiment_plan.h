#ifndef TUG_EXPERIMENT_EXPERIMENT_PLAN_H_
#define TUG_EXPERIMENT_EXPERIMENT_PLAN_H_

// What an experiment file comes to: its cases, with what is set for each. All of it is checked
// before anything runs: every case is a job that the validator takes. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiment/experiment_axes.h"
#include "experiment/measure.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Each bounds what a mistake can cost.
inline constexpr uint64_t kExperimentFileLimitBytes = 1 << 20;
inline constexpr size_t kMostCases = 2000;
inline constexpr uint32_t kMostRepeats = 1000;

struct PlannedCase {
  std::vector<size_t> values;           // the label of each axis
  std::string name;                     // "policy=asp, workers=4"; "the job" without axes
  std::string folder;                   // of its runs: "03-asp-4"
  std::vector<std::string> overrides;   // of the job, but for the seed and a made-up text
  JobConfig config;                     // as it comes to, with the first seed
  uint64_t warm_up_steps = 0;           // job steps
  std::optional<uint64_t> own_warm_up;  // as a condition says; before sync.local_steps
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
  std::string source;    // for messages
  std::string job_text;  // of the base, as text proto
  std::vector<PlannedAxis> axes;
  std::vector<PlannedCase> cases;  // the last axis goes round fastest
  uint32_t repeats = 1;
  uint64_t first_seed = 1;
  std::vector<const Measure*> measures;
  std::vector<PlannedFigure> figures;
  std::vector<PlannedVerdict> verdicts;
  std::string made_up_text_path;  // empty: there is none

  uint64_t seed(uint32_t repeat) const { return first_seed + repeat; }
  size_t runs() const { return cases.size() * repeats; }
  bool HasSection(Experiment::Section section) const;
  // What it is compared with; none: nothing, or it is it.
  std::optional<size_t> BaselineOf(size_t number) const;
  // Axes that the baseline has a value of, in order.
  std::vector<size_t> BaselineAxes() const;
  // Whatever its results rest on: cases, settings, seeds, but neither the number of repeats nor
  // how results are shown. Results of one may be gone on with by another that has the same.
  nlohmann::ordered_json Identity() const;
};

// The job file that the experiment file names; empty: it has the job in it. Errors: those of
// ParseTextProto.
absl::StatusOr<std::string> JobFileOf(const std::string& text, const std::string& source);

// What an experiment is planned from.
struct ExperimentSource {
  std::string text;                // of the file
  std::string name;                // of it, for messages
  std::string job_text, job_name;  // of the job file that it names
  std::string made_up_text_path;   // where a made-up text will be
  // Of the command line; axes come after them.
  std::vector<std::string> settings;
  std::optional<uint32_t> repeats;
};

// Errors: INVALID_ARGUMENT, one line, "file:line: what; remedy".
absl::StatusOr<ExperimentPlan> PlanExperiment(const ExperimentSource& source);

// All --set values of a case in one repeat.
std::vector<std::string> OverridesOf(const ExperimentPlan& plan, const PlannedCase& one,
                                     uint32_t repeat);

// Every field of an experiment file with its comment, and the measures.
std::string ExperimentHelp();

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPERIMENT_PLAN_H_
