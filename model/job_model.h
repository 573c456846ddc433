// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_JOB_MODEL_H_
#define TUG_MODEL_JOB_MODEL_H_

#include "data/sampler.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// Options and batches of a job's model, the same in all programs: workers, and tools that recompute
// their steps or read their checkpoints later. Pure, thread-safe.

// The model that a worker of the job trains. `config`: with all fields filled and data resolved.
inline ModelOptions ModelOptionsOf(const JobConfig& config) {
  return {.config = config.model(),
          .train = config.train(),
          .symbols = config.data().resolved_symbols(),
          .classes = DataClasses(config.data()),
          .max_micro_batch = static_cast<int>(config.train().micro_batch())};
}

// A pass over `samples` without training. It refers to the arrays of `samples`, which must not
// change while the pass reads them.
inline MicroBatch MicroBatchOf(const SampleBatch& samples) {
  return {.samples = static_cast<int>(samples.samples),
          .tokens = samples.tokens,
          .lengths = samples.lengths,
          .decoder_tokens = samples.decoder_tokens,
          .targets = samples.targets};
}

}  // namespace tug

#endif  // TUG_MODEL_JOB_MODEL_H_
