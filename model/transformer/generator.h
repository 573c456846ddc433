// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_TRANSFORMER_GENERATOR_H_
#define TUG_MODEL_TRANSFORMER_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "proto/job.pb.h"

namespace tug {

// Token-by-token inference of a DECODER in FP32 with a cache of keys and values: a token costs one
// pass over the weights instead of one over all earlier tokens. Equal to Model::Logits, up to the
// order of sums. Owned by one thread.
class Generator {
 public:
  // `weights`: by block, in layout order; `weights` and `pool` must outlive the generator.
  // INVALID_ARGUMENT for another family. Memory: 8 L C bytes per position of the context, and 4 (7
  // C + 2 M + H + 2) per token of the longest Append. REQUIRES: a configuration with all fields
  // filled that CreateModel accepts.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      const ModelConfig& config, uint32_t symbols,
      const std::vector<std::span<const float>>& weights, ThreadPool& pool);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Clears the cache.
  void Reset();
  // Reads more tokens, at least one, each in [0, symbols), and returns the logits [symbols] of the
  // next token, valid until the next call. If they exceed the context together with the earlier
  // tokens, the cache is rebuilt from position 0, since learned positions cannot slide: from the
  // last half context (rounded up) of all tokens or, if `tokens` are more, from the last of them
  // that fit a context.
  std::span<const float> Append(std::span<const int32_t> tokens);

 private:
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_MODEL_TRANSFORMER_GENERATOR_H_
