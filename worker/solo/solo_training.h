// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_SOLO_SOLO_TRAINING_H_
#define TUG_WORKER_SOLO_SOLO_TRAINING_H_

// Trains a job's model in one process without servers, with weights, gradients and AdamW state in
// the memory of the device. Baseline for jobs with the same model, batch and machine.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "base/trace.h"
#include "blocks/segment_table.h"
#include "data/sampler.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// A device with the model and its FP32 weights, gradients, m and v. Work may be queued: the host
// waits in Model::losses and Model::Synchronize. Owned by one thread.
class SoloDevice {
 public:
  virtual ~SoloDevice() = default;

  virtual Model& model() = 0;
  virtual std::string name() const = 0;  // user-facing
  // Bytes of weights, m and v; and of gradients.
  virtual uint64_t state_bytes() const = 0;
  virtual uint64_t gradient_bytes() const = 0;
  // Sets the weights, by segment, before the first pass. Waits.
  virtual absl::Status SetWeights(std::span<const std::vector<float>> weights) = 0;
  // Runs AdamW on all weights and binds them again. `clock`: number of earlier updates.
  virtual absl::Status Update(uint64_t clock, float gradient_scale) = 0;
  // The work between Begin and End is recorded as `about` by the first Collect after it is done.
  // Collect does not wait.
  virtual absl::Status Begin(TraceTrack& track, const TraceEvent& about) = 0;
  virtual absl::Status End() = 0;
  virtual absl::Status Collect() = 0;
};

struct SoloDeviceOptions {
  const JobConfig& config;  // all fields filled, data resolved; ADAMW
  const SegmentTable& table;
};

// SoloDevice on the CPU; `pool` outlives it. Errors: those of CreateModel.
absl::StatusOr<std::unique_ptr<SoloDevice>> NewSoloCpu(const SoloDeviceOptions& options,
                                                       ThreadPool& pool);

// Takes the steps of a job with one virtual worker and no clipping; on a CPU, with the same bits.
class SoloTraining {
 public:
  // REQUIRES: all references outlive it. `track` gets the passes and, as kOptimizer, the updates.
  SoloTraining(const JobConfig& config, const Sampler& sampler, SoloDevice& device,
               TraceTrack& track)
      : config_(config), sampler_(sampler), device_(device), track_(track) {}

  // Call in order, from step 0. A device queues the step, unless `sums` is given for its loss: then
  // it waits. Errors: those of the device.
  absl::Status Step(uint64_t clock, LossSums* sums = nullptr);

 private:
  absl::Status TrainOn(uint64_t clock, uint32_t micro_batch, LossSums* sums);
  // Runs `pass` of a block between Begin and End.
  absl::Status Do(TraceKind kind, uint64_t clock, int block,
                  absl::FunctionRef<absl::Status()> pass);

  const JobConfig& config_;
  const Sampler& sampler_;
  SoloDevice& device_;
  TraceTrack& track_;
  SampleBatch batch_;
};

}  // namespace tug

#endif  // TUG_WORKER_SOLO_SOLO_TRAINING_H_
