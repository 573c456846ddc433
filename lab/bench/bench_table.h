// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_TABLE_H_
#define TUG_LAB_BENCH_BENCH_TABLE_H_

// Measurements to compare, one per row. All rows are measured once, then all again, so that drift
// of the machine affects all of them; ratios are taken within a run.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "limits/bench_processes.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// Result of one run of a row. NaN: not measured.
struct BenchFigures {
  double gigabytes_per_second = 0;  // payload, both directions added
  double operations_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;  // of all processes
  // By latency series, in microseconds.
  double p50_us[kLatencySeries];
  double p99_us[kLatencySeries];
};
BenchFigures FiguresOf(const BenchWindow& window);

// The `q` quantile of the values (nearest rank); NaN if there are none.
double Quantile(std::vector<double> values, double q);

struct BenchRow {
  std::string name;
  std::function<absl::StatusOr<BenchWindow>()> measure;
  // Whether the row's figure is its latency (series 0) or its rate; also used for ratios.
  bool by_latency = false;
  // Indices of the rows that this one is divided by.
  std::vector<size_t> limits;
  std::vector<BenchFigures> runs;  // filled in by MeasureRows
};

// Measures every row once, and repeats that `runs` times. Errors: the first one, with the row's
// name.
absl::Status MeasureRows(std::vector<BenchRow>& rows, int runs);

// The row's figure divided by that of each limit, run by run.
std::vector<std::vector<double>> RatiosOf(const std::vector<BenchRow>& rows, size_t row);

// Prints medians with their range to stdout.
void PrintRows(const std::string& title, const std::vector<BenchRow>& rows);

// Every run of every row, and the ratios, for documents.
nlohmann::json RowsAsJson(const std::vector<BenchRow>& rows);

// Machine of the measurement: processor, cores, kernel, this build.
nlohmann::json MachineAsJson();

// Errors: those of the system, naming the file.
absl::Status WriteJsonFile(const std::string& path, const nlohmann::json& json);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_TABLE_H_
