#ifndef TUG_MODEL_GENERATOR_H_
#define TUG_MODEL_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "proto/job.pb.h"

namespace tug {

// Inference of a DECODER token by token, FP32, with a cache of keys and values: a token costs one
// pass over the weights, not one over everything before it. Equal to Model::Logits but for the
// order of sums. Owned by one thread.
class Generator {
 public:
  // `weights`: by block, in the layout's order, valid while the generator lives; `pool` likewise.
  // INVALID_ARGUMENT for another family. Memory: 8 L C bytes for each position of the context, and
  // 4 (7 C + 2 M + H + 2) for each token of the longest Append.
  // REQUIRES: a configuration with all fields filled that Model::Create accepts.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      const ModelConfig& config, uint32_t symbols,
      const std::vector<std::span<const float>>& weights, ThreadPool& pool);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Forgets everything.
  void Reset();
  // Reads further tokens, at least one, each in [0, symbols), and returns the logits [symbols] of
  // what follows, valid until the next call. When they do not fit in the context with those read
  // before, the cache is rebuilt from position 0, since learned positions cannot slide: from the
  // last half of a context (rounded up), or from as many of `tokens` as a whole context holds if
  // these are more.
  std::span<const float> Append(std::span<const int32_t> tokens);

 private:
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_MODEL_GENERATOR_H_
