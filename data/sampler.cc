// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include <algorithm>

#include "base/check.h"
#include "data/line_sampler.h"
#include "data/random_sampler.h"
#include "data/replay_sampler.h"
#include "data/window_sampler.h"

namespace tug {
namespace {

// floor(a * b / c) without overflow. REQUIRES: the result fits.
uint64_t MultiplyDivide(uint64_t a, uint64_t b, uint64_t c) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{a} * b / c);
}

}  // namespace

Sampler::Sampler(const JobConfig& config, bool padded, Counts counts)
    : seed_(config.seed()),
      family_(config.model().family()),
      context_(config.model().context()),
      global_batch_(config.train().global_batch()),
      virtual_workers_(config.cluster().virtual_workers()),
      padded_(padded),
      counts_(counts) {
  TUG_CHECK(context_ > 0 && virtual_workers_ > 0);
}

uint64_t Sampler::GlobalSampleId(uint64_t step, uint32_t virtual_worker, uint32_t index) const {
  TUG_CHECK_LT(virtual_worker, virtual_workers_);
  TUG_CHECK_LT(index, share());
  return step * global_batch_ + uint64_t{virtual_worker} * share() + index;
}

void Sampler::Fill(uint64_t step, uint32_t virtual_worker, uint32_t first_index, uint32_t count,
                   SampleBatch& batch) const {
  batch.Resize(family_, padded_, context_, count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t id = GlobalSampleId(step, virtual_worker, first_index + i);
    FillTraining(id / counts_.train, id % counts_.train, batch.Row(i));
  }
}

uint64_t Sampler::EvalSamples(uint64_t eval_samples) const {
  return eval_samples == 0 ? counts_.validation : std::min(eval_samples, counts_.validation);
}

Sampler::Run Sampler::EvalShare(uint64_t eval_samples, uint32_t virtual_worker) const {
  TUG_CHECK_LT(virtual_worker, virtual_workers_);
  const uint64_t samples = EvalSamples(eval_samples);
  const uint64_t first = MultiplyDivide(virtual_worker, samples, virtual_workers_);
  const uint64_t end = MultiplyDivide(virtual_worker + 1, samples, virtual_workers_);
  return {first, end - first};
}

void Sampler::FillEval(uint64_t eval_samples, uint64_t first, uint32_t count,
                       SampleBatch& batch) const {
  const uint64_t samples = EvalSamples(eval_samples);
  TUG_CHECK_LE(first + count, samples);
  batch.Resize(family_, padded_, context_, count);
  for (uint32_t i = 0; i < count; ++i) {
    FillValidation(MultiplyDivide(first + i, counts_.validation, samples), batch.Row(i));
  }
}

TextForm TextFormOf(const ModelConfig& model) {
  switch (model.family()) {
    case ModelConfig::ENCODER:
      return TextForm::kLabelledLines;
    case ModelConfig::ENCODER_DECODER:
      return TextForm::kLinePairs;
    default:
      return TextForm::kRunning;
  }
}

uint32_t DataClasses(const DataConfig& data) {
  if (data.random().samples() > 0) return 1;
  return static_cast<uint32_t>(data.resolved_labels_size());
}

double ValidationFraction(const JobConfig& config, Split split) {
  return split == Split::kAllValidation ? 1.0 : config.data().validation_fraction();
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(const JobConfig& config, const TokenFile* file,
                                                     Split split) {
  if (config.compute() == JobConfig::REPLAY) return std::make_unique<ReplaySampler>(config);
  if (config.data().random().samples() > 0) return RandomSampler::Create(config);
  TUG_CHECK(file != nullptr);
  if (TextFormOf(config.model()) == TextForm::kRunning) {
    return WindowSampler::Create(config, *file, split);
  }
  return LineSampler::Create(config, *file, split);
}

}  // namespace tug
