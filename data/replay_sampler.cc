// SPDX-License-Identifier: Apache-2.0
#include "data/replay_sampler.h"

namespace tug {
namespace {

// Rows of one token and one target.
JobConfig OneToken(JobConfig config) {
  config.mutable_model()->set_family(ModelConfig::ENCODER);
  config.mutable_model()->set_context(1);
  return config;
}

}  // namespace

ReplaySampler::ReplaySampler(const JobConfig& config)
    : Sampler(OneToken(config), /*padded=*/false, {.train = 1, .validation = 0}) {}

void ReplaySampler::FillTraining(uint64_t, uint64_t, const SampleRow& row) const {
  row.tokens[0] = 0;
  row.targets[0] = 0;
}

void ReplaySampler::FillValidation(uint64_t index, const SampleRow& row) const {
  FillTraining(0, index, row);
}

}  // namespace tug
