// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_WINDOW_SAMPLER_H_
#define TUG_DATA_WINDOW_SAMPLER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "data/sampler.h"

namespace tug {

// Samples windows of a running text, for DECODER. Let T = context. The first `train_tokens` tokens
// of the file are for training, the rest for validation.
//   Training. An epoch has n = train_tokens / T - 1 windows (rounded down); window w of epoch e
//   starts at token offset(e) + w * T, where 0 <= offset(e) < T is pseudo-random, and holds T + 1
//   tokens: the inputs and, shifted by one, the targets. n is the same for every offset; T - 1 to
//   2T - 2 tokens per epoch are unused, different ones each time. Windows are read in the order
//   Shuffle(n, seed, e).
//   Validation. Window i holds tokens i * T .. (i + 1) * T of the validation split. If the split
//   is the whole file (Split::kAllValidation), a last, shorter window has the rest: every token
//   except the first is a target.
class WindowSampler final : public Sampler {
 public:
  // Errors: see MakeSampler.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const JobConfig& config,
                                                         const TokenFile& file, Split split);

  uint64_t train_tokens() const { return train_tokens_; }
  // Index in the file of a sample's first token; the sample has context + 1 tokens.
  uint64_t FirstToken(uint64_t epoch, uint64_t index) const;

 private:
  WindowSampler(const JobConfig& config, const TokenFile& file, uint64_t train_tokens, Split split);
  static Counts CountsOf(const JobConfig& config, uint64_t tokens, uint64_t train_tokens,
                         Split split);
  void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const override;
  void FillValidation(uint64_t index, const SampleRow& row) const override;
  void FillWindow(uint64_t first_token, const SampleRow& row) const;

  const TokenFile& file_;
  const uint64_t train_tokens_;
};

}  // namespace tug

#endif  // TUG_DATA_WINDOW_SAMPLER_H_
