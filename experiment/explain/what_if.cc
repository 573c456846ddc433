// SPDX-License-Identifier: Apache-2.0
#include "experiment/explain/what_if.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "config/job_config.h"

namespace tug {
namespace {

using Sets = std::vector<std::string>;

bool Encodes(const JobConfig& job) {
  return job.comm().push_codec().codec_case() != PushCodecConfig::CODEC_NOT_SET;
}
bool PullsFp32(const JobConfig& job) { return job.comm().pull_format() == CommConfig::FP32; }
// A partition has at least one segment, so a smaller size changes nothing.
bool CanHalve(const JobConfig& job) {
  return job.comm().partition_bytes() / 2 >= job.comm().segment_elements() * sizeof(float);
}

std::string Int8Push() { return "comm.push_codec={int8{}}"; }

// One row per change.
struct WhatIfRow {
  const char* name;
  // Arguments: the job, and the slowdown of its slowest virtual worker.
  bool (*applies)(const JobConfig&, double);
  Sets (*sets)(const JobConfig&);
  double link = 1;
};

Sets Servers(const JobConfig& job, uint32_t more) {
  return {absl::StrCat("cluster.servers=", job.cluster().servers() + more)};
}
Sets Partitions(const JobConfig& job, double times) {
  const auto bytes =
      static_cast<uint64_t>(times * static_cast<double>(job.comm().partition_bytes()));
  Sets sets = {absl::StrCat("comm.partition_bytes=", bytes)};
  if (job.comm().credit_bytes() < bytes) sets.push_back(absl::StrCat("comm.credit_bytes=", bytes));
  return sets;
}
bool SchedulesOtherwise(const JobConfig& job, CommConfig::Scheduler scheduler) {
  return job.comm().scheduler() != scheduler;
}

const WhatIfRow kRows[] = {
    {"1 more server", [](const JobConfig&, double) { return true; },
     [](const JobConfig& job) { return Servers(job, 1); }},
    {"2 more servers", [](const JobConfig&, double) { return true; },
     [](const JobConfig& job) { return Servers(job, 2); }},
    {"int8 push", [](const JobConfig& job, double) { return !Encodes(job); },
     [](const JobConfig&) { return Sets{Int8Push()}; }},
    {"int8 pull", [](const JobConfig& job, double) { return PullsFp32(job); },
     [](const JobConfig&) { return Sets{"comm.pull_format=INT8"}; }},
    {"int8 push and pull",
     [](const JobConfig& job, double) { return !Encodes(job) && PullsFp32(job); },
     [](const JobConfig&) {
       return Sets{Int8Push(), "comm.pull_format=INT8"};
     }},
    {"twice the link", [](const JobConfig&, double) { return true; },
     [](const JobConfig&) { return Sets{}; }, 2},
    {"the slowest worker as fast as the others",
     [](const JobConfig&, double slowdown) { return slowdown > 1; },
     [](const JobConfig&) { return Sets{"straggler.slowdown=1"}; }},
    {"scheduler FIFO",
     [](const JobConfig& job, double) { return SchedulesOtherwise(job, CommConfig::FIFO); },
     [](const JobConfig&) { return Sets{"comm.scheduler=FIFO"}; }},
    {"scheduler PRIORITY",
     [](const JobConfig& job, double) { return SchedulesOtherwise(job, CommConfig::PRIORITY); },
     [](const JobConfig&) { return Sets{"comm.scheduler=PRIORITY"}; }},
    {"scheduler BYTESCHEDULER",
     [](const JobConfig& job, double) {
       return SchedulesOtherwise(job, CommConfig::BYTESCHEDULER);
     },
     [](const JobConfig&) { return Sets{"comm.scheduler=BYTESCHEDULER"}; }},
    {"partitions half as large", [](const JobConfig& job, double) { return CanHalve(job); },
     [](const JobConfig& job) { return Partitions(job, 0.5); }},
    {"partitions 4 times as large",
     [](const JobConfig& job, double) {
       return job.comm().partition_bytes() <= (uint64_t{64} << 20);
     },
     [](const JobConfig& job) { return Partitions(job, 4); }},
    {"4 times the credit", [](const JobConfig&, double) { return true; },
     [](const JobConfig& job) {
       return Sets{absl::StrCat("comm.credit_bytes=", 4 * job.comm().credit_bytes()),
                   absl::StrCat("comm.pull_credit_bytes=", 4 * job.comm().pull_credit_bytes())};
     }},
};

// Measured on 16 MiB of FP32 elements.
constexpr double kInt8EncodeBytesPerSecond = 18.8e9;
constexpr double kInt8DecodeBytesPerSecond = 20.7e9;

// Combined rate of work at `bytes_per_second` (0: no time) and additional work at `more`.
double With(double bytes_per_second, double more) {
  return bytes_per_second > 0 ? 1 / (1 / bytes_per_second + 1 / more) : more;
}

}  // namespace

std::vector<WhatIf> WhatIfsFor(const JobConfig& job, double slowdown) {
  std::vector<WhatIf> changes;
  for (const WhatIfRow& row : kRows) {
    if (row.applies(job, slowdown)) changes.push_back({row.name, row.sets(job), row.link});
  }
  return changes;
}

absl::StatusOr<JobConfig> Changed(const JobConfig& job, const WhatIf& change) {
  JobConfig changed = job;
  for (const std::string& set : change.sets) RETURN_IF_ERROR(ApplyOverride(changed, set));
  FillDefaults(changed);
  return changed;
}

SimulatedHosts HostsWith(const SimulatedHosts& hosts, const JobConfig& before,
                         const JobConfig& after, const WhatIf& change) {
  SimulatedHosts with = hosts;
  with.link_bytes_per_second *= change.link;
  if (!Encodes(before) && Encodes(after)) {
    with.encode_bytes_per_second = kInt8EncodeBytesPerSecond;
    with.server_bytes_per_second = With(with.server_bytes_per_second, kInt8DecodeBytesPerSecond);
  }
  if (PullsFp32(before) && !PullsFp32(after)) {
    with.server_bytes_per_second = With(with.server_bytes_per_second, kInt8EncodeBytesPerSecond);
    with.decode_bytes_per_second = With(with.decode_bytes_per_second, kInt8DecodeBytesPerSecond);
  }
  return with;
}

}  // namespace tug
