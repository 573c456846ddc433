#include "data/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/shuffle.h"

namespace tug {
namespace {

// floor(a * b / c) without overflow. REQUIRES: the result fits.
uint64_t MultiplyDivide(uint64_t a, uint64_t b, uint64_t c) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{a} * b / c);
}

}  // namespace

Sampler::Sampler(const JobConfig& config, const TokenFile& file)
    : file_(&file),
      seed_(config.seed()),
      context_(config.model().context()),
      global_batch_(config.train().global_batch()),
      virtual_workers_(config.cluster().virtual_workers()) {
  const double kept = 1.0 - config.data().validation_fraction();
  train_tokens_ = std::min(
      file.size(), static_cast<uint64_t>(std::floor(static_cast<double>(file.size()) * kept)));
  train_windows_ = std::max<uint64_t>(train_tokens_ / context_, 1) - 1;
  validation_windows_ = (std::max<uint64_t>(file.size() - train_tokens_, 1) - 1) / context_;
}

absl::StatusOr<Sampler> Sampler::Create(const JobConfig& config, const TokenFile& file) {
  TUG_CHECK(config.model().context() > 0 && config.cluster().virtual_workers() > 0);
  const Sampler sampler(config, file);
  const std::string text = absl::StrCat("the text ", config.data().path(), " has ", file.size(),
                                        " tokens (", file.path(), "), of which ");
  const std::string remedy = "; use a longer text, or set model.context lower";
  if (sampler.train_windows_ == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, sampler.train_tokens_, " are for training: model.context ",
                     sampler.context_, " needs at least ", 2 * sampler.context_, remedy));
  }
  if (sampler.validation_windows_ == 0 && config.data().validation_fraction() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        text, file.size() - sampler.train_tokens_, " are for validation: model.context ",
        sampler.context_, " needs at least ", sampler.context_ + 1, remedy,
        ", or set data.validation_fraction higher, or to 0 for none"));
  }
  return sampler;
}

uint64_t Sampler::GlobalSampleId(uint64_t step, uint32_t virtual_worker, uint32_t index) const {
  TUG_CHECK_LT(virtual_worker, virtual_workers_);
  TUG_CHECK_LT(index, share());
  return step * global_batch_ + uint64_t{virtual_worker} * share() + index;
}

uint64_t Sampler::FirstToken(uint64_t global_sample_id) const {
  const uint64_t epoch = global_sample_id / train_windows_;
  const Shuffle shuffle(train_windows_, seed_, epoch);
  const uint64_t window = shuffle(global_sample_id % train_windows_);
  return EpochOffset(context_, seed_, epoch) + window * context_;
}

void Sampler::FillBatch(uint64_t step, uint32_t virtual_worker, uint32_t first_index,
                        uint32_t count, std::span<int32_t> tokens,
                        std::span<int32_t> targets) const {
  for (uint32_t i = 0; i < count; ++i) {
    FillWindow(FirstToken(GlobalSampleId(step, virtual_worker, first_index + i)), i, tokens,
               targets);
  }
}

uint64_t Sampler::EvalWindows(uint64_t eval_samples) const {
  return eval_samples == 0 ? validation_windows_ : std::min(eval_samples, validation_windows_);
}

Sampler::Run Sampler::EvalShare(uint64_t eval_samples, uint32_t virtual_worker) const {
  TUG_CHECK_LT(virtual_worker, virtual_workers_);
  const uint64_t windows = EvalWindows(eval_samples);
  const uint64_t first = MultiplyDivide(virtual_worker, windows, virtual_workers_);
  const uint64_t end = MultiplyDivide(virtual_worker + 1, windows, virtual_workers_);
  return {first, end - first};
}

void Sampler::FillEvalBatch(uint64_t eval_samples, uint64_t first, uint32_t count,
                            std::span<int32_t> tokens, std::span<int32_t> targets) const {
  const uint64_t windows = EvalWindows(eval_samples);
  TUG_CHECK_LE(first + count, windows);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t window = MultiplyDivide(first + i, validation_windows_, windows);
    FillWindow(train_tokens_ + window * context_, i, tokens, targets);
  }
}

void Sampler::FillWindow(uint64_t first_token, uint32_t row, std::span<int32_t> tokens,
                         std::span<int32_t> targets) const {
  const size_t begin = size_t{row} * context_;
  file_->Read(first_token, tokens.subspan(begin, context_));
  file_->Read(first_token + 1, targets.subspan(begin, context_));
}

}  // namespace tug
