// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_WORKER_NODE_H_
#define TUG_LAB_SIMULATE_WORKER_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/memory/lease.h"
#include "control/control_board.h"
#include "lab/simulate/node.h"
#include "lab/simulate/simulated_exchange.h"
#include "worker/core/worker_core.h"
#include "worker/gradients/gradient_pool.h"
#include "worker/gradients/residual_parts.h"

namespace tug {

// A worker core with an exchange in virtual time, a fake computation and a fake disk.
class SimulatedWorker final : public SimulatedNode, private WorkerActions {
 public:
  using SimulatedNode::SimulatedNode;

  void Collect(SimulationResult& result) override;

 private:
  // ---- the node ----
  void OnView(const View& view) override;
  void OnDeath() override { exchange_.reset(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;

  // ---- actions of the core ----
  void SetSchedule(const ExchangeSchedule& schedule) override;
  void Pull(PullRequest request, bool whole) override;
  absl::Status Drop(const DropOrder& order) override;
  void Push(const Compute& compute, const PushOrder& order) override;
  void Carry(const std::vector<uint32_t>& virtual_workers,
             const std::vector<std::optional<uint32_t>>& before) override;
  absl::Status SaveResiduals(const ResidualOrder& order) override;
  StepReport EndStep(uint64_t clock, uint64_t tokens) override;
  double ResidualSquares(uint32_t virtual_worker) const override;

  // Begins a timeline.
  void Begin(const View& view);
  void BuildCore(const View& view, const WorkerPlace& place);
  void RestoreResiduals(const View& view, const WorkerPlace& place);
  // Runs the core until it must wait.
  void Advance();
  bool TakeWeights(uint32_t block);
  // Whether there is memory for the gradient that the computation writes.
  bool BindGradient(const Compute& compute);
  void BeginCompute(const Compute& compute);
  void EndCompute();
  absl::Duration MostTime(const Compute& compute) const;
  void CountSkipped(const HeartbeatRequest& confirmed);

  uint32_t timeline_ = 0;
  uint32_t timeline_view_ = 0;               // first view of the timeline
  std::vector<std::vector<float>> weights_;  // by block
  std::vector<uint64_t> versions_;           // steps of the weights
  std::vector<std::vector<float>> evaluated_;
  std::vector<uint64_t> evaluated_versions_;
  std::vector<uint64_t> steps_taken_;  // by virtual worker
  uint64_t skipped_ = 0;
  // By virtual worker and block; of the gradients in progress.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::optional<GradientPool> pool_;
  std::unique_ptr<SimulatedExchange> exchange_;
  std::unique_ptr<ControlBoard> board_;
  std::unique_ptr<WorkerCore> core_;
  std::unique_ptr<ResidualParts> parts_;
  bool computing_ = false;
  ExchangeSchedule schedule_;  // newest one set by the core
  uint64_t schedule_changes_ = 0;
  absl::Time step_began_ = absl::UnixEpoch();
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_WORKER_NODE_H_
