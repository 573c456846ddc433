// SPDX-License-Identifier: Apache-2.0
#include "data/line_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/shuffle.h"

namespace tug {
namespace {

// Key of the shuffle that splits the lines; no training epoch uses it.
constexpr uint64_t kSplitSeed = 0;
constexpr uint64_t kSplitEpoch = (uint64_t{1} << 48) - 1;

uint64_t ValidationLines(uint64_t lines, double fraction) {
  return std::min(lines, static_cast<uint64_t>(std::floor(static_cast<double>(lines) * fraction)));
}

}  // namespace

LineSampler::LineSampler(const JobConfig& config, const TokenFile& file, Counts counts)
    : Sampler(config, /*padded=*/true, counts),
      file_(file),
      pairs_(file.info().form == TextForm::kLinePairs) {}

absl::StatusOr<std::unique_ptr<Sampler>> LineSampler::Create(const JobConfig& config,
                                                             const TokenFile& file, Split split) {
  const std::string& path = config.data().path();
  if (file.info().form != TextFormOf(config.model())) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.path(), " was not made for model.family ",
                     ModelConfig::Family_Name(config.model().family()),
                     "; delete it to rebuild it from the text"));
  }
  const double fraction = ValidationFraction(config, split);
  const uint64_t lines = file.info().lines;
  const uint64_t validation = ValidationLines(lines, fraction);
  if (lines == validation && split == Split::kAsConfigured) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", lines, " lines, none of them for training; use a text with more lines"));
  }
  if (validation == 0 && fraction > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", lines, " lines, of which data.validation_fraction ", fraction,
        " is less than one: use more lines, a higher fraction, or 0 for no validation"));
  }
  std::unique_ptr<LineSampler> sampler(
      new LineSampler(config, file, {.train = lines - validation, .validation = validation}));
  RETURN_IF_ERROR(sampler->ReadTable());
  return sampler;
}

absl::Status LineSampler::ReadTable() {
  const uint64_t labels = file_.info().labels.size();
  for (uint64_t i = 0; i < file_.info().lines; ++i) {
    const TokenLine line = file_.Line(i);
    const uint64_t targets = pairs_ ? line.second : 0;
    const bool inside = line.begin <= file_.size() && line.source > 0 &&
                        line.source + targets <= file_.size() - line.begin &&
                        (pairs_ ? line.second > 0 : line.second < labels);
    if (!inside) {
      return absl::DataLossError(absl::StrCat(file_.path(), " is damaged at line ", i,
                                              "; delete it to rebuild it from the text"));
    }
    const uint64_t length =
        pairs_ ? std::max<uint64_t>(line.source, targets + 1) : uint64_t{line.source} + 1;
    longest_ = std::max(longest_, length);
    if (length > context()) ++cut_lines_;
  }
  return absl::OkStatus();
}

std::string LineSampler::notice() const {
  if (cut_lines_ == 0) return "";
  return absl::StrCat(cut_lines_, " of ", file_.info().lines,
                      " lines are truncated to model.context = ", context(),
                      " tokens; the longest has ", longest_);
}

uint64_t LineSampler::TrainingLine(uint64_t epoch, uint64_t index) const {
  return Shuffle(file_.info().lines, kSplitSeed,
                 kSplitEpoch)(Shuffle(train_samples(), seed(), epoch)(index));
}

uint64_t LineSampler::ValidationLine(uint64_t index) const {
  return Shuffle(file_.info().lines, kSplitSeed, kSplitEpoch)(train_samples() + index);
}

void LineSampler::FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const {
  FillLine(TrainingLine(epoch, index), row);
}

void LineSampler::FillValidation(uint64_t index, const SampleRow& row) const {
  FillLine(ValidationLine(index), row);
}

void LineSampler::FillLine(uint64_t index, const SampleRow& row) const {
  const TokenLine line = file_.Line(index);
  const uint32_t symbols = file_.info().symbols;
  // Writes [front] text [back], truncated to `out`, then padding; returns the length without
  // padding.
  const auto fill = [&](std::span<int32_t> out, bool front, uint64_t begin, uint32_t count,
                        bool back, int32_t padding) {
    const size_t first = front ? 1 : 0;
    const size_t text = std::min<size_t>(count, out.size() - first);
    if (front) out[0] = BeginSymbol(symbols);
    file_.Read(begin, out.subspan(first, text));
    size_t used = first + text;
    if (back && used < out.size()) out[used++] = EndSymbol(symbols);
    std::ranges::fill(out.subspan(used), padding);
    return static_cast<int32_t>(used);
  };
  *row.length = fill(row.tokens, !pairs_, line.begin, line.source, false, kPadding);
  if (!pairs_) {
    row.targets[0] = static_cast<int32_t>(line.second);
    return;
  }
  const uint64_t target = line.begin + line.source;
  fill(row.decoder_tokens, true, target, line.second, false, kPadding);
  fill(row.targets, false, target, line.second, true, kNoSampleTarget);
}

}  // namespace tug
