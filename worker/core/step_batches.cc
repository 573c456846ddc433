// SPDX-License-Identifier: Apache-2.0
#include "worker/core/step_batches.h"

#include <algorithm>

#include "kernels/cross_entropy.h"
#include "model/job_model.h"

namespace tug {

static_assert(kNoSampleTarget == kernels::kNoTarget);

StepBatches::StepBatches(const JobConfig& config, const Sampler& sampler)
    : sampler_(sampler),
      micro_batch_(config.train().micro_batch()),
      local_(std::max(1u, config.sync().local_steps())),
      eval_samples_(config.train().eval_samples()),
      seed_(config.seed()) {}

uint32_t StepBatches::EvalMicroBatches(uint32_t virtual_worker, bool last) const {
  const uint64_t samples = sampler_.EvalShare(EvalSamples(last), virtual_worker).count;
  return static_cast<uint32_t>((samples + micro_batch_ - 1) / micro_batch_);
}

// The sampler and dropout count every local step as a step.
MicroBatch StepBatches::Training(const Compute& compute, uint32_t virtual_worker) {
  const uint32_t first = compute.micro_batch * micro_batch_;
  const uint64_t step = compute.clock * local_ + compute.local_step;
  sampler_.Fill(step, virtual_worker, first, micro_batch_, batch_);
  MicroBatch batch = MicroBatchOf(batch_);
  batch.training = true;
  batch.accumulate = compute.micro_batch > 0;
  batch.partial = !IsLastMicroBatch(compute);
  batch.dropout = {seed_, static_cast<uint32_t>(step), virtual_worker * sampler_.share() + first};
  return batch;
}

MicroBatch StepBatches::Evaluation(const Compute& compute, uint32_t virtual_worker, bool last) {
  const Sampler::Run share = sampler_.EvalShare(EvalSamples(last), virtual_worker);
  const uint64_t done = uint64_t{compute.micro_batch} * micro_batch_;
  const auto samples = static_cast<uint32_t>(std::min<uint64_t>(micro_batch_, share.count - done));
  sampler_.FillEval(EvalSamples(last), share.first + done, samples, batch_);
  return MicroBatchOf(batch_);
}

}  // namespace tug
