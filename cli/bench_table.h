#ifndef TUG_CLI_BENCH_TABLE_H_
#define TUG_CLI_BENCH_TABLE_H_

// Measurements that are read beside one another: each is a row; all rows are measured once, then
// all again, so that a drift of the machine meets all of them; ratios are taken within a run.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bench_processes.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// What one run of a row gave. NaN: not measured.
struct BenchFigures {
  double gigabytes_per_second = 0;  // payload, both directions added
  double operations_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;  // of all processes
  // By series of latency, microseconds.
  double p50_us[kLatencySeries];
  double p99_us[kLatencySeries];
};
BenchFigures FiguresOf(const BenchWindow& window);

// The value below which a fraction `q` of the values lies (nearest rank); NaN if there are none.
double Quantile(std::vector<double> values, double q);

struct BenchRow {
  std::string name;
  std::function<absl::StatusOr<BenchWindow>()> measure;
  // Whether the row is read by its latency (series 0) or by its rate; decides the ratios too.
  bool by_latency = false;
  // Rows (by index) that this one is divided by.
  std::vector<size_t> limits;
  std::vector<BenchFigures> runs;  // filled in by MeasureRows
};

// Measures every row once, `runs` times over. Errors: the first one, with the row's name.
absl::Status MeasureRows(std::vector<BenchRow>& rows, int runs);

// The row's figure divided by that of each limit, run by run.
std::vector<std::vector<double>> RatiosOf(const std::vector<BenchRow>& rows, size_t row);

// For people, on stdout: medians with their range.
void PrintRows(const std::string& title, const std::vector<BenchRow>& rows);

// For documents: every run of every row, and the ratios.
nlohmann::json RowsAsJson(const std::vector<BenchRow>& rows);

// What a figure rests on: processor, cores, kernel, this build.
nlohmann::json MachineAsJson();

// Errors: those of the system, naming the file.
absl::Status WriteJsonFile(const std::string& path, const nlohmann::json& json);

}  // namespace tug

#endif  // TUG_CLI_BENCH_TABLE_H_
