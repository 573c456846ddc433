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
#include "base/core_share.h"
#include "base/cpu_budget.h"
#include "base/process_memory.h"
#include "base/thread_pool.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "exchange/client.h"
#include "exchange/control_board.h"
#include "exchange/device_encoder.h"
#include "exchange/segment_table.h"
#include "exchange/worker_place.h"
#include "metrics/worker_metrics.h"
#include "model/gpu_model.h"
#include "model/model.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "worker/residual_writer.h"
#include "worker/training_loop.h"

namespace tug {

struct TrainingOptions {
  std::string data_folder;  // where the token file is made or found
  JobKeys keys;
  GpuModelMaker gpu_models;  // what makes a model on the GPU that this worker takes; called on the
                             // compute thread
  DeviceEncoderMaker gpu_encoders;  // what encodes its gradients
  CoreShare core_share;             // of the cores that this process may use
  StepTotals* totals = nullptr;     // where steps are added up (TrainingLoopOptions); outlives the
                                    // training; null: nowhere
};

// What a worker does between joining a job and its end, on a compute thread of its own, so that
// heartbeats go on meanwhile: read the data, wait for the view, build model and exchange, train.
// Methods are for the heartbeat's thread.
class Training {
 public:
  // Starts.
  Training(RegisterReply registered, TrainingOptions options);
  // Cancels and waits for the thread.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // The job's view: the first one, or a later one of its timeline.
  void SetView(const View& view);
  // Adds readiness, state, reports and counters.
  void AddTo(HeartbeatRequest& beat);
  // For people who watch; but for the steps. Thread-safe.
  WorkerFigures figures() const;
  // A reply: orders, and what of the reports has arrived.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  // Why the worker cannot go on; OK while it can.
  absl::Status failure() const;
  void Cancel(const absl::Status& reason);
  // What is recorded, once training can begin; null: nothing.
  const Trace* trace() const;

 private:
  absl::Status RunWithinMemory();
  absl::Status Run();
  absl::Status OpenData();
  absl::StatusOr<View> WaitForView();
  // Blocks until there is a view after `number`.
  absl::Status WaitForViewAfter(uint32_t number);
  uint32_t NewestView() const;
  // What the newest view, which is not the one that the exchange was built for, has for this
  // worker.
  void TakePlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Build(const View& view);
  // `virtual_workers`: carried at first.
  absl::Status BuildModel(const View& view, const std::vector<uint32_t>& virtual_workers);
  NodeCounters Predict(uint32_t virtual_workers) const;
  // On what JobConfig.device says. FAILED_PRECONDITION: it must be a GPU, and there is none.
  absl::StatusOr<std::unique_ptr<Model>> MakeModel(const View& view,
                                                   const std::vector<uint32_t>& virtual_workers);
  // On the GPU, with encoder_ where PushPlan::gpu_encodes.
  absl::StatusOr<GpuModel> MakeGpuModel(const View& view, std::vector<uint32_t> virtual_workers);
  // Tells the user what is computed on: a GPU, or why none where this build could use one.
  void TellDevice(const std::string& device);
  uint64_t PredictBytes(uint32_t virtual_workers) const;
  // 0: a replay.
  uint64_t PredictHeld(uint32_t virtual_workers, std::vector<bool> in_place) const;
  // Where all lanes share memory: by block, whether its weights are read where a lane has them.
  std::vector<bool> BlocksInPlace(const View& view) const;
  absl::Status OutOfMemory() const;
  // What it is at.
  NodeActivity Activity() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says once more which codecs and formats it has chosen for its links, if they are others by now.
  void TellChoices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether all lanes share memory with this worker.
  absl::StatusOr<bool> BuildExchange(const View& view);
  // What pushes of virtual workers had left out when the checkpoint that the timeline begins with
  // was made, as far as they go on from there. Whether there was any.
  absl::StatusOr<bool> RestoreResiduals(const View& view, const WorkerPlace& place);

  const RegisterReply registered_;
  const std::string data_folder_;
  const JobKeys keys_;
  const GpuModelMaker gpu_models_;
  const DeviceEncoderMaker gpu_encoders_;
  StepTotals* const totals_;  // null: none
  ControlBoard board_;
  const WorkerCores cores_;  // where its threads stay; one list for each compute thread

  const RealTime time_;

  // Owner: thread_.
  ThreadPool pool_;
  std::optional<TokenFile> tokens_;
  std::unique_ptr<Sampler> sampler_;
  std::optional<SegmentTable> table_;
  // Of the model on the GPU; null: the host encodes.
  std::unique_ptr<DeviceEncoder> encoder_;
  std::unique_ptr<Model> model_;
  bool on_gpu_ = false;           // model_
  PassTracer* tracer_ = nullptr;  // of model_; null: none
  // Tracks of loop_ and exchange_. Made by thread_, published by `ready_`; thread-safe.
  std::optional<Trace> trace_;
  std::optional<TrainingLoop> loop_;
  // Where KeepsResiduals. Made by thread_, published by `ready_`; thread-safe.
  std::optional<ResidualWriter> residuals_;
  // Last of these: its thread writes the loop's weights. Made by thread_, published by `ready_`;
  // thread-safe.
  std::unique_ptr<ExchangeClient> exchange_;

  mutable absl::Mutex mutex_;
  std::optional<View> view_ ABSL_GUARDED_BY(mutex_);
  uint32_t built_view_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  NodeCounters predicted_ ABSL_GUARDED_BY(mutex_);  // of memory
  std::string told_choices_ ABSL_GUARDED_BY(mutex_);
  size_t choices_told_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Notice> notices_ ABSL_GUARDED_BY(mutex_);  // all there were
  PeakMemory memory_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_WORKER_TRAINING_H_
