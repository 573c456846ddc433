// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_PROGRAM_NODE_H_
#define TUG_LAB_SIMULATE_PROGRAM_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/memory/lease.h"
#include "control/control_board.h"
#include "exchange/block_clocks.h"
#include "exchange/c_api/program_core.h"
#include "lab/simulate/node.h"
#include "lab/simulate/simulated_exchange.h"

namespace tug {

// An external program (model.external) that uses the C API: pulls all blocks, computes, pushes
// their gradients in a random order. Runs the same core as the C API.
class SimulatedProgram final : public SimulatedNode {
 public:
  using SimulatedNode::SimulatedNode;

  void Collect(SimulationResult& result) override;

 private:
  void OnView(const View& view) override;
  void OnDeath() override { exchange_.reset(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;

  // Runs the program until it must wait.
  void Advance();
  // Returns whether the next step has begun, or the last pulls have.
  bool BeginStep();
  void PullAll();
  bool PulledAll() const;
  void Compute();
  // Pushes the remaining gradients of the step; false: a block waits for the commit of its previous
  // push.
  bool PushAll();
  void EndStep();

  enum class Doing { kGate, kPulling, kComputing, kPushing, kLastPulls, kFinished };

  Doing doing_ = Doing::kGate;
  std::unique_ptr<ControlBoard> board_;
  std::unique_ptr<ProgramCore> core_;
  std::unique_ptr<SimulatedExchange> exchange_;
  BlockClocks clocks_;
  uint32_t virtual_worker_ = 0;
  ExchangeSchedule schedule_;
  uint64_t schedule_changes_ = 0;
  std::vector<std::vector<float>> weights_;  // by block
  std::vector<Ticket> pulls_;                // by block, of the current step
  std::vector<std::shared_ptr<AlignedBuffer>> gradients_;
  std::vector<uint32_t> to_push_;  // blocks, last first
  uint64_t steps_taken_ = 0;
  double loss_ = 0;
  absl::Time step_began_ = absl::UnixEpoch();
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_PROGRAM_NODE_H_
