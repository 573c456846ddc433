// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_TRAINING_H_
#define TUG_WORKER_TRAINING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/cpu/core_share.h"
#include "base/cpu/cpu_budget.h"
#include "base/cpu/thread_pool.h"
#include "base/memory/process_memory.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "blocks/segment_table.h"
#include "blocks/worker_place.h"
#include "control/control_board.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "exchange/client.h"
#include "exchange/encode/device_encoder.h"
#include "metrics/worker_metrics.h"
#include "model/gpu/gpu_model.h"
#include "model/model.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "worker/gradients/residual_writer.h"
#include "worker/training_loop.h"

namespace tug {

struct TrainingOptions {
  std::string data_folder;  // where the token file is made or found
  JobKeys keys;
  GpuModelMaker gpu_models;  // makes a model on this worker's GPU; called on the compute thread
  DeviceEncoderMaker gpu_encoders;  // makes the encoder of its gradients
  CoreShare core_share;             // share of the cores available to this process
  StepTotals* totals = nullptr;     // sums up steps; outlives the training; may be null
};

// A worker's part of a job between joining it and its end, on its own compute thread so that
// heartbeats continue: reads the data, waits for the view, builds model and exchange, trains.
// Methods are for the heartbeat thread.
class Training {
 public:
  // Starts the thread.
  Training(RegisterReply registered, TrainingOptions options);
  // Cancels and waits for the thread.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Sets the job's view: the first one, or a later one of its timeline.
  void SetView(const View& view);
  // Adds readiness, state, reports and counters.
  void AddTo(HeartbeatRequest& beat);
  // Statistics for monitoring, except those of steps. Thread-safe.
  WorkerFigures figures() const;
  // Handles a reply: its orders, and which reports have arrived.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  // Why the worker cannot continue; OK while it can.
  absl::Status failure() const;
  void Cancel(const absl::Status& reason);
  // Recorded trace, once training can begin; null: none.
  const Trace* trace() const;

 private:
  absl::Status RunWithinMemory();
  absl::Status Run();
  absl::Status OpenData();
  absl::StatusOr<View> WaitForView();
  // Blocks until there is a view after `number`.
  absl::Status WaitForViewAfter(uint32_t number);
  uint32_t NewestView() const;
  // Applies the newest view, which is later than the one that the exchange was built for.
  void AdoptAssignment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Build(const View& view);
  // `virtual_workers`: the initial ones.
  absl::Status BuildModel(const View& view, const std::vector<uint32_t>& virtual_workers);
  NodeCounters Predict(uint32_t virtual_workers) const;
  // Makes it on JobConfig.device. FAILED_PRECONDITION: a GPU is required, and there is none.
  absl::StatusOr<std::unique_ptr<Model>> MakeModel(const View& view,
                                                   const std::vector<uint32_t>& virtual_workers);
  // Makes it on the GPU, with encoder_ where PushPlan::gpu_encodes.
  absl::StatusOr<GpuModel> MakeGpuModel(const View& view, std::vector<uint32_t> virtual_workers);
  // Notifies the user of the compute device: a GPU, or why none if this build could use one.
  void ReportDevice(const std::string& device);
  uint64_t PredictBytes(uint32_t virtual_workers) const;
  // 0 for a replay.
  uint64_t PredictHeld(uint32_t virtual_workers, std::vector<bool> in_place) const;
  // By block: whether its weights are read in the lanes' memory. REQUIRES: all lanes share memory.
  std::vector<bool> BlocksInPlace(const View& view) const;
  absl::Status OutOfMemory() const;
  // Current activity.
  NodeActivity Activity() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reports the codecs and formats chosen for this worker's links, if they have changed.
  void ReportChoices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether all lanes share memory with this worker.
  absl::StatusOr<bool> BuildExchange(const View& view);
  // Restores the residuals of virtual workers that continue from the checkpoint with which the
  // timeline begins. Returns whether there were any.
  absl::StatusOr<bool> RestoreResiduals(const View& view, const WorkerPlace& place);

  const RegisterReply registered_;
  const std::string data_folder_;
  const JobKeys keys_;
  const GpuModelMaker gpu_models_;
  const DeviceEncoderMaker gpu_encoders_;
  StepTotals* const totals_;  // may be null
  ControlBoard board_;
  const WorkerCores cores_;  // cores of its threads; one list per compute thread

  const RealTime time_;

  // Owned by thread_.
  ThreadPool pool_;
  std::optional<TokenFile> tokens_;
  std::unique_ptr<Sampler> sampler_;
  std::optional<SegmentTable> table_;
  // Encoder of the model on the GPU; null: the host encodes.
  std::unique_ptr<DeviceEncoder> encoder_;
  std::unique_ptr<Model> model_;
  bool on_gpu_ = false;           // model_ is on a GPU
  PassTracer* tracer_ = nullptr;  // of model_; may be null
  // Tracks of loop_ and exchange_. Made by thread_, published by `ready_`; thread-safe.
  std::optional<Trace> trace_;
  std::optional<TrainingLoop> loop_;
  // Set if KeepsResiduals. Made by thread_, published by `ready_`; thread-safe.
  std::optional<ResidualWriter> residuals_;
  // Last of these members: its thread writes the loop's weights. Made by thread_, published by
  // `ready_`; thread-safe.
  std::unique_ptr<ExchangeClient> exchange_;

  mutable absl::Mutex mutex_;
  std::optional<View> view_ ABSL_GUARDED_BY(mutex_);
  uint32_t built_view_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  NodeCounters predicted_ ABSL_GUARDED_BY(mutex_);  // memory
  std::string told_choices_ ABSL_GUARDED_BY(mutex_);
  size_t choices_told_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Notice> notices_ ABSL_GUARDED_BY(mutex_);  // all so far
  PeakMemory memory_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_H_
