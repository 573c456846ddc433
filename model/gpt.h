#ifndef TUG_MODEL_GPT_H_
#define TUG_MODEL_GPT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Names the elements that dropout drops: a function of (seed, step, sample of the step, place in
// the model, element).
struct DropoutStream {
  uint64_t seed = 0;          // of the job; the low 56 bits count
  uint32_t step = 0;          // clock
  uint32_t first_sample = 0;  // index in the step's global batch of the micro-batch's first sample
};

// What one forward and backward pass reads.
struct MicroBatch {
  // At most Gpt's max_micro_batch, at least 1.
  int samples = 0;
  // [samples, context], each in [0, symbols). Valid until the last Backward, or Forward of an
  // evaluation.
  std::span<const int32_t> tokens = {};
  std::span<const int32_t> targets = {};
  // False: no dropout, and no backward pass follows.
  bool training = false;
  // Backward adds to what the gradients hold (a later micro-batch of a step) instead of overwriting
  // them.
  bool accumulate = false;
  // Read when `training`. Cutting a step into other micro-batches drops the same elements.
  DropoutStream dropout = {};
};

// A GPT-2-shaped decoder, FP32, on the CPU, run block by block so that the exchange of gradients
// and weights overlaps with it: weights of block b are first needed by Forward(b), gradient of
// block b is complete after Backward(b).
//
//   block 0, "embedding":  x = dropout(wte[token] + wpe[position])
//   blocks 1 .. L:         x = x + dropout(proj(attention(qkv(ln_1(x)))))
//                          x = x + dropout(proj(gelu(fc(ln_2(x)))))
//   block L + 1, "head":   loss = sum over tokens of cross_entropy(ln_f(x) head^T, target)
//
// with causal multi-head attention (dropout on its weights), and the tanh form of GELU (Radford et
// al. 2019, GPT-2; layout of the parameters: model/layout.h).
//
// Gradients are of the sum over tokens, unscaled. Same tokens, weights and `dropout` give the same
// bits whatever the number of threads; another cut into micro-batches only changes the order of
// sums.
// All memory is allocated by Create (how much: model/memory.h). Owned by one compute thread.
class Gpt {
 public:
  // `config` has all fields filled; `pool` outlives the model. InvalidArgument when a size is out
  // of range or beyond what dropout can number (2^34 attention weights or activations of a sample);
  // the message names the field.
  static absl::StatusOr<std::unique_ptr<Gpt>> Create(const ModelConfig& config, uint32_t symbols,
                                                     int max_micro_batch, ThreadPool& pool);
  ~Gpt();
  Gpt(const Gpt&) = delete;
  Gpt& operator=(const Gpt&) = delete;

  // The parameters, as GptLayout gives them.
  const BlockTable& blocks() const;
  int num_blocks() const;

  // Weights of a block, all its elements in the order of the layout. The caller keeps them alive
  // and may change the values, or bind others, whenever no Forward or Backward runs that reads
  // them: those of the block itself and, with a tied head, of the last block, which reads wte of
  // block 0.
  void BindWeights(int block, std::span<const float> weights);

  // Where Backward(block) puts the block's gradient; same size and order as the weights, contents
  // need no zeroing. With a tied head, Backward of the last block already writes to the wte part of
  // block 0's gradient: bind block 0 before it. That gradient, as every block's, is complete after
  // its own Backward.
  void BindGradient(int block, std::span<float> gradient);

  // Begins a pass; then Forward(0) .. Forward(last), and when training Backward(last) ..
  // Backward(0), each once.
  void Start(const MicroBatch& batch);
  void Forward(int block);
  void Backward(int block);

  // Sum of the losses of the micro-batch's tokens. REQUIRES: Forward(last) done.
  double loss_sum() const;

  // Inference: logits [symbols] of what follows `tokens` (1 .. context of them). REQUIRES: weights
  // of all blocks bound, no pass under way.
  void Logits(std::span<const int32_t> tokens, std::span<float> logits);

 private:
  struct State;
  explicit Gpt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_MODEL_GPT_H_
