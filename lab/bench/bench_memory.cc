// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_memory.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "lab/bench/bench_sizes.h"
#include "limits/bench_processes.h"

namespace tug {

const char* OrderName(BenchLoad::Order order) {
  switch (order) {
    case BenchLoad::Order::kTogether:
      return "together";
    case BenchLoad::Order::kEvenFirst:
      return "even workers first";
    case BenchLoad::Order::kBackwards:
      return "odd workers backwards";
    case BenchLoad::Order::kStraggler:
      return "last worker late";
  }
  return "";
}

uint64_t AnonymousBytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return 0;
}

absl::StatusOr<MemoryFigures> MeasureMemory(const MemorySetting& setting) {
  BenchSetting job;
  job.blocks =
      static_cast<uint32_t>((setting.parameters * sizeof(float) + job.bytes - 1) / job.bytes);
  job.workers = setting.workers;
  job.bf16 = setting.bf16;
  job.optimizer = true;
  job.credit_bytes = setting.credit_bytes;
  BenchLoad load;
  load.outstanding = job.blocks;
  load.order = setting.order;

  MemoryFigures figures;
  figures.line_bytes = ServerMemoryLine(job.parameters(), job.bf16,
                                        uint64_t{setting.workers} * setting.credit_bytes);
  BenchProcesses processes;
  ASSIGN_OR_RETURN(const std::vector<std::string> endpoints, StartBenchServers(job, processes));
  RETURN_IF_ERROR(StartBenchWorkers(job, load, endpoints, processes));
  BenchWindowOptions window;
  window.length = setting.length;
  window.look = [&] {
    figures.peak_bytes = std::max(figures.peak_bytes, AnonymousBytes(processes.pid(0)));
  };
  ASSIGN_OR_RETURN(const BenchWindow seen, processes.Measure(window));
  figures.clocks = seen.operations / job.blocks / setting.workers;
  return figures;
}

}  // namespace tug
