// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_job.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/memory/large_blocks.h"
#include "base/status_macros.h"
#include "blocks/segment_table.h"
#include "config/job_config.h"
#include "proto/process_name.h"

namespace tug {
namespace {

constexpr uint64_t kLargestSegment = uint64_t{1} << 18;  // elements; the default of a job
constexpr absl::Duration kLookAtLanes = absl::Milliseconds(100);

JobConfig MakeConfig(const BenchSetting& setting) {
  JobConfig config;
  config.mutable_cluster()->set_servers(setting.servers);
  config.mutable_cluster()->set_workers(setting.workers);
  config.mutable_cluster()->set_lanes_per_server(setting.lanes);
  config.mutable_cluster()->set_virtual_workers(setting.virtual_workers());
  // Without clipping a segment closes alone: it does not wait for the global norm.
  config.mutable_optimizer()->set_clip(OptimizerConfig::OFF);
  config.mutable_checkpoint()->set_interval(0);
  CommConfig& comm = *config.mutable_comm();
  comm.set_segment_elements(std::min(setting.bytes / sizeof(float), kLargestSegment));
  comm.set_partition_bytes(setting.bytes);
  comm.set_credit_bytes(std::max(setting.credit_bytes, setting.bytes));
  comm.set_checksum(setting.checksum);
  if (setting.bf16) {
    PushCodecConfig& codec = *comm.mutable_push_codec();
    codec.mutable_bf16();
    codec.set_min_elements(0);
    codec.set_vectors(true);
  }
  comm.set_pull_format(setting.bf16 ? CommConfig::BF16 : CommConfig::FP32);
  comm.set_shared_memory(setting.transport == "shm");
  FillDefaults(config, /*cores=*/1);
  return config;
}

BlockTable MakeBlocks(const BenchSetting& setting) {
  BlockTable table;
  for (uint32_t b = 0; b < setting.blocks; ++b) {
    BlockSpec& block = *table.add_blocks();
    block.set_name(absl::StrCat("block-", b));
    TensorSpec& tensor = *block.add_tensors();
    tensor.set_name("all");
    tensor.add_shape(setting.bytes / sizeof(float));
    tensor.set_init_mean(1);
  }
  return table;
}

// A server: reports its lanes' endpoints, receives those of all lanes, and serves until it is
// killed.
absl::Status Serve(const BenchSetting& setting, uint32_t node_id, BenchChild& child) {
  KeepLargeBlocksMapped();  // as server/daemon.cc does
  ASSIGN_OR_RETURN(const std::unique_ptr<LaneJob> job, MakeBenchJob(setting, node_id));
  ASSIGN_OR_RETURN(const std::string address, BenchAddress(setting.server_host));
  std::vector<std::unique_ptr<LaneThread>> lanes;
  std::vector<std::string> endpoints;
  for (uint32_t i = 0; i < setting.lanes; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<LaneThread> lane, LaneThread::Bind(*job, i, address));
    endpoints.push_back(lane->endpoint());
    lanes.push_back(std::move(lane));
  }
  child.Say(absl::StrJoin(endpoints, " "));
  ASSIGN_OR_RETURN(const std::string all, child.Listen());
  const View view = MakeBenchView(setting, absl::StrSplit(all, ' '));
  for (const std::unique_ptr<LaneThread>& lane : lanes) lane->SetView(view);
  while (true) {
    for (const std::unique_ptr<LaneThread>& lane : lanes) {
      const LaneReport report = lane->report();
      RETURN_IF_ERROR(report.failure);
      for (const ShardNotice& notice : report.notices) return absl::InternalError(notice.text);
    }
    absl::SleepFor(kLookAtLanes);
  }
}

}  // namespace

uint64_t NewBenchJobNumber() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

absl::StatusOr<std::unique_ptr<LaneJob>> MakeBenchJob(const BenchSetting& setting,
                                                      uint32_t server_node_id) {
  JobConfig config = MakeConfig(setting);
  ASSIGN_OR_RETURN(SegmentTable table,
                   SegmentTable::Create(MakeBlocks(setting), config.comm().segment_elements()));
  auto job = std::make_unique<LaneJob>(LaneJob{.job = setting.job,
                                               .server_node_id = server_node_id,
                                               .config = std::move(config),
                                               .table = std::move(table)});
  job->leave_out_update = !setting.optimizer;
  job->keys = setting.keys;
  return job;
}

View MakeBenchView(const BenchSetting& setting, const std::vector<std::string>& endpoints) {
  View view;
  view.set_number(1);
  view.set_timeline(1);
  *view.mutable_blocks() = MakeBlocks(setting);
  for (size_t i = 0; i < endpoints.size(); ++i) {
    Lane& lane = *view.add_lanes();
    lane.set_endpoint(endpoints[i]);
    lane.set_server_node_id(static_cast<uint32_t>(i) / setting.lanes + 1);
    lane.set_index_on_server(static_cast<uint32_t>(i) % setting.lanes);
  }
  const uint64_t elements = setting.bytes / sizeof(float);
  const uint64_t segments = elements / std::min(elements, kLargestSegment);
  for (uint32_t b = 0; b < setting.blocks; ++b) {
    for (uint64_t s = 0; s < segments; ++s) {
      view.add_lane_of_segment(b % static_cast<uint32_t>(endpoints.size()));
    }
  }
  return view;
}

absl::StatusOr<std::vector<std::string>> StartBenchServers(const BenchSetting& setting,
                                                           BenchProcesses& processes) {
  for (uint32_t s = 0; s < setting.servers; ++s) {
    RETURN_IF_ERROR(
        processes.Start(ProcessName(kServerRole, s), setting.server_host,
                        [=](BenchChild& child) { return Serve(setting, s + 1, child); }));
  }
  std::vector<std::string> endpoints;
  for (uint32_t s = 0; s < setting.servers; ++s) {
    ASSIGN_OR_RETURN(const std::string line, processes.Hear(s));
    for (const absl::string_view endpoint : absl::StrSplit(line, ' ')) {
      endpoints.emplace_back(endpoint);
    }
  }
  for (uint32_t s = 0; s < setting.servers; ++s) {
    processes.Tell(s, absl::StrJoin(endpoints, " "));
  }
  return endpoints;
}

absl::StatusOr<BenchWindow> MeasureExchange(const BenchSetting& setting, const BenchLoad& load,
                                            const BenchWindowOptions& options) {
  BenchProcesses processes;
  ASSIGN_OR_RETURN(const std::vector<std::string> endpoints, StartBenchServers(setting, processes));
  RETURN_IF_ERROR(StartBenchWorkers(setting, load, endpoints, processes));
  return processes.Measure(options);
}

}  // namespace tug
