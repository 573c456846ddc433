#ifndef TUG_SIMULATE_WORKER_NODE_H_
#define TUG_SIMULATE_WORKER_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/lease.h"
#include "checkpoint/part_report.h"
#include "exchange/control_board.h"
#include "exchange/exchange.h"
#include "exchange/worker_place.h"
#include "simulate/node.h"
#include "simulate/planted_lane.h"
#include "worker/due_residuals.h"
#include "worker/step_machine.h"

namespace tug {

class SimulatedWorker final : public SimulatedNode {
 public:
  using SimulatedNode::SimulatedNode;

  void Collect(SimulationResult& result) override;

 private:
  void OnView(const View& view) override;
  void OnDeath() override { transport_.reset(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;
  // All that is of the timeline before is gone.
  void Begin(const View& view, const WorkerPlace& place);
  // The virtual workers carried become those of the newest view, if that can be now.
  void TakePlace();
  // Runs the step machine as far as it goes.
  void Advance();
  void Compute();
  // What the coordinator wants, when a step begins, or something of its own.
  void MayChangeSchedule(const struct Compute& compute);
  void AddGradient(const struct Compute& compute);
  void Pull(const PullOrder& order);
  void Drop(uint32_t block);
  void Push(const struct Compute& compute, uint32_t block);
  void Report(const struct Compute& compute);
  void ReportSkipped();
  // ---- worker_residuals.cc ----
  // As TrainingLoop::SaveResiduals, but that writing takes no time.
  void SaveResiduals(uint32_t index, const std::vector<uint64_t>& due);
  void SaveResidualsAt(uint32_t index, uint64_t clock);
  void SaveLastResiduals();
  // As Training::ForgetWhatOthersTake.
  void ForgetWhatOthersTake(const View& view);
  // What the checkpoint that the timeline begins with has of those that go on from there.
  void RestoreResiduals(const View& view, const WorkerPlace& place);

  bool WaitsForCommit(const struct Compute& compute) const;
  bool WaitsForBuffer(const struct Compute& compute) const;
  absl::Duration MostTime(const struct Compute& compute) const;

  uint32_t timeline_ = 0;
  uint32_t timeline_view_ = 0;  // its first
  uint32_t view_ = 0;           // newest
  uint32_t taken_view_ = 0;     // whose place is taken
  WorkerPlace place_;           // of the newest
  std::vector<uint32_t> virtual_workers_;
  std::vector<std::vector<float>> weights_;          // by block
  std::vector<std::optional<BlockPulled>> arrived_;  // by block, until the machine waits for it
  std::vector<uint64_t> versions_;                   // of the weights, by block
  std::vector<std::vector<float>> evaluated_;        // by block
  std::vector<uint64_t> evaluated_versions_;         // by block
  std::vector<uint64_t> steps_taken_;                // by carried virtual worker
  uint64_t skipped_ = 0;
  // Gradients in the making, by carried virtual worker and block; handed over with the push.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::set<std::pair<uint32_t, uint32_t>> open_pushes_;  // block, virtual worker: not committed
  // With placement.kind ZERO2 and ZERO3, of these: those whose gradient is still wanted.
  std::set<std::pair<uint32_t, uint32_t>> unreceived_pushes_;
  uint64_t most_unreceived_ = 0;
  std::unique_ptr<SimulatedTransport> transport_;
  PlantedWorker planted_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<StepMachine> machine_;
  double loss_ = 0;
  bool computing_ = false;
  bool pulling_ = false;
  bool ordered_ = false;         // orders_ are to be taken, between two computations
  ControlBoard::Orders orders_;  // the coordinator's newest
  uint32_t schedule_ = 0;        // number of the coordinator's in effect
  uint64_t schedule_changes_ = 0;
  absl::Time step_began_ = absl::UnixEpoch();
  std::vector<StepReport> steps_;
  std::optional<DueResiduals> due_residuals_;  // where checkpoints have them
  std::map<uint32_t, PartReports> parts_;      // by virtual worker
};

}  // namespace tug

#endif  // TUG_SIMULATE_WORKER_NODE_H_
