// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_table.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/replace_file.h"
#include "limits/bench_stats.h"
#include "nlohmann/json.hpp"
#include "process/machine_text.h"

namespace tug {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double Rate(const BenchFigures& figures) { return figures.gigabytes_per_second; }

// `figure` of every run that has it; empty if it was not measured.
template <typename Figure>
std::vector<double> OfRuns(const BenchRow& row, const Figure& figure) {
  std::vector<double> values;
  for (const BenchFigures& run : row.runs) {
    if (const double value = figure(run); std::isfinite(value)) values.push_back(value);
  }
  return values;
}

std::string Text(const std::vector<double>& values, int decimals) {
  return values.empty() ? "" : FormatSpread(SpreadOf(values), decimals);
}

// A readable number of digits for any unit.
std::string Short(const std::vector<double>& values) {
  if (values.empty()) return "";
  const double median = SpreadOf(values).median;
  return absl::StrFormat("%.*f", median < 10 ? 2 : median < 1000 ? 1 : 0, median);
}

std::string Latency(const BenchRow& row, size_t series) {
  const std::string p50 = Short(OfRuns(row, [&](const auto& f) { return f.p50_us[series]; }));
  const std::string p99 = Short(OfRuns(row, [&](const auto& f) { return f.p99_us[series]; }));
  return p50.empty() ? "" : absl::StrCat(p50, " / ", p99);
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return kNone;
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

BenchFigures FiguresOf(const BenchWindow& window) {
  BenchFigures figures;
  figures.gigabytes_per_second = window.GigabytesPerSecond();
  figures.operations_per_second = static_cast<double>(window.operations) / window.seconds;
  const double gigabytes = static_cast<double>(window.there_bytes + window.back_bytes) * 1e-9;
  figures.cpu_seconds_per_gigabyte = gigabytes > 0 ? window.cpu_seconds / gigabytes : kNone;
  for (size_t s = 0; s < kLatencySeries; ++s) {
    figures.p50_us[s] = Quantile(window.latencies_us[s], 0.5);
    figures.p99_us[s] = Quantile(window.latencies_us[s], 0.99);
  }
  return figures;
}

absl::Status MeasureRows(std::vector<BenchRow>& rows, int runs) {
  for (int run = 0; run < runs; ++run) {
    for (BenchRow& row : rows) {
      const absl::StatusOr<BenchWindow> window = row.measure();
      if (!window.ok()) {
        return absl::Status(window.status().code(),
                            absl::StrCat(row.name, ": ", window.status().message()));
      }
      row.runs.push_back(FiguresOf(*window));
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<double>> RatiosOf(const std::vector<BenchRow>& rows, size_t row) {
  const auto figure = [&](const BenchFigures& run) {
    return rows[row].by_latency ? run.p50_us[0] : Rate(run);
  };
  std::vector<std::vector<double>> ratios;
  for (const size_t limit : rows[row].limits) {
    std::vector<double>& of_limit = ratios.emplace_back();
    for (size_t run = 0; run < rows[row].runs.size(); ++run) {
      const double ratio = figure(rows[row].runs[run]) / figure(rows[limit].runs[run]);
      if (std::isfinite(ratio)) of_limit.push_back(ratio);
    }
  }
  return ratios;
}

void PrintRows(const std::string& title, const std::vector<BenchRow>& rows) {
  std::printf("\n%s\n%-36s%-24s%13s%10s  %-18s%s\n", title.c_str(), "", "GB/s payload",
              "operations/s", "CPU s/GB", "answered us", "committed us p50 / p99");
  for (size_t r = 0; r < rows.size(); ++r) {
    const BenchRow& row = rows[r];
    const std::vector<double> rates = OfRuns(row, Rate);
    const auto operations = [](const BenchFigures& f) { return f.operations_per_second; };
    const auto cpu = [](const BenchFigures& f) { return f.cpu_seconds_per_gigabyte; };
    std::printf("%-36s%-24s%13s%10s  %-18s%s\n", row.name.c_str(),
                Text(rates, !rates.empty() && SpreadOf(rates).median < 1 ? 3 : 2).c_str(),
                Short(OfRuns(row, operations)).c_str(), Short(OfRuns(row, cpu)).c_str(),
                Latency(row, 0).c_str(), Latency(row, 1).c_str());
    const std::vector<std::vector<double>> ratios = RatiosOf(rows, r);
    for (size_t l = 0; l < ratios.size(); ++l) {
      std::printf("    %-22s of %s\n", Text(ratios[l], 3).c_str(),
                  rows[row.limits[l]].name.c_str());
    }
  }
  std::fflush(stdout);
}

nlohmann::json RowsAsJson(const std::vector<BenchRow>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (size_t r = 0; r < rows.size(); ++r) {
    nlohmann::json row = {{"name", rows[r].name}, {"runs", nlohmann::json::array()}};
    for (const BenchFigures& f : rows[r].runs) {
      row["runs"].push_back({{"gigabytes_per_second", f.gigabytes_per_second},
                             {"operations_per_second", f.operations_per_second},
                             {"cpu_seconds_per_gigabyte", f.cpu_seconds_per_gigabyte},
                             {"p50_us", f.p50_us},
                             {"p99_us", f.p99_us}});
    }
    const std::vector<std::vector<double>> ratios = RatiosOf(rows, r);
    for (size_t l = 0; l < ratios.size(); ++l) {
      row["ratio_to"][rows[rows[r].limits[l]].name] = ratios[l];
    }
    all.push_back(std::move(row));
  }
  return all;
}

nlohmann::json MachineAsJson() {
  utsname name{};
  uname(&name);
  return {{"processor", CpuModel()},
          {"cores", std::thread::hardware_concurrency()},
          {"kernel", name.release}};
}

absl::Status WriteJsonFile(const std::string& path, const nlohmann::json& json) {
  return WriteFile(path, json.dump(1) + "\n");
}

}  // namespace tug
