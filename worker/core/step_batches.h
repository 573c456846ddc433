// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_STEP_BATCHES_H_
#define TUG_WORKER_CORE_STEP_BATCHES_H_

#include <cstdint>

#include "data/sampler.h"
#include "model/model.h"
#include "worker/core/step_machine.h"

namespace tug {

// Micro-batches that a worker's computations read, of a virtual worker's share of a step or of an
// evaluation. Not thread-safe: owned by the compute thread.
class StepBatches {
 public:
  // `config`: all fields filled. REQUIRES: `sampler` outlives it.
  StepBatches(const JobConfig& config, const Sampler& sampler);

  // Micro-batches per virtual worker and local step; and per evaluation.
  uint32_t micro_batches() const { return sampler_.share() / micro_batch_; }
  uint32_t EvalMicroBatches(uint32_t virtual_worker, bool last) const;
  bool IsLastMicroBatch(const Compute& compute) const {
    return compute.micro_batch + 1 == micro_batches();
  }
  bool IsLastLocalStep(const Compute& compute) const { return compute.local_step + 1 == local_; }

  // Micro-batch of a forward pass from block 0; valid until the next call.
  MicroBatch Training(const Compute& compute, uint32_t virtual_worker);
  MicroBatch Evaluation(const Compute& compute, uint32_t virtual_worker, bool last);
  // Tokens of the last micro-batch, without padding.
  uint64_t tokens() const { return batch_.TokenCount(); }

 private:
  // Number of samples as Sampler takes it; 0: the whole validation split.
  uint64_t EvalSamples(bool last) const { return last ? 0 : eval_samples_; }

  const Sampler& sampler_;
  const uint32_t micro_batch_;  // samples
  const uint32_t local_;        // local steps per step of the job
  const uint64_t eval_samples_;
  const uint64_t seed_;
  SampleBatch batch_;
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_STEP_BATCHES_H_
