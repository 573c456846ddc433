#ifndef TUG_DATA_REPLAY_SAMPLER_H_
#define TUG_DATA_REPLAY_SAMPLER_H_

#include "data/sampler.h"

namespace tug {

// Samples for a replay (`compute: REPLAY`), which reads none: of one token, 0, so that tokens count
// samples. Nothing is there for validation.
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
