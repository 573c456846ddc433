// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_BLOCK_H_
#define TUG_MODEL_LAYERS_BLOCK_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/layers/activations.h"
#include "model/layers/parameters.h"
#include "model/model.h"
#include "model/pass.h"
#include "proto/blocks.pb.h"

namespace tug {

// One block of a model: reads and writes its streams of activations, and its parameters. T: type of
// activations and their gradients, float or kernels::Bf16.
template <typename T>
class Block {
 public:
  Block(const BlockSpec& spec, std::string prefix) : parameters_(spec, std::move(prefix)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  BlockParameters<T>& parameters() { return parameters_; }

  // REQUIRES: weights are bound, and for Backward the gradient.
  virtual void Forward(const Pass<T>& pass) = 0;
  virtual void Backward(const Pass<T>& pass) = 0;

 protected:
  BlockParameters<T> parameters_;
};

// The last block of a model.
template <typename T>
class Head : public Block<T> {
 public:
  // `arrays` must outlive this.
  Head(const BlockSpec& spec, const typename Activations<T>::Head& arrays)
      : Block<T>(spec, ""), arrays_(arrays) {}

  // Losses of the pass: after Forward, or after Backward when training. Waits for the backend.
  LossSums losses(const Pass<T>& pass) const {
    std::vector<float> losses(pass.batch.targets.size());
    std::vector<uint8_t> correct(losses.size());
    pass.backend.Fetch(losses.data(), arrays_.losses, losses.size() * sizeof(float));
    pass.backend.Fetch(correct.data(), arrays_.correct, correct.size());
    LossSums sums{.targets = pass.targets};
    for (size_t row = 0; row < losses.size(); ++row) {  // 0 for rows without a target
      sums.loss += double{losses[row]};
      sums.correct += correct[row];
    }
    return sums;
  }

  // Logits of a row of the pass; for a classifier, of a sample. REQUIRES: Forward of the blocks
  // below, in a pass without training.
  virtual void Logits(const Pass<T>& pass, int64_t row, std::span<float> logits) = 0;

 protected:
  // Arguments for the losses of rows [first, first + count), with logits from arrays_, without
  // gradient.
  kernels::CrossEntropyArgs<T> LossOf(const Pass<T>& pass, int64_t symbols, int64_t first,
                                      int64_t count) const {
    return {.rows = count,
            .vocab = symbols,
            .stride = pass.backend.LogitsStride(symbols),
            .logits = arrays_.logits,
            .targets = pass.inputs.targets + first,
            .losses = arrays_.losses + first,
            .correct = arrays_.correct + first};
  }

  const typename Activations<T>::Head& arrays_;
};

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_BLOCK_H_
