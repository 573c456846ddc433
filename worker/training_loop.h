#ifndef TUG_WORKER_TRAINING_LOOP_H_
#define TUG_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "base/time_source.h"
#include "data/sampler.h"
#include "exchange/client.h"
#include "exchange/control_board.h"
#include "model/gpt.h"
#include "proto/job.pb.h"
#include "worker/step_machine.h"

namespace tug {

struct TrainingLoopOptions {
  JobConfig config;                       // all fields filled
  std::vector<uint32_t> virtual_workers;  // carried by this process
  uint64_t start_version = 0;
};

// The compute thread of a worker: carries out what the step machine asks for on the CPU, and hands
// gradients and weights to and from the exchange. Memory: the weights once, a gradient per virtual
// worker, the model's activations.
class TrainingLoop {
 public:
  // REQUIRES: all references outlive the loop.
  TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Gpt& model,
               const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board);

  // Trains to the end of the job. Errors: what the board or the exchange was cancelled with.
  absl::Status Run();

 private:
  // Time and traffic of the step in progress.
  struct StepTimes {
    absl::Time begin;
    absl::Duration waiting;
    uint64_t pushed_bytes = 0;  // counters at the last report
    uint64_t pulled_bytes = 0;
  };

  StepMachineOptions MakeMachineOptions() const;
  void AllocateBuffers();
  absl::Status TakeOrders();
  absl::Status WaitForWeights(uint32_t block);
  absl::Duration FirstPullTimeout() const;
  absl::Status NoAnswer(uint32_t block) const;
  // By value: the machine moves on to the next computation before the effects of this one are
  // carried out.
  absl::Status RunCompute(Compute compute);
  void StartTraining(const Compute& compute);
  absl::Status BindGradient(const Compute& compute, uint32_t block);
  void StartEvaluation(const Compute& compute);
  // Windows of an evaluation, as Sampler takes them.
  uint64_t EvalSamples(bool last) const;
  void CarryOut(const Compute& compute, const StepEffects& effects);
  void ReportStep(uint64_t clock);
  void ReportEval(const Compute& compute, bool final);
  void Pull(uint32_t block, uint64_t version);

  const TrainingLoopOptions options_;
  const SegmentTable& table_;
  Gpt& model_;
  const Sampler& sampler_;
  ExchangeClient& exchange_;
  ControlBoard& board_;
  const RealTime time_;
  const uint32_t micro_batch_;  // samples
  StepMachine machine_;
  ControlBoard::Orders orders_;         // newest taken
  std::vector<AlignedBuffer> weights_;  // by block
  // By carried virtual worker and block. Shared with messages on their way; written again once
  // committed.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::vector<int32_t> tokens_;   // [micro_batch, context]
  std::vector<int32_t> targets_;  // [micro_batch, context]
  double loss_ = 0;               // of the virtual worker's step or evaluation in progress
  uint64_t loss_tokens_ = 0;
  std::vector<std::pair<double, uint64_t>> step_losses_;  // loss and tokens, by virtual worker done
  StepTimes times_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_LOOP_H_
