// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_REPLAY_SAMPLER_H_
#define TUG_DATA_REPLAY_SAMPLER_H_

#include "data/sampler.h"

namespace tug {

// Samples of a replay (`compute: REPLAY`), which does not read them: a single token, 0, so that
// token counts equal sample counts. No validation samples.
class ReplaySampler final : public Sampler {
 public:
  // `config`: resolved.
  explicit ReplaySampler(const JobConfig& config);

 private:
  void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const override;
  void FillValidation(uint64_t index, const SampleRow& row) const override;
};

}  // namespace tug

#endif  // TUG_DATA_REPLAY_SAMPLER_H_
