#ifndef TUG_WORKER_TRAINING_LOOP_H_
#define TUG_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "data/sampler.h"
#include "exchange/client.h"
#include "exchange/control_board.h"
#include "model/model.h"
#include "proto/job.pb.h"
#include "worker/embedding_runs.h"
#include "worker/step_machine.h"

namespace tug {

struct TrainingLoopOptions {
  JobConfig config;                       // all fields filled
  std::vector<uint32_t> virtual_workers;  // carried by this process
  uint64_t start_version = 0;
  // All lanes share memory with this worker: nothing is copied to be exchanged, but rows would be,
  // so the embedding is exchanged whole.
  bool shares_memory = false;
  TraceTrack* trace = nullptr;  // outlives the loop; may be null
};

// The compute thread of a worker: carries out what the step machine asks for on the CPU, and hands
// gradients and weights to and from the exchange. What a sample is, the sampler knows; what is
// computed of it, the model. Memory: the weights once, but for those that are read where the lanes
// have them; a gradient per virtual worker; the model's activations.
//
// Where no head is tied to block 0 (the embedding) only the rows of it that a step touches are
// pushed and pulled (comm.sparse_embeddings; exchange/runs.h), and the whole block before an
// evaluation.
class TrainingLoop {
 public:
  // REQUIRES: all references outlive the loop.
  TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Model& model,
               const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board);

  // Trains to the end of the job. Errors: what the board or the exchange was cancelled with.
  absl::Status Run();

 private:
  // What a virtual worker has seen of a step or an evaluation.
  struct Share {
    LossSums sums;
    uint64_t tokens = 0;  // without padding

    void Add(const LossSums& more);
  };

  // Time and traffic of the step in progress.
  struct StepTimes {
    absl::Time begin;
    int64_t begin_ns = 0;  // the same by the trace's clock
    absl::Duration waiting;
    absl::Duration computing;   // forward and backward
    absl::Duration open;        // ExchangeClient::OpenTime at the last report
    uint64_t pushed_bytes = 0;  // counters at the last report
    uint64_t pulled_bytes = 0;
  };

  // The weights of a block: in memory of its own, or where the lanes have them.
  struct BlockWeights {
    AlignedBuffer own;        // takes memory once weights are written into it
    InPlaceWeights in_place;  // what is bound, if not empty
    bool whole = false;       // asked for with all elements
  };

  StepMachineOptions MakeMachineOptions() const;
  void AllocateBuffers();
  void ChooseRuns();
  absl::Status TakeOrders();
  absl::Status WaitForWeights(uint32_t block);
  absl::Duration FirstPullTimeout() const;
  absl::Status NoAnswer(uint32_t block) const;
  // By value: the machine moves on to the next computation before the effects of this one are
  // carried out.
  absl::Status RunCompute(Compute compute);
  // The first computation of a step is next: the newest schedule takes effect.
  void BeginStep();
  absl::Status RunForward(const Compute& compute, bool last_block);
  absl::Status RunBackward(const Compute& compute, bool last_block);
  // The model reads the samples of `batch_`.
  void StartModel(MicroBatch batch);
  void StartTraining(const Compute& compute);
  absl::Status BindGradient(const Compute& compute, uint32_t block);
  void StartEvaluation(const Compute& compute);
  // Samples of an evaluation, as Sampler takes them.
  uint64_t EvalSamples(bool last) const;
  void Push(const Compute& compute, uint32_t block);
  TraceEvent EventOf(const Compute& compute) const;
  // What passed before is no part of the step.
  void BeginStepTime();
  // The step ends now; returns when, by the trace's clock (0 where there is none).
  int64_t TraceStep(uint64_t clock);
  void CarryOut(const Compute& compute, const StepEffects& effects);
  void ReportStep(uint64_t clock);
  void ReportEval(const Compute& compute, bool final);
  // Whether an evaluation at `version` is foreseen.
  bool EvaluationDue(uint64_t version) const;
  void Pull(uint32_t block, uint64_t version, bool whole);
  WeightsView ViewOf(const BlockWeights& weights) const;
  absl::Status WaitForWholeWeights(uint32_t block);

  const TrainingLoopOptions options_;
  const SegmentTable& table_;
  Model& model_;
  const Sampler& sampler_;
  ExchangeClient& exchange_;
  ControlBoard& board_;
  const RealTime time_;
  const uint32_t micro_batch_;  // samples
  const bool bf16_weights_;     // pulled as they are: the model computes in bf16
  StepMachine machine_;
  ControlBoard::Orders orders_;        // newest taken
  ExchangeSchedule schedule_;          // in effect; number 0: the job's own
  std::vector<BlockWeights> weights_;  // by block
  // By carried virtual worker and block. Shared with messages on their way; written again once
  // committed.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::optional<EmbeddingRuns> pushed_runs_;  // none: block 0 is pushed whole
  std::optional<EmbeddingRuns> pulled_runs_;
  SampleBatch batch_;
  Share share_;                     // of the virtual worker's step or evaluation in progress
  std::vector<Share> step_shares_;  // by virtual worker done
  StepTimes times_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_LOOP_H_
