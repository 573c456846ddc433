#ifndef TUG_DATA_SAMPLER_H_
#define TUG_DATA_SAMPLER_H_

// Which tokens a virtual worker reads at a step. A pure function of (seed, step, virtual worker,
// index), so that a resumed run, or another process that takes a virtual worker over, reads the
// same ones, and nothing is kept between calls.
//
// Let T = context, the first `train` tokens of the file be for training and the rest for
// validation.
//   Windows. An epoch has n = train / T - 1 windows (rounded down); window w of epoch e starts at
//   token offset(e) + w * T, where
//     0 <= offset(e) < T is pseudo-random, and holds T + 1 tokens: the inputs and, shifted by one,
//     the targets. n is the same for every offset; a token or two less than 2T per epoch are left
//     out, different ones each time.
//   Samples. Sample g = step * global_batch + position, 0-based over the whole job, is window
//   Shuffle(n, seed, e)(g mod n) of
//     epoch e = g / n: each window exactly once an epoch. A step may straddle two epochs.
//   Virtual workers. share = global_batch / virtual_workers; virtual worker v has positions v *
//   share .. (v + 1) * share - 1. Validation. Window i holds tokens i * T .. (i + 1) * T of the
//   validation split. An evaluation of k windows takes windows
//     floor(j * all / k), j = 0 .. k - 1, and virtual worker v evaluates j = floor(v * k / S) ..
//     floor((v + 1) * k / S) - 1.

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "data/token_file.h"
#include "proto/job.pb.h"

namespace tug {

// Immutable, so thread-safe. Copyable; borrows the token file.
class Sampler {
 public:
  // `config`: with defaults filled in. `file` must outlive the sampler. Errors: INVALID_ARGUMENT if
  // a split is too short for the context (validation_fraction 0 means no validation), naming the
  // file, its tokens and the remedy.
  static absl::StatusOr<Sampler> Create(const JobConfig& config, const TokenFile& file);

  // Samples of a virtual worker per step.
  uint32_t share() const { return global_batch_ / virtual_workers_; }
  uint64_t train_tokens() const { return train_tokens_; }
  // Windows of an epoch.
  uint64_t train_windows() const { return train_windows_; }

  // The number of a sample over the whole job, the sample's identity for dropout. REQUIRES: index <
  // share().
  uint64_t GlobalSampleId(uint64_t step, uint32_t virtual_worker, uint32_t index) const;

  // First token of a sample in the file; it has context + 1.
  uint64_t FirstToken(uint64_t global_sample_id) const;

  // Samples first_index .. first_index + count - 1 of a virtual worker's share. Shapes: tokens,
  // targets [count, context].
  void FillBatch(uint64_t step, uint32_t virtual_worker, uint32_t first_index, uint32_t count,
                 std::span<int32_t> tokens, std::span<int32_t> targets) const;

  // All windows of the validation split; 0 without one.
  uint64_t validation_windows() const { return validation_windows_; }

  // Windows in an evaluation of `eval_samples` (0 or more than there are: all).
  uint64_t EvalWindows(uint64_t eval_samples) const;

  struct Run {
    uint64_t first;
    uint64_t count;
  };
  // Which of the EvalWindows(eval_samples) a virtual worker evaluates. May be none.
  Run EvalShare(uint64_t eval_samples, uint32_t virtual_worker) const;

  // Windows first .. first + count - 1 of an evaluation. Shapes: tokens, targets [count, context].
  void FillEvalBatch(uint64_t eval_samples, uint64_t first, uint32_t count,
                     std::span<int32_t> tokens, std::span<int32_t> targets) const;

 private:
  Sampler(const JobConfig& config, const TokenFile& file);
  void FillWindow(uint64_t first_token, uint32_t row, std::span<int32_t> tokens,
                  std::span<int32_t> targets) const;

  const TokenFile* file_;
  uint64_t seed_;
  uint32_t context_;
  uint32_t global_batch_;
  uint32_t virtual_workers_;
  uint64_t train_tokens_;
  uint64_t train_windows_;
  uint64_t validation_windows_;
};

}  // namespace tug

#endif  // TUG_DATA_SAMPLER_H_
