// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_MEASURES_MEASURE_H_
#define TUG_LAB_EXPERIMENT_MEASURES_MEASURE_H_

// Measures that an experiment file may request, in one visible table. A new measure is a row of it
// and a line in docs/experiment_files.md. Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/experiment/measures/run_figures.h"
#include "lab/experiment/measures/spread.h"
#include "proto/job.pb.h"

namespace tug {

// A completed run, as input for measures.
struct MeasuredRun {
  RunFigures figures;
  JobConfig config;  // as resolved
  uint64_t warm_up_steps = 0;
  double wall_seconds = 0;  // of the whole process tree
  std::optional<uint64_t> at_samples;
  std::optional<double> target_loss;
  std::vector<LinkTraffic> links;  // by host of a testbed; may be empty
};

enum class Better { kLower, kHigher };

struct Measure {
  const char* name;   // in experiment files and rows
  const char* title;  // on pages, in axes and table headings
  const char* unit;   // of displayed values
  Better better;
  // How cases are compared: losses by difference.
  Comparing comparing;
  int digits;      // decimals
  bool from_zero;  // whether axes begin at 0
  const char* meaning;
  // None: not applicable to this run.
  std::optional<double> (*of)(const MeasuredRun& run);
};

std::span<const Measure> Measures();
// Null: unknown name.
const Measure* FindMeasure(const std::string& name);

// "step time (ms)": the name of an axis or a column.
std::string MeasureHeading(const Measure& measure);
// REQUIRES: a measure has this name.
std::string MeasureHeading(const std::string& name);

// "step_time, batch_rate, ...": for messages.
std::vector<std::string> MeasureNames();

// Samples used by updates when job step `step` was complete.
double SamplesAt(const JobConfig& config, uint64_t step);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_MEASURES_MEASURE_H_
