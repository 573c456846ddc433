// SPDX-License-Identifier: Apache-2.0
#include "data/window_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "data/shuffle.h"

namespace tug {
namespace {

uint64_t TrainTokens(uint64_t tokens, double validation_fraction) {
  const double kept = 1.0 - validation_fraction;
  return std::min(tokens, static_cast<uint64_t>(std::floor(static_cast<double>(tokens) * kept)));
}

}  // namespace

WindowSampler::WindowSampler(const JobConfig& config, const TokenFile& file, uint64_t train_tokens,
                             Split split)
    : Sampler(config, /*padded=*/false, CountsOf(config, file.size(), train_tokens, split)),
      file_(file),
      train_tokens_(train_tokens) {}

Sampler::Counts WindowSampler::CountsOf(const JobConfig& config, uint64_t tokens,
                                        uint64_t train_tokens, Split split) {
  const uint64_t context = config.model().context();
  const uint64_t targets = std::max<uint64_t>(tokens - train_tokens, 1) - 1;
  const bool has_rest = split == Split::kAllValidation && targets % context != 0;
  return {.train = std::max<uint64_t>(train_tokens / context, 1) - 1,
          .validation = targets / context + (has_rest ? 1 : 0)};
}

absl::StatusOr<std::unique_ptr<Sampler>> WindowSampler::Create(const JobConfig& config,
                                                               const TokenFile& file, Split split) {
  const double fraction = ValidationFraction(config, split);
  const uint64_t train_tokens = TrainTokens(file.size(), fraction);
  std::unique_ptr<Sampler> sampler(new WindowSampler(config, file, train_tokens, split));
  const uint64_t context = config.model().context();
  const std::string text = absl::StrCat("the text ", config.data().path(), " has ", file.size(),
                                        " tokens (", file.path(), "), of which ");
  const std::string remedy = "; use a longer text, or set model.context lower";
  if (sampler->train_samples() == 0 && split == Split::kAsConfigured) {
    return absl::InvalidArgumentError(absl::StrCat(text, train_tokens,
                                                   " are for training: model.context ", context,
                                                   " needs at least ", 2 * context, remedy));
  }
  if (sampler->validation_samples() == 0 && fraction > 0) {
    if (split == Split::kAllValidation) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text ", config.data().path(), " has ", file.size(),
          " tokens: a loss needs at least 2, one to follow another; use a longer text"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(text, file.size() - train_tokens, " are for validation: model.context ",
                     context, " needs at least ", context + 1, remedy,
                     ", or set data.validation_fraction higher, or to 0 for none"));
  }
  return sampler;
}

uint64_t WindowSampler::FirstToken(uint64_t epoch, uint64_t index) const {
  const Shuffle shuffle(train_samples(), seed(), epoch);
  return EpochOffset(context(), seed(), epoch) + shuffle(index) * context();
}

void WindowSampler::FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const {
  FillWindow(FirstToken(epoch, index), row);
}

void WindowSampler::FillValidation(uint64_t index, const SampleRow& row) const {
  FillWindow(train_tokens_ + index * context(), row);
}

void WindowSampler::FillWindow(uint64_t first_token, const SampleRow& row) const {
  const size_t targets = std::min<uint64_t>(context(), file_.size() - 1 - first_token);
  file_.Read(first_token, row.tokens.first(targets));
  file_.Read(first_token + 1, row.targets.first(targets));
  std::ranges::fill(row.tokens.subspan(targets), kPadding);
  std::ranges::fill(row.targets.subspan(targets), kNoSampleTarget);
}

}  // namespace tug
