#ifndef TUG_MODEL_JOB_MODEL_H_
#define TUG_MODEL_JOB_MODEL_H_

#include "data/sampler.h"
#include "model/model.h"
#include "proto/job.pb.h"

namespace tug {

// How everybody who computes a job's model makes it and feeds it: workers, and whoever computes
// their steps or reads their checkpoints later. Pure, thread-safe.

// The model that a worker of the job trains. `config`: with all fields filled and data resolved.
inline ModelOptions ModelOptionsOf(const JobConfig& config) {
  return {.config = config.model(),
          .train = config.train(),
          .symbols = config.data().resolved_symbols(),
          .classes = DataClasses(config.data()),
          .max_micro_batch = static_cast<int>(config.train().micro_batch())};
}

// A pass over `samples` that does not train. It has no arrays of its own: those of `samples` stay
// as they are as long as the pass reads them.
inline MicroBatch MicroBatchOf(const SampleBatch& samples) {
  return {.samples = static_cast<int>(samples.samples),
          .tokens = samples.tokens,
          .lengths = samples.lengths,
          .decoder_tokens = samples.decoder_tokens,
          .targets = samples.targets};
}

}  // namespace tug

#endif  // TUG_MODEL_JOB_MODEL_H_
