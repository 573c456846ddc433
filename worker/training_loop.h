#ifndef TUG_WORKER_TRAINING_LOOP_H_
#define TUG_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "data/sampler.h"
#include "exchange/client.h"
#include "exchange/control_board.h"
#include "metrics/step_totals.h"
#include "model/block_window.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/pass_tracer.h"
#include "proto/job.pb.h"
#include "worker/current_activity.h"
#include "worker/embedding_runs.h"
#include "worker/encoded_gradients.h"
#include "worker/gradient_change.h"
#include "worker/gradient_pool.h"
#include "worker/residual_writer.h"
#include "worker/step_batches.h"
#include "worker/step_times.h"
#include "worker/straggler.h"
#include "worker/weight_memory.h"
#include "worker/worker_core.h"

namespace tug {

struct TrainingLoopOptions {
  JobConfig config;                       // all fields filled
  std::vector<uint32_t> virtual_workers;  // carried by this process
  uint64_t start_version = 0;
  // All lanes share memory with this worker: nothing is copied to be exchanged, but rows would be,
  // so the embedding is exchanged whole.
  bool shares_memory = false;
  TraceTrack* trace = nullptr;  // outlives the loop; may be null
  // Of the device, as `trace`, and what fills it, which live as long as the loop; may be null.
  TraceTrack* device_trace = nullptr;
  PassTracer* tracer = nullptr;
  // By carried virtual worker, where it goes on; empty: at start_version.
  std::vector<uint64_t> start_clocks = {};
  // What virtual workers' pushes leave out goes to checkpoints (KeepsResiduals); null: it does not.
  // Outlives the loop.
  ResidualWriter* residuals = nullptr;
  uint32_t view = 0;  // that the worker was built in
  // By block: it is expected to be read where the lanes have it; empty: none is.
  std::vector<bool> in_place = {};
  // What the model sends gradients by (PushPlan::gpu_encodes); null: the exchange encodes. Outlives
  // the loop.
  DeviceEncoder* encoder = nullptr;
  // What steps took is added up there (watch.metrics); null: it is not. Outlives the loop.
  StepTotals* totals = nullptr;
};

// The compute thread of a worker: carries out what the worker core decides (worker/worker_core.h),
// and hands gradients and weights to and from the exchange. What a sample is, the sampler knows;
// what is computed of it, the model. Memory: the weights once, or those of a window (placement.kind
// ZERO3; worker/weight_memory.h), but for those that are read where the lanes have them; a gradient
// per virtual worker, or those of a few blocks (worker/gradient_pool.h); with local steps their
// state (worker/local_steps.h); the model's activations.
//
// Where no head is tied to block 0 (the embedding) only the rows of it that a step touches are
// pushed and pulled (comm.sparse_embeddings; exchange/runs.h), and the whole block before an
// evaluation.
//
// A model that queues (Model::queues) computes a block's backward pass while the block above is
// seen to: what follows from that one's gradient (clips, push, pull, reports) is put off until the
// next computation is queued, or whatever comes that is not the block below. Memory that stays is
// pinned (Model::Pin); weights of a window are not, since their memory comes and goes, so that
// copies of them overlap with little.
//
// From gradient to push. Lanes scale and clip, and the exchange encodes; with an encoder the GPU
// does, and frames are pushed, with what they leave out of gradients kept there. Only where an
// update is of one virtual worker's gradient alone, it is clipped here: where pushes are updates,
// and in local steps, which make the weights that the difference pushed is of. With a norm over all
// blocks, pushes (and the pulls behind them) wait for the end of the backward pass, and leave in
// the order of completion.
class TrainingLoop final : private WorkerActions {
 public:
  // REQUIRES: all references outlive the loop.
  TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Model& model,
               const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board);
  // Waits for what the model has queued, which reads and writes memory of the loop.
  ~TrainingLoop() override;

  // Trains to the end of the job, as far as it is this worker's. Errors: what the board or the
  // exchange was cancelled with. May be called again, for what came to it since
  // (ControlBoard::SetPlace).
  absl::Status Run();

  // So far. Thread-safe.
  HeldBytes held() const;
  // Now. Thread-safe.
  CurrentActivity::Activity activity() const { return activity_.Get(); }

 private:
  // How long an order of the coordinator may wait for an answer while something is waited for.
  static constexpr absl::Duration kOrdersInterval = absl::Milliseconds(20);

