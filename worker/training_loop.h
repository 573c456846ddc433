// SPDX-License-Identifier: Apache-2.0
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
#include "base/memory/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "control/control_board.h"
#include "data/sampler.h"
#include "exchange/client.h"
#include "metrics/step_totals.h"
#include "model/layers/block_window.h"
#include "model/model.h"
#include "model/pass_tracer.h"
#include "model/transformer/memory.h"
#include "proto/job.pb.h"
#include "worker/core/step_batches.h"
#include "worker/core/step_times.h"
#include "worker/core/straggler.h"
#include "worker/core/worker_core.h"
#include "worker/current_activity.h"
#include "worker/gradients/embedding_runs.h"
#include "worker/gradients/encoded_gradients.h"
#include "worker/gradients/gradient_change.h"
#include "worker/gradients/gradient_pool.h"
#include "worker/gradients/residual_writer.h"
#include "worker/gradients/weight_memory.h"

namespace tug {

struct TrainingLoopOptions {
  JobConfig config;                       // all fields filled
  std::vector<uint32_t> virtual_workers;  // run by this process
  uint64_t start_version = 0;
  // All lanes share memory with this worker: whole blocks are exchanged without a copy. Rows would
  // be copied, so the embedding is exchanged whole.
  bool shares_memory = false;
  TraceTrack* trace = nullptr;  // outlives the loop; may be null
  // Track of the device and the tracer that fills it; both outlive the loop and may be null.
  TraceTrack* device_trace = nullptr;
  PassTracer* tracer = nullptr;
  // By virtual worker: its first clock; empty: start_version.
  std::vector<uint64_t> start_clocks = {};
  // Writes error-feedback residuals to checkpoints (KeepsResiduals); null: they are not written.
  // Outlives the loop.
  ResidualWriter* residuals = nullptr;
  uint32_t view = 0;  // in which the worker was built
  // By block: expected to be read in the lanes' memory; empty: none is.
  std::vector<bool> in_place = {};
  // Encodes gradients on the model's device (PushPlan::gpu_encodes); null: the exchange encodes.
  // Outlives the loop.
  DeviceEncoder* encoder = nullptr;
  // Sums up step times (watch.metrics); may be null. Outlives the loop.
  StepTotals* totals = nullptr;
};

// Compute thread of a worker: carries out the decisions of the worker core
// (worker/core/worker_core.h), and passes gradients and weights to and from the exchange. The
// sampler defines samples, the model what is computed of them. Memory: the weights once, or those
// of a window (placement.kind ZERO3; worker/gradients/weight_memory.h), except those read in the
// lanes' memory; one gradient per virtual worker, or those of a few blocks
// (worker/gradients/gradient_pool.h); with local steps their state (worker/core/local_steps.h); the
// model's activations.
//
// If no head is tied to block 0 (the embedding), only the rows that a step touches are pushed and
// pulled (comm.sparse_embeddings; blocks/runs.h), and the whole block before an evaluation.
//
// A model that queues (Model::queues) computes a block's backward pass while the host processes the
// gradient of the block above: what follows from that gradient (clips, push, pull, reports) is
// deferred until the next computation is queued, or until the next action is not the block below.
// Memory that stays is pinned (Model::Pin). Weights of a window are not, since their memory is
// allocated and freed, so their copies overlap with little.
//
// From gradient to push: lanes scale and clip, and the exchange encodes. With an encoder the GPU
// encodes, frames are pushed, and residuals stay on the GPU. The loop clips only where an update
// uses one virtual worker's gradient alone: where every push is an update, and in local steps,
// whose weights determine the pushed difference. With a norm over all blocks, pushes (and the pulls
// behind them) wait for the end of the backward pass, and leave in the order of completion.
class TrainingLoop final : private WorkerActions {
 public:
  // REQUIRES: all references outlive the loop.
  TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Model& model,
               const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board);
  // Waits for queued work of the model, which reads and writes the loop's memory.
  ~TrainingLoop() override;

  // Trains to the end of this worker's part of the job. Errors: the cancel reason of the board or
  // the exchange. May be called again, for virtual workers assigned since then
  // (ControlBoard::SetPlace).
  absl::Status Run();

