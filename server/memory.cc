#include "server/memory.h"

#include <algorithm>

#include "optimizer/optimizer.h"
#include "proto/sync_mode.h"
#include "scheduler/schedule_points.h"

namespace tug {
namespace {

constexpr uint64_t kWeights = 4;  // bytes a parameter, here and below
constexpr uint64_t kCopiesForPulls = 4;
constexpr uint64_t kSum = 4;
constexpr uint64_t kOtherBytes = uint64_t{64} << 20;

// Of pushes of a worker: the job's, or the most that the tuner may choose.
uint64_t MostCredit(const CommConfig& comm, const SegmentTable& table) {
  uint64_t most = comm.credit_bytes();
  if (comm.scheduler() != CommConfig::AUTO) return most;
  for (const SchedulePoint& point : SchedulePoints(table))
    most = std::max(most, point.credit_bytes);
  return most;
}

}  // namespace

ServerMemory PredictServerMemory(const JobConfig& config, const SegmentTable& table,
                                 const View& view, uint32_t server_node_id) {
  uint64_t parameters = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Lane& lane = view.lanes(static_cast<int>(view.lane_of_segment(static_cast<int>(id))));
    if (lane.server_node_id() == server_node_id) parameters += table.segment(id).elements();
  }
  const uint64_t arriving =
      std::min<uint64_t>(MostCredit(config.comm(), table) * config.cluster().workers(),
                         uint64_t{config.cluster().virtual_workers()} * 4 * parameters);
  const auto optimizer = MakeLaneOptimizer(config.optimizer(), config.sync());
  const uint64_t state = kWeights + (optimizer->keeps_m() ? 4 : 0) + (optimizer->keeps_v() ? 4 : 0);
  uint64_t beside = parameters * (kCopiesForPulls + kSum);
  if (SyncModeOf(config.sync().policy()).update_per_push) {
    const uint64_t all = uint64_t{config.cluster().virtual_workers()} * kWeights * parameters;
    beside = std::min(config.comm().pull_credit_bytes() * config.cluster().workers(), all);
    if (config.sync().delay_compensation() > 0) beside += all;
  }
  return {.line_bytes = parameters * state + beside + arriving + kOtherBytes,
          .checkpoint_bytes = parameters * state};
}

uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id) {
  const ServerMemory memory = PredictServerMemory(config, table, view, server_node_id);
  return memory.line_bytes + memory.checkpoint_bytes;
}

}  // namespace tug
