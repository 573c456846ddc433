// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_LINE_SAMPLER_H_
#define TUG_DATA_LINE_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/sampler.h"

namespace tug {

// Samples lines, for ENCODER (label, text) and ENCODER_DECODER (source, target). Let N be the
// number of lines of the file and V = floor(N * validation_fraction).
//   Splits. Position p holds line Shuffle(N)(p) of the file; positions 0 .. N - V - 1 are for
//   training, the rest for validation. This shuffle depends on N alone, so a text sorted by label
//   has all labels in both splits, and the splits are the same in every job on it.
//   Training. Epoch e reads the positions in the order Shuffle(N - V, seed, e), each once.
// With [b] and [e] the begin and end symbols (token_file.h) and T the context:
//   ENCODER           tokens = [b] text, cut to T; target = number of the label
//   ENCODER_DECODER   tokens = source, cut to T; decoder_tokens = [b] target, targets = target [e],
//                     both cut to T
// The remaining elements are kPadding in tokens and kNoSampleTarget in targets.
class LineSampler final : public Sampler {
 public:
  // Reads the line table once. Errors: see MakeSampler.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const JobConfig& config,
                                                         const TokenFile& file, Split split);

  std::string notice() const override;

  // Line of the file that a training or validation sample is.
  uint64_t TrainingLine(uint64_t epoch, uint64_t index) const;
  uint64_t ValidationLine(uint64_t index) const;

 private:
  LineSampler(const JobConfig& config, const TokenFile& file, Counts counts);
  void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const override;
  void FillValidation(uint64_t index, const SampleRow& row) const override;
  void FillLine(uint64_t index, const SampleRow& row) const;
  // Validates the line table and counts the lines longer than the context.
  absl::Status ReadTable();

  const TokenFile& file_;
  const bool pairs_;
  uint64_t cut_lines_ = 0;
  uint64_t longest_ = 0;  // tokens of the longest line, including its symbols
};

}  // namespace tug

#endif  // TUG_DATA_LINE_SAMPLER_H_
