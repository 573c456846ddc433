// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_RANDOM_SAMPLER_H_
#define TUG_DATA_RANDOM_SAMPLER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/sampler.h"

namespace tug {

// Random tokens of class 0 instead of text, for ENCODER (data.random). Every sample of every epoch
// is drawn independently, uniform over data.random.symbols, by Philox of (seed, epoch, index,
// position). Validation samples (data.validation_fraction times the samples of an epoch, in
// addition to them) are the same in every evaluation.
class RandomSampler final : public Sampler {
 public:
  // Errors: INVALID_ARGUMENT if model.family is not ENCODER or data.random.symbols is 0.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const JobConfig& config);

 private:
  explicit RandomSampler(const JobConfig& config);
  void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const override;
  void FillValidation(uint64_t index, const SampleRow& row) const override;
  void Draw(uint64_t epoch, uint64_t index, const SampleRow& row) const;

  const uint32_t symbols_;
};

}  // namespace tug

#endif  // TUG_DATA_RANDOM_SAMPLER_H_
