// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SAMPLER_H_
#define TUG_DATA_SAMPLER_H_

// Assigns samples to virtual workers and steps. A pure function of (seed, step, virtual worker,
// index): a resumed run, or another process that takes a virtual worker over, reads the same
// samples, and no state is kept between calls.
//
//   Samples. Sample g = step * global_batch + position, 0-based over the whole job, belongs to
//   epoch e = g / n, where n is the number of samples of an epoch. An epoch reads each of its n
//   samples exactly once, in an order of its own. A step may straddle two epochs.
//
//   Virtual workers. Of S virtual workers, v has positions v * share .. (v + 1) * share - 1, where
//   share = global_batch / S.
//
//   Validation. An evaluation of k of the `all` validation samples takes samples
//   floor(j * all / k), j = 0 .. k - 1, and virtual worker v evaluates
//   j = floor(v * k / S) .. floor((v + 1) * k / S) - 1.
//
// Definitions of a sample: window_sampler.h (running text), line_sampler.h (lines),
// random_sampler.h, replay_sampler.h.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/sample_batch.h"
#include "data/token_file.h"
#include "proto/job.pb.h"

namespace tug {

// Immutable, hence thread-safe. Borrows the token file.
class Sampler {
 public:
  virtual ~Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Samples of a virtual worker per step.
  uint32_t share() const { return global_batch_ / virtual_workers_; }
  // Samples of an epoch.
  uint64_t train_samples() const { return counts_.train; }
  // Size of the validation split; 0 without one.
  uint64_t validation_samples() const { return counts_.validation; }
  // Message about the data for the user ("3 of 800 lines are truncated ..."); usually empty.
  virtual std::string notice() const { return ""; }

  // Number of a sample in the whole job, which identifies it for dropout. REQUIRES: index <
  // share().
  uint64_t GlobalSampleId(uint64_t step, uint32_t virtual_worker, uint32_t index) const;

  // Writes samples first_index .. first_index + count - 1 of a virtual worker's share to `batch`.
  void Fill(uint64_t step, uint32_t virtual_worker, uint32_t first_index, uint32_t count,
            SampleBatch& batch) const;

  // Number of samples in an evaluation of `eval_samples` (0, or more than available: all).
  uint64_t EvalSamples(uint64_t eval_samples) const;

  struct Run {
    uint64_t first;
    uint64_t count;
  };
  // Samples of an evaluation that a virtual worker evaluates, out of EvalSamples(eval_samples). May
  // be empty.
  Run EvalShare(uint64_t eval_samples, uint32_t virtual_worker) const;

  // Writes samples first .. first + count - 1 of an evaluation to `batch`.
  void FillEval(uint64_t eval_samples, uint64_t first, uint32_t count, SampleBatch& batch) const;

 protected:
  struct Counts {
    uint64_t train = 0;
    uint64_t validation = 0;
  };
  // `config`: with defaults filled in. `padded`: samples have lengths.
  Sampler(const JobConfig& config, bool padded, Counts counts);

  uint32_t context() const { return context_; }
  uint64_t seed() const { return seed_; }

  // Sample `index` of the epoch's `train_samples()`, in the epoch's order.
  virtual void FillTraining(uint64_t epoch, uint64_t index, const SampleRow& row) const = 0;
  // Sample `index` of the validation split.
  virtual void FillValidation(uint64_t index, const SampleRow& row) const = 0;

 private:
  const uint64_t seed_;
  const ModelConfig::Family family_;
  const uint32_t context_;
  const uint32_t global_batch_;
  const uint32_t virtual_workers_;
  const bool padded_;
  const Counts counts_;
};

// Part of the data used for validation.
enum class Split {
  kAsConfigured,  // data.validation_fraction
  kAllValidation  // all: to evaluate a model on other data
};

// Creates the sampler for compute, model.family and data.random. `config`: with defaults filled in
// and data resolved. `file`: outlives the sampler; nullptr with random data and for a replay.
// Errors: INVALID_ARGUMENT if a split is too small (validation_fraction 0 means no validation),
// naming the text, its size and the remedy; FAILED_PRECONDITION if a model of lines gets a file
// made for another model.family; DATA_LOSS for a damaged file.
absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(const JobConfig& config, const TokenFile* file,
                                                     Split split = Split::kAsConfigured);

// Form of the text in data.path, determined by model.family.
TextForm TextFormOf(const ModelConfig& model);

// Number of classes: the labels of lines, 1 for random data, else 0.
uint32_t DataClasses(const DataConfig& data);

// Fraction of the data used for validation.
double ValidationFraction(const JobConfig& config, Split split);

}  // namespace tug

#endif  // TUG_DATA_SAMPLER_H_
