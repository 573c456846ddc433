#ifndef TUG_DATA_SAMPLER_H_
#define TUG_DATA_SAMPLER_H_

// Which samples a virtual worker reads at a step. A pure function of (seed, step, virtual worker,
// index), so that a resumed run, or another process that takes a virtual worker over, reads the
// same ones, and nothing is kept between calls.
//
//   Samples. Sample g = step * global_batch + position, 0-based over the whole job, belongs to
//   epoch e = g / n, n the samples of an epoch, of which each is read exactly once, in an order of
//   the epoch's own. A step may straddle two epochs.
//
//   Virtual workers. Of S, virtual worker v has positions v * share .. (v + 1) * share - 1, where
//   share = global_batch / S.
//
//   Validation. An evaluation of k of the `all` validation samples takes samples
//   floor(j * all / k), j = 0 .. k - 1, and virtual worker v evaluates
//   j = floor(v * k / S) .. floor((v + 1) * k / S) - 1.
//
// What a sample is: window_sampler.h (running text), line_sampler.h (lines), random_sampler.h.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/sample_batch.h"
#include "data/token_file.h"
#include "proto/job.pb.h"

namespace tug {

// Immutable, so thread-safe. Borrows the token file.
class Sampler {
 public:
  virtual ~Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Samples of a virtual worker per step.
  uint32_t share() const { return global_batch_ / virtual_workers_; }
  // Samples of an epoch.
  uint64_t train_samples() const { return counts_.train; }
  // All samples of the validation split; 0 without one.
  uint64_t validation_samples() const { return counts_.validation; }
  // What a person should know of the data ("3 of 800 lines are cut ..."); mostly empty.
  virtual std::string notice() const { return ""; }

  // The number of a sample over the whole job, the sample's identity for dropout. REQUIRES: index <
  // share().
  uint64_t GlobalSampleId(uint64_t step, uint32_t virtual_worker, uint32_t index) const;

  // Samples first_index .. first_index + count - 1 of a virtual worker's share.
  void Fill(uint64_t step, uint32_t virtual_worker, uint32_t first_index, uint32_t count,
            SampleBatch& batch) const;

  // Samples in an evaluation of `eval_samples` (0 or more than there are: all).
  uint64_t EvalSamples(uint64_t eval_samples) const;

  struct Run {
    uint64_t first;
    uint64_t count;
  };
  // Which of the EvalSamples(eval_samples) a virtual worker evaluates. May be none.
  Run EvalShare(uint64_t eval_samples, uint32_t virtual_worker) const;

  // Samples first .. first + count - 1 of an evaluation.
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

// Which part of the data is for validation.
enum class Split {
  kAsConfigured,  // data.validation_fraction
  kAllValidation  // all: to measure a model on other data
};

// The sampler that goes with model.family and data.random. `config`: with defaults filled in and
// data resolved. `file`: outlives the sampler; nullptr with random data. Errors: INVALID_ARGUMENT
// if a split is too small (validation_fraction 0 means no validation), naming the text, how much it
// holds and the remedy; DATA_LOSS for a damaged file.
absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(const JobConfig& config, const TokenFile* file,
                                                     Split split = Split::kAsConfigured);

// How data.path is read, by model.family.
TextForm TextFormOf(const ModelConfig& model);

// Classes that samples have: the labels of lines, one of random data, else none.
uint32_t DataClasses(const DataConfig& data);

// Part of the data that is for validation.
double ValidationFraction(const JobConfig& config, Split split);

}  // namespace tug

#endif  // TUG_DATA_SAMPLER_H_
