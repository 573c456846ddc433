#ifndef TUG_WORKER_SOLO_TRAINING_H_
#define TUG_WORKER_SOLO_TRAINING_H_

// A job's model trained where it is computed, by one process without servers: weights, gradients
// and AdamW's state in the memory of the device. The floor that a job with the same model, batch
// and machine is compared with.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "data/sampler.h"
#include "exchange/segment_table.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Where the model is, with FP32 weights, gradients, m and v beside it. What it does may be queued:
// the host waits in Model::losses and Model::Synchronize. Owned by one thread.
class SoloDevice {
 public:
  virtual ~SoloDevice() = default;

  virtual Model& model() = 0;
  virtual std::string name() const = 0;  // for people
  // Of weights, m and v; and of gradients.
  virtual uint64_t state_bytes() const = 0;
  virtual uint64_t gradient_bytes() const = 0;
  // By segment, before the first pass. Waits.
  virtual absl::Status SetWeights(std::span<const std::vector<float>> weights) = 0;
  // AdamW on all weights, and they are bound again. `clock`: updates before it.
  virtual absl::Status Update(uint64_t clock, float gradient_scale) = 0;
  // What is done between the two is recorded as `about`, once it is done, by the next Collect,
  // which does not wait.
  virtual absl::Status Begin(TraceTrack& track, const TraceEvent& about) = 0;
  virtual absl::Status End() = 0;
  virtual absl::Status Collect() = 0;
};

struct SoloDeviceOptions {
  const JobConfig& config;  // all fields filled, data resolved; ADAMW
  const SegmentTable& table;
};

// On the CPU, with `pool`, which outlives it. Errors: those of Model::Create.
absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloCpu(const SoloDeviceOptions& options,
                                                       ThreadPool& pool);

// Steps as a job takes them with one virtual worker and no clipping: on a CPU with its bits.
class SoloTraining {
 public:
  // All references outlive it. `track` gets the passes and, as kOptimizer, the updates.
  SoloTraining(const JobConfig& config, const Sampler& sampler, SoloDevice& device,
               TraceTrack& track)
      : config_(config), sampler_(sampler), device_(device), track_(track) {}

  // Steps are to be taken in order, from 0 on. On a device they are queued, unless `sums` are asked
  // for, of the step's loss: then it waits. Errors: of the device.
  absl::Status Step(uint64_t clock, LossSums* sums = nullptr);

 private:
  absl::Status TrainOn(uint64_t clock, uint32_t micro_batch, LossSums* sums);
  // Does `pass` of a block, between Begin and End.
  absl::Status Do(TraceKind kind, uint64_t clock, int block,
                  absl::FunctionRef<absl::Status()> pass);

  const JobConfig& config_;
  const Sampler& sampler_;
  SoloDevice& device_;
  TraceTrack& track_;
  SampleBatch batch_;
};

}  // namespace tug

#endif  // TUG_WORKER_SOLO_TRAINING_H_
