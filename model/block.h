#ifndef TUG_MODEL_BLOCK_H_
#define TUG_MODEL_BLOCK_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "kernels/cross_entropy.h"
#include "model/model.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "proto/blocks.pb.h"

namespace tug {

// One block of a model: it reads and writes the streams of activations that it was made with, and
// its parameters. T: of activations and their gradients, float or kernels::Bf16.
template <typename T>
class Block {
 public:
  Block(const BlockSpec& spec, std::string prefix) : parameters_(spec, std::move(prefix)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  BlockParameters<T>& parameters() { return parameters_; }

  // REQUIRES: weights bound, and for Backward the gradient.
  virtual void Forward(const Pass& pass) = 0;
  virtual void Backward(const Pass& pass) = 0;

 protected:
  BlockParameters<T> parameters_;
};

// The last block of a model.
template <typename T>
class Head : public Block<T> {
 public:
  using Block<T>::Block;

  // Of the pass: after Forward, or after Backward when training.
  const LossSums& losses() const { return losses_; }

  // The logits of a row of the pass; of a classifier, of a sample. REQUIRES: Forward of the blocks
  // below, in a pass without training.
  virtual void Logits(const Pass& pass, int64_t row, std::span<float> logits) = 0;

 protected:
  // Adds `count` rows' losses, in their order. losses, correct, targets [count].
  void AddLosses(const int32_t* targets, const float* losses, const uint8_t* correct,
                 int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      if (targets[row] == kernels::kNoTarget) continue;
      losses_.loss += double{losses[row]};
      losses_.targets += 1;
      losses_.correct += correct[row];
    }
  }

  LossSums losses_;
};

}  // namespace tug

#endif  // TUG_MODEL_BLOCK_H_
