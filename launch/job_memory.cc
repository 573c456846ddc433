// SPDX-License-Identifier: Apache-2.0
#include "launch/job_memory.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "config/job_config.h"
#include "coordinator/placement/segment_holders.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "model/job_model.h"
#include "model/layout.h"
#include "model/transformer/memory.h"
#include "server/segments/memory.h"

namespace tug {
namespace {

constexpr uint32_t kByteSymbols = 256;
constexpr uint32_t kGuessedSymbols = uint32_t{1} << 16;
constexpr uint32_t kGuessedClasses = 1000;

// Segments of the job's first placement, with each server on its own host, so that none caches
// weights for its workers (placement.host_weight_cache).
View FirstPlacement(const JobConfig& job, const SegmentTable& table) {
  SegmentHolders::Options options{.replicas = job.sync().replicas(),
                                  .lanes_per_server = job.cluster().lanes_per_server()};
  for (uint32_t id = 0; id < table.size(); ++id) {
    options.segment_bytes.push_back(table.segment(id).bytes());
  }
  SegmentHolders holders(std::move(options));
  std::vector<uint32_t> servers(job.cluster().servers());
  std::iota(servers.begin(), servers.end(), 0);
  holders.Begin(servers);
  View view;
  for (const LaneId& lane : holders.Lanes()) {
    Lane& added = *view.add_lanes();
    added.set_server_node_id(lane.server);
    added.set_index_on_server(lane.index);
    added.set_host_id(lane.server + 1);
  }
  for (const uint32_t lane : holders.Owners()) view.add_lane_of_segment(lane);
  for (const std::vector<uint32_t>& copies : holders.Copies()) {
    SegmentCopies& entry = *view.add_copies();
    entry.mutable_lane_of_segment()->Add(copies.begin(), copies.end());
  }
  return view;
}

}  // namespace

uint32_t SymbolsWithoutText(const JobConfig& job) {
  const DataConfig& data = job.data();
  if (data.random().samples() > 0) return data.random().symbols();
  uint32_t symbols = 0;
  if (data.tokenizer() == DataConfig::BYTE) symbols = kByteSymbols;
  if (data.tokenizer() == DataConfig::SENTENCEPIECE && data.tokenizer_path().empty()) {
    symbols = data.pieces();
  }
  if (symbols == 0 || TextFormOf(job.model()) == TextForm::kRunning) return symbols;
  return symbols + kLineSymbols;
}

JobMemory PredictJobMemory(const JobConfig& job, const SegmentTable& table, bool on_gpu) {
  const ModelOptions model = ModelOptionsOf(job);
  const CommConfig::Format format = job.comm().pull_format();
  const uint32_t workers = job.cluster().workers();
  JobMemory memory;
  memory.carried = (job.cluster().virtual_workers() + workers - 1) / workers;
  WorkerHolding holding = WorkerHoldingOf(job, memory.carried);
  holding.on_gpu = on_gpu;
  memory.worker_bytes = PredictWorkerBytes(model, format, holding) +
                        LocalStepBytes(model, format, job.sync(), job.optimizer(), memory.carried);
  memory.activation_bytes = PredictActivationBytes(model);
  for (uint32_t id = 0; id < table.size(); ++id) memory.weight_bytes += table.segment(id).bytes();
  const View view = FirstPlacement(job, table);
  for (uint32_t id = 0; id < job.cluster().servers(); ++id) {
    const ServerMemory server = PredictServerMemory(job, table, view, id);
    if (server.line_bytes <= memory.server_bytes) continue;
    memory.server_bytes = server.line_bytes;
    memory.checkpoint_bytes = server.checkpoint_bytes;
  }
  return memory;
}

std::optional<JobMemory> GuessJobMemory(JobConfig job) {
  if (job.compute() == JobConfig::REPLAY || job.model().external()) return std::nullopt;
  const uint32_t known = std::max(SymbolsWithoutText(job), job.model().vocabulary());
  const uint32_t symbols = known > 0 ? known : kGuessedSymbols;
  job.mutable_data()->set_resolved_symbols(symbols);
  uint32_t classes = std::max(DataClasses(job.data()), job.model().classes());
  if (classes == 0 && job.model().family() == ModelConfig::ENCODER) {
    classes = kGuessedClasses;
    job.mutable_model()->set_classes(classes);
  }
  const absl::StatusOr<SegmentTable> table = SegmentTable::Create(
      ModelLayout(job.model(), symbols, classes), job.comm().segment_elements());
  if (!table.ok()) return std::nullopt;
  return PredictJobMemory(job, *table, job.device() == ClusterConfig::CUDA);
}

}  // namespace tug