  // Peak so far. Thread-safe.
  HeldBytes held() const;
  // Current activity. Thread-safe.
  CurrentActivity::Activity activity() const { return activity_.Get(); }

 private:
  // Interval at which waits check for orders of the coordinator.
  static constexpr absl::Duration kOrdersInterval = absl::Milliseconds(20);

  // A computation that is done or queued, whose effects are pending.
  struct Queued {
    WorkerCore::Computed computed;
    absl::Duration taken;
  };

  // ---- training_loop.cc: what comes next, samples, computations ----

  WorkerCore::Options CoreOptions() const;
  void AllocateBuffers();
  // Buffer from the exchange; pinned, if the model benefits from it.
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes);
  // Gradients of a virtual worker, by block; null with gradient_pool_.
  std::vector<std::shared_ptr<AlignedBuffer>> NewGradients();
  void ChooseRuns();
  // By value: the core moves on to the next computation before the effects of this one are carried
  // out.
  absl::Status RunCompute(Compute compute);
  // Carries out the effects of a computation.
  absl::Status Finish(const Queued& queued);
  // Finishes the deferred computation, if any.
  absl::Status FinishQueued();
  absl::Status RunForward(const Compute& compute, bool last_block);
  // Adds the losses and completes the gradient of a finished backward pass.
  absl::Status FinishBackward(const Compute& compute);
  // Adds the time of a computation, then calls Straggle.
  absl::Status CountTime(const Compute& compute, absl::Duration taken);
  // Sleeps for the artificial delay of this computation, which took `taken`.
  absl::Status Straggle(const Compute& compute, absl::Duration taken);
  // `batch`: from batches_.
  void StartModel(const MicroBatch& batch);
  void StartTraining(const Compute& compute);
  TraceEvent EventOf(const Compute& compute) const;
  // Copies the core's activity to activity_.
  void NoteActivity();

  // ---- training_gradients.cc: memory for gradients ----

  absl::Status BindGradients(const Compute& compute, bool last_block);
  absl::Status BindGradient(const Compute& compute, uint32_t block);
  // With gradient_pool_: buffer for the gradient of a block.
  absl::StatusOr<std::shared_ptr<AlignedBuffer>> TakeGradient(uint32_t block);

  // ---- training_weights.cc: pulls, waits, what is bound ----

  void Pull(PullRequest request, bool whole) override;
  absl::Status WaitForWeights(uint32_t block);
  absl::Status WaitForWholeWeights(uint32_t block);
  // Binds weights that have arrived.
  absl::Status TakeWeights(uint32_t block);
  absl::Status Drop(const DropOrder& order) override;
  void CountHeld();

  // ---- training_exchange.cc: from gradients to pushes, residuals, times ----

  std::span<float> GradientOf(const Compute& compute, uint32_t block);
  void SetSchedule(const ExchangeSchedule& schedule) override { exchange_.SetSchedule(schedule); }
  void Push(const Compute& compute, const PushOrder& order) override;
  void Carry(const std::vector<uint32_t>& virtual_workers,
             const std::vector<std::optional<uint32_t>>& before) override;
  // Errors: those of the copy, possibly from work queued long before.
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
  std::vector<bool> whole_;  // by block: its weights were requested with all elements
  WeightMemory weight_memory_;
  // By virtual worker and block. Shared with messages in flight; written again once committed. With
  // gradient_pool_: set from the first micro-batch of a step to the push, else null.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::optional<GradientPool> gradient_pool_;
  std::optional<EncodedGradients> encoded_;   // with an encoder
  std::optional<EmbeddingRuns> pushed_runs_;  // none: block 0 is pushed whole
  std::optional<EmbeddingRuns> pulled_runs_;
  std::optional<GradientChange> change_;  // with PushPlan::worker_clips
  std::optional<Queued> queued_;          // deferred backward pass, not of block 0
  uint64_t targets_before_ = 0;           // targets of the share before the local step in progress
  StepTimes times_;
  CurrentActivity activity_;      // thread-safe
  uint64_t peak_copy_bytes_ = 0;  // peak bytes of the model's weight copies

  mutable absl::Mutex mutex_;
  HeldBytes held_bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_LOOP_H_
