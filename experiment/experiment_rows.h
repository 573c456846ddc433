#ifndef TUG_EXPERIMENT_EXPERIMENT_ROWS_H_
#define TUG_EXPERIMENT_EXPERIMENT_ROWS_H_

// The raw results of an experiment: OUT/rows.jsonl, a JSON object on one line for every run that
// has ended, in the order in which they did.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiment/run_figures.h"

namespace tug {

inline constexpr char kRowsFile[] = "rows.jsonl";

// Where, when and by what a run was made.
struct RunOrigin {
  std::string started;  // UTC, RFC 3339
  std::string command;  // that does it again
  std::string version;  // of tug
  std::string build;    // identity of the program
  std::string commit;   // of the checkout it was started in; empty: not known
  std::string machine;  // cores, memory, system
};

struct ExperimentRow {
  std::string case_name;
  uint32_t repeat = 0;
  uint64_t seed = 0;
  std::string error;                                      // why it failed; empty: it did not
  std::string folder;                                     // of the run, below OUT
  std::vector<std::string> settings;                      // --set values
  std::map<std::string, std::optional<double>> measures;  // all there are; none of a failed run
  std::vector<LinkTraffic> links;                         // of each host of a testbed, in order
  RunOrigin origin;

  std::optional<double> Find(const std::string& measure) const;
};

// Without the end of the line. Pure.
std::string RowLine(const ExperimentRow& row);
// Errors: INVALID_ARGUMENT. Pure.
absl::StatusOr<ExperimentRow> ParseRow(const std::string& line);

struct ExperimentRows {
  std::vector<ExperimentRow> rows;
  uint64_t whole_bytes = 0;  // what follows is a line that was cut off by a crash
};
// None where there is no such file. Errors: DATA_LOSS, naming the line, for one that is whole and
// no row; those of reading.
absl::StatusOr<ExperimentRows> ReadRows(const std::string& path);

// Appends a row behind `whole_bytes`, whatever is there, and returns when it is on storage. Returns
// the new size. Errors: as FileError.
absl::StatusOr<uint64_t> AppendRow(const std::string& path, uint64_t whole_bytes,
                                   const ExperimentRow& row);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPERIMENT_ROWS_H_
