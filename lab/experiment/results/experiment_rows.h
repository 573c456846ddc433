// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_ROWS_H_
#define TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_ROWS_H_

// The raw results of an experiment: OUT/rows.jsonl, with a JSON object on one line for every
// completed run, in the order of completion.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/experiment/measures/run_figures.h"

namespace tug {

inline constexpr char kRowsFile[] = "rows.jsonl";

// Where, when and with what a run was made.
struct RunOrigin {
  std::string started;  // UTC, RFC 3339
  std::string command;  // that repeats the run
  std::string version;  // of tug
  std::string build;    // hash of the program
  std::string commit;   // of the checkout in which it was started; empty: unknown
  std::string machine;  // cores, memory, system
};

struct ExperimentRow {
  std::string case_name;
  uint32_t repeat = 0;
  uint64_t seed = 0;
  std::string error;                                      // why it failed; empty: success
  std::string folder;                                     // of the run, relative to OUT
  std::vector<std::string> settings;                      // --set values
  std::map<std::string, std::optional<double>> measures;  // all; empty for a failed run
  std::vector<LinkTraffic> links;                         // by host of a testbed
  RunOrigin origin;

  std::optional<double> Find(const std::string& measure) const;
};

// Without the newline. Pure.
std::string RowLine(const ExperimentRow& row);
// Errors: INVALID_ARGUMENT. Pure.
absl::StatusOr<ExperimentRow> ParseRow(const std::string& line);

struct ExperimentRows {
  std::vector<ExperimentRow> rows;
  uint64_t whole_bytes = 0;  // size of the complete lines; the rest is a line cut off by a crash
};
// Empty if the file does not exist. Errors: DATA_LOSS, naming the line, for a complete line that is
// not a row; those of reading.
absl::StatusOr<ExperimentRows> ReadRows(const std::string& path);

// Writes a row at offset `whole_bytes`, replacing what follows, and syncs it to storage. Returns
// the new size. Errors: FileError.
absl::StatusOr<uint64_t> AppendRow(const std::string& path, uint64_t whole_bytes,
                                   const ExperimentRow& row);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RESULTS_EXPERIMENT_ROWS_H_
