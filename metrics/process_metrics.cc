// SPDX-License-Identifier: Apache-2.0
#include "metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace tug {
namespace {

constexpr MetricRow<ProcessFigures> kRows[] = {
    {"process_cpu_seconds_total", MetricType::kCounter, "seconds", "",
     "CPU time of all threads, user and system", Field<&ProcessFigures::cpu_seconds>},
    {"process_resident_memory_bytes", MetricType::kGauge, "bytes", "",
     "Memory in use, including memory shared with other processes",
     Field<&ProcessFigures::resident_bytes>},
    {"process_virtual_memory_bytes", MetricType::kGauge, "bytes", "", "Address space in use",
     Field<&ProcessFigures::virtual_bytes>},
    {"process_open_fds", MetricType::kGauge, "files", "", "Open file descriptors",
     Field<&ProcessFigures::open_files>},
    {"process_max_fds", MetricType::kGauge, "files", "", "Maximum number of open file descriptors",
     Field<&ProcessFigures::max_files>},
    {"process_start_time_seconds", MetricType::kGauge, "seconds", "",
     "Start time of the process, since the Unix epoch", Field<&ProcessFigures::start_seconds>},
};

// Words of /proc/self/stat after the program's name, which may contain spaces. The first is field 3
// of proc(5).
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

double BootSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

uint64_t OpenFiles() {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; file != end;
       file.increment(error)) {
    ++count;
    if (error) break;
  }
  return count > 0 ? count - 1 : 0;  // excludes the descriptor of the folder itself
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  constexpr size_t kUserTime = 11, kSystemTime = 12, kStartTime = 19, kVirtual = 20, kResident = 21;
  ProcessFigures figures;
  const std::vector<std::string> fields = StatFields();
  if (fields.size() > kResident) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    figures.cpu_seconds = (std::stod(fields[kUserTime]) + std::stod(fields[kSystemTime])) / ticks;
    figures.start_seconds = BootSeconds() + std::stod(fields[kStartTime]) / ticks;
    figures.virtual_bytes = std::stoull(fields[kVirtual]);
    figures.resident_bytes =
        std::stoull(fields[kResident]) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  figures.open_files = OpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.max_files = limit.rlim_cur;
  return figures;
}

std::span<const MetricRow<ProcessFigures>> ProcessMetrics() { return kRows; }

}  // namespace tug
