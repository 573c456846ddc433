#ifndef TUG_DATA_LINE_SAMPLER_H_
#define TUG_DATA_LINE_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/sampler.h"

namespace tug {

// Lines, for ENCODER (label, text) and ENCODER_DECODER (source, target). Let N be the lines of the
// file and V = floor(N * validation_fraction).
//   Splits. Line Shuffle(N)(p) of the file stands at place p; places 0 .. N - V - 1 are for
//   training, the rest for validation. The shuffle depends on N alone, so that a text that is
//   sorted by label has all labels in both splits, and every job on it has the same ones. Training.
//   Epoch e reads the places in the order Shuffle(N - V, seed, e), each once.
// With [b] and [e] the begin and end symbols (token_file.h), T the context:
//   ENCODER           tokens = [b] text, cut to T; target = the label's number
//   ENCODER_DECODER   tokens = source, cut to T; decoder_tokens = [b] target, targets = target [e],
//                     both cut to T
// behind which tokens are kPadding and targets kNoSampleTarget.
class LineSampler final : public Sampler {
 public:
  // Reads the table of lines once. Errors: see MakeSampler.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const JobConfig& config,
                                                         const TokenFile& file, Split split);

  std::string notice() const override;

  // The line of the file that a sample of an epoch is, and a sample of the validation split.
  uint64_t TrainingLine(uint64_t epoch, uint64_t index) const;
  uint64_t ValidationLine(uint64_t index) const;

 private:
  LineSampler(const JobConfig& config, const TokenFile& file, Counts counts);
  void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const override;
  void FillValidation(uint64_t index, const SampleRow& row) const override;
  void FillLine(uint64_t index, const SampleRow& row) const;
  // Checks the table and counts what is too long.
  absl::Status ReadTable();

  const TokenFile& file_;
  const bool pairs_;
  uint64_t cut_lines_ = 0;
  uint64_t longest_ = 0;  // tokens of the longest line, its symbols included
};

}  // namespace tug

#endif  // TUG_DATA_LINE_SAMPLER_H_
