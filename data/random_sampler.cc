// SPDX-License-Identifier: Apache-2.0
#include "data/random_sampler.h"

#include <cmath>

#include "base/philox.h"

namespace tug {
namespace {

// An epoch that training never reaches.
constexpr uint64_t kValidationEpoch = 0xFFFFFFFFFFFF;

uint64_t ValidationSamples(const JobConfig& config) {
  return static_cast<uint64_t>(std::floor(static_cast<double>(config.data().random().samples()) *
                                          config.data().validation_fraction()));
}

}  // namespace

RandomSampler::RandomSampler(const JobConfig& config)
    : Sampler(config, /*padded=*/false,
              {config.data().random().samples(), ValidationSamples(config)}),
      symbols_(config.data().random().symbols()) {}

absl::StatusOr<std::unique_ptr<Sampler>> RandomSampler::Create(const JobConfig& config) {
  if (config.model().family() != ModelConfig::ENCODER || config.data().random().symbols() == 0) {
    return absl::InvalidArgumentError(
        "data.random makes samples with a class: it needs model.family ENCODER and "
        "data.random.symbols");
  }
  return std::unique_ptr<Sampler>(new RandomSampler(config));
}

void RandomSampler::FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const {
  Draw(epoch, index, row);
}

void RandomSampler::FillValidation(uint64_t index, const SampleRow& row) const {
  Draw(kValidationEpoch, index, row);
}

// Counter: (index, low epoch bits, 4-position block and high epoch bits, high seed bits), for at
// most 1e9 indices, 2^48 epochs, 2^18 positions.
void RandomSampler::Draw(uint64_t epoch, uint64_t index, const SampleRow& row) const {
  for (uint32_t begin = 0; begin < row.tokens.size(); begin += 4) {
    const auto words = Philox4x32(
        {static_cast<uint32_t>(index), static_cast<uint32_t>(epoch),
         begin / 4 | static_cast<uint32_t>(epoch >> 32) << 16, static_cast<uint32_t>(seed() >> 32)},
        {static_cast<uint32_t>(seed()), static_cast<uint32_t>(RandomPurpose::kRandomData)});
    for (uint32_t i = 0; i < 4 && begin + i < row.tokens.size(); ++i) {
      // Deviates from uniform by less than symbols / 2^32.
      row.tokens[begin + i] = static_cast<int32_t>(uint64_t{words[i]} * symbols_ >> 32);
    }
  }
  row.targets[0] = 0;
}

}  // namespace tug
