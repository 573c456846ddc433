// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_STEP_COLUMNS_H_
#define TUG_COORDINATOR_OBSERVE_STEP_COLUMNS_H_

// The figures of a step in the files of a run: metrics.jsonl, steps.csv, TensorBoard's event files.
// A new figure is one row in step_columns.cc, and one in docs/metrics.md.

#include <cstdint>
#include <span>
#include <variant>

#include "coordinator/progress/step_metrics.h"

namespace tug {

struct StepRow {
  const StepMetrics& metrics;
  double at_seconds = 0;
  double learning_rate = 0;  // not in metrics.jsonl, like staleness
  double staleness = 0;
};

struct StepColumn {
  enum Omitted { kNever, kUnlessPositive, kInReplays };

  const char* name;  // in metrics.jsonl and steps.csv
  int csv_column;    // in steps.csv, after 1 (timeline) and 2 (step); a new column is the last
  bool in_log;       // in metrics.jsonl
  const char* tag;   // in event files; empty: not there
  // kUnlessPositive: from metrics.jsonl and event files. kInReplays: from event files.
  Omitted omitted;
  const char* meaning;
  std::variant<double, uint64_t> (*value)(const StepRow&);
};

// In the order of the keys of metrics.jsonl.
std::span<const StepColumn> StepColumns();

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_STEP_COLUMNS_H_