  // A computation, queued at least, whose effects are not carried out.
  struct Queued {
    WorkerCore::Computed computed;
    absl::Duration taken;
  };

  // ---- training_loop.cc: what comes next, samples, computations ----

  WorkerCore::Options CoreOptions() const;
  void AllocateBuffers();
  // From the exchange; pinned, if the model has use of that.
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes);
  // By block, of a virtual worker; null with gradient_pool_.
  std::vector<std::shared_ptr<AlignedBuffer>> NewGradients();
  void ChooseRuns();
  // By value: the core moves on to the next computation before the effects of this one are carried
  // out.
  absl::Status RunCompute(Compute compute);
  // What follows from a computation.
  absl::Status Finish(const Queued& queued);
  // The same, of the one that is put off.
  absl::Status FinishQueued();
  absl::Status RunForward(const Compute& compute, bool last_block);
  // A backward pass is done: losses and gradient are taken.
  absl::Status TakeBackward(const Compute& compute);
  // The computation took that long; then Straggle.
  absl::Status CountTime(const Compute& compute, absl::Duration taken);
  // Sleeps as long as this computation, which took `taken`, is to take longer.
  absl::Status Straggle(const Compute& compute, absl::Duration taken);
  // `batch`: of batches_.
  void StartModel(const MicroBatch& batch);
  void StartTraining(const Compute& compute);
  TraceEvent EventOf(const Compute& compute) const;
  // What the machine is at, to activity_.
  void NoteActivity();

  // ---- training_gradients.cc: memory for gradients ----

  absl::Status BindGradients(const Compute& compute, bool last_block);
  absl::Status BindGradient(const Compute& compute, uint32_t block);
  // With gradient_pool_: memory for the gradient of a block.
  absl::StatusOr<std::shared_ptr<AlignedBuffer>> TakeGradient(uint32_t block);

  // ---- training_weights.cc: pulls, waits, what is bound ----

  void Pull(PullRequest request, bool whole) override;
  absl::Status WaitForWeights(uint32_t block);
  absl::Status WaitForWholeWeights(uint32_t block);
  // They have come.
  absl::Status TakeWeights(uint32_t block);
  absl::Status Drop(const DropOrder& order) override;
  void CountHeld();

  // ---- training_exchange.cc: from gradients to pushes, residuals, times ----

  std::span<float> GradientOf(const Compute& compute, uint32_t block);
  void SetSchedule(const ExchangeSchedule& schedule) override { exchange_.SetSchedule(schedule); }
  void Push(const Compute& compute, const PushOrder& order) override;
  void Carry(const std::vector<uint32_t>& virtual_workers,
             const std::vector<std::optional<uint32_t>>& before) override;
  // Errors: those of the copy, which may be of what was queued long before.
  absl::Status SaveResiduals(const ResidualOrder& order) override;
  StepReport EndStep(uint64_t clock, uint64_t tokens) override;
  double ResidualSquares(uint32_t virtual_worker) const override;

  const TrainingLoopOptions options_;
  const SegmentTable& table_;
  Model& model_;
  const Sampler& sampler_;
  ExchangeClient& exchange_;
  ControlBoard& board_;
  const RealTime time_;
  StepBatches batches_;
  const bool replays_;
  const Straggler straggler_;
  const std::optional<BlockWindow> window_;  // none: all weights are kept
  WorkerCore core_;
  std::vector<bool> whole_;  // by block: its weights were asked for with all elements
  WeightMemory weight_memory_;
  // By carried virtual worker and block. Shared with messages on their way; written again once
  // committed. With gradient_pool_: from the first micro-batch of a step to the push, else null.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::optional<GradientPool> gradient_pool_;
  std::optional<EncodedGradients> encoded_;   // with an encoder
  std::optional<EmbeddingRuns> pushed_runs_;  // none: block 0 is pushed whole
  std::optional<EmbeddingRuns> pulled_runs_;
  std::optional<GradientChange> change_;  // with PushPlan::worker_clips
  std::optional<Queued> queued_;          // put off; of a backward pass, not of block 0
  uint64_t targets_before_ = 0;           // of the share, before the local step in progress
  StepTimes times_;
  CurrentActivity activity_;      // synchronises itself
  uint64_t most_copy_bytes_ = 0;  // that the model has made of weights

  mutable absl::Mutex mutex_;
  HeldBytes held_bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_LOOP_H_
