#ifndef TUG_MODEL_GENERATOR_H_
#define TUG_MODEL_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/lease.h"
#include "base/thread_pool.h"
#include "proto/job.pb.h"

namespace tug {

// Inference of a DECODER token by token, FP32, with a cache of keys and values: a token costs one
// pass over the weights, not one over everything before it. Equal to Model::Logits but for the order
// of sums. Owned by one thread.
class Generator {
 public:
  // `weights`: by block, in the layout's order, valid while the generator lives; `pool` likewise.
  // INVALID_ARGUMENT for another family. Memory: 8 L C bytes for each position of the context.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      const ModelConfig& config, uint32_t symbols, std::vector<std::span<const float>> weights,
      ThreadPool& pool);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Forgets everything.
  void Reset();
  // Reads further tokens, at least one, and returns the logits [symbols] of what follows, valid until
  // the next call. Beyond the context the older half of what was read is forgotten and the rest read
  // again (positions are learned: they cannot slide).
  std::span<const float> Append(std::span<const int32_t> tokens);

 private:
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_MODEL_GENERATOR_H_
