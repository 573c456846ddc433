#ifndef TUG_EXPERIMENT_MEASURE_H_
#define TUG_EXPERIMENT_MEASURE_H_

// What an experiment file may ask to be measured: one visible table. A new measure is a row of it
// and a line in docs/experiment_files.md. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiment/run_figures.h"
#include "experiment/spread.h"
#include "proto/job.pb.h"

namespace tug {

// A run that has ended, as measures see it.
struct MeasuredRun {
  RunFigures figures;
  JobConfig config;  // as resolved
  uint64_t warm_up_steps = 0;
  double wall_seconds = 0;  // of the whole process tree
  std::optional<uint64_t> at_samples;
  std::optional<double> target_loss;
  std::vector<LinkTraffic> links;  // of each host of a testbed; may be empty
};

enum class Better { kLower, kHigher };

struct Measure {
  const char* name;
  const char* unit;  // of what is shown; "" : a plain number
  Better better;
  // How cases are compared: losses by their difference.
  Comparing comparing;
  int digits;      // after the point
  bool from_zero;  // whether pictures begin at 0
  const char* meaning;
  // None: this run has no such thing.
  std::optional<double> (*of)(const MeasuredRun& run);
};

std::span<const Measure> Measures();
// Null: there is none of this name.
const Measure* FindMeasure(const std::string& name);

// "step_time, batch_rate, ...": for messages.
std::vector<std::string> MeasureNames();

// Samples that had gone into updates when job step `step` was over.
double SamplesAt(const JobConfig& config, uint64_t step);

}  // namespace tug

#endif  // TUG_EXPERIMENT_MEASURE_H_
