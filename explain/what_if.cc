// SPDX-License-Identifier: Apache-2.0
#include "explain/what_if.h"

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
  bool (*applies)(const TracedProfile&);
  Sets (*sets)(const JobConfig&);
  WhatIfEffect effect;
};

bool Always(const TracedProfile&) { return true; }
Sets Nothing(const JobConfig&) { return {}; }

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
template <CommConfig::Scheduler kScheduler>
bool SchedulesOtherwise(const TracedProfile& traced) {
  return traced.job.comm().scheduler() != kScheduler;
}

// Workers are added by distributing the virtual workers over more of them, or, if there are too
// few, by halving the samples of each.
bool CanSpread(const TracedProfile& traced) {
  const ClusterConfig& cluster = traced.job.cluster();
  return cluster.virtual_workers() >= 2 * cluster.workers();
}
bool CanHalveSamples(const TracedProfile& traced) {
  return !CanSpread(traced) && !traced.is_replay &&
         traced.job.train().global_batch() % (2 * traced.job.cluster().virtual_workers()) == 0;
}
Sets TwiceTheWorkers(const JobConfig& job) {
  return {absl::StrCat("cluster.workers=", 2 * job.cluster().workers())};
}
Sets TwiceTheVirtualWorkers(const JobConfig& job) {
  const uint32_t virtual_workers = 2 * job.cluster().virtual_workers();
  const uint64_t samples = job.train().global_batch() / virtual_workers;
  Sets sets = {absl::StrCat("cluster.virtual_workers=", virtual_workers),
               absl::StrCat("cluster.workers=", 2 * job.cluster().workers())};
  if (samples % job.train().micro_batch() != 0) {
    sets.push_back(absl::StrCat("train.micro_batch=", samples));
  }
  return sets;
}

const WhatIfRow kRows[] = {
    {"1 more server", Always, [](const JobConfig& job) { return Servers(job, 1); }, {}},
    {"2 more servers", Always, [](const JobConfig& job) { return Servers(job, 2); }, {}},
    {"twice the workers", CanSpread, TwiceTheWorkers, {}},
    {"twice the workers, each with half the samples",
     CanHalveSamples,
     TwiceTheVirtualWorkers,
     {.compute = 2}},
    {"computation twice as fast", Always, Nothing, {.compute = 2}},
    {"the slowest worker as fast as the others",
     [](const TracedProfile& traced) { return traced.slowdown > 1; },
     [](const JobConfig&) { return Sets{"straggler.slowdown=1"}; },
     {}},
    {"int8 push",
     [](const TracedProfile& traced) { return !Encodes(traced.job); },
     [](const JobConfig&) { return Sets{Int8Push()}; },
     {}},
    {"int8 pull",
     [](const TracedProfile& traced) { return PullsFp32(traced.job); },
     [](const JobConfig&) { return Sets{"comm.pull_format=INT8"}; },
     {}},
    {"int8 push and pull",
     [](const TracedProfile& traced) { return !Encodes(traced.job) && PullsFp32(traced.job); },
     [](const JobConfig&) {
       return Sets{Int8Push(), "comm.pull_format=INT8"};
     },
     {}},
    {"twice the link",
     [](const TracedProfile& traced) { return !traced.in_memory; },
     Nothing,
     {.link = 2}},
    {"each process on a host of its own",
     [](const TracedProfile& traced) { return traced.in_memory; },
     Nothing,
     {.own_hosts = true}},
    {"scheduler FIFO",
     SchedulesOtherwise<CommConfig::FIFO>,
     [](const JobConfig&) { return Sets{"comm.scheduler=FIFO"}; },
     {}},
    {"scheduler PRIORITY",
     SchedulesOtherwise<CommConfig::PRIORITY>,
     [](const JobConfig&) { return Sets{"comm.scheduler=PRIORITY"}; },
     {}},
    {"scheduler BYTESCHEDULER",
     SchedulesOtherwise<CommConfig::BYTESCHEDULER>,
     [](const JobConfig&) { return Sets{"comm.scheduler=BYTESCHEDULER"}; },
     {}},
    {"partitions half as large",
     [](const TracedProfile& traced) { return CanHalve(traced.job); },
     [](const JobConfig& job) { return Partitions(job, 0.5); },
     {}},
    {"partitions 4 times as large",
     [](const TracedProfile& traced) {
       return traced.job.comm().partition_bytes() <= (uint64_t{64} << 20);
     },
     [](const JobConfig& job) { return Partitions(job, 4); },
     {}},
    {"4 times the credit",
     Always,
     [](const JobConfig& job) {
       return Sets{absl::StrCat("comm.credit_bytes=", 4 * job.comm().credit_bytes()),
                   absl::StrCat("comm.pull_credit_bytes=", 4 * job.comm().pull_credit_bytes())};
     },
     {}},
};

// Measured on 16 MiB of FP32 elements.
constexpr double kInt8EncodeBytesPerSecond = 18.8e9;
constexpr double kInt8DecodeBytesPerSecond = 20.7e9;

// Combined rate of work at `bytes_per_second` (0: no time) and additional work at `more`.
double With(double bytes_per_second, double more) {
  return bytes_per_second > 0 ? 1 / (1 / bytes_per_second + 1 / more) : more;
}

}  // namespace

std::vector<WhatIf> WhatIfsFor(const TracedProfile& traced) {
  std::vector<WhatIf> changes;
  for (const WhatIfRow& row : kRows) {
    if (row.applies(traced)) changes.push_back({row.name, row.sets(traced.job), row.effect});
  }
  return changes;
}

absl::StatusOr<JobConfig> Changed(const JobConfig& job, const WhatIf& change) {
  JobConfig changed = job;
  for (const std::string& set : change.sets) RETURN_IF_ERROR(ApplyOverride(changed, set));
  FillDefaults(changed);
  ReplayProfile& profile = *changed.mutable_replay()->mutable_resolved_profile();
  for (ReplayBlock& block : *profile.mutable_blocks()) {
    block.set_forward_ms(block.forward_ms() / change.effect.compute);
    block.set_backward_ms(block.backward_ms() / change.effect.compute);
  }
  return changed;
}

SimulatedHosts HostsWith(const TracedProfile& traced, const JobConfig& after,
                         const WhatIf& change) {
  const JobConfig& before = traced.job;
  SimulatedHosts with = traced.hosts;
  if (change.effect.own_hosts) {
    const SimulatedHosts linked = TestbedHosts(traced.own_link_bytes_per_second);
    with.link_bytes_per_second = linked.link_bytes_per_second;
    with.unevenness = linked.unevenness;
  }
  with.link_bytes_per_second *= change.effect.link;
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
