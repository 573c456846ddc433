// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_MODEL_H_
#define TUG_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Identifies the elements that dropout drops: a function of (seed, step, sample of the step, place
// in the model, element).
struct DropoutStream {
  uint64_t seed = 0;          // of the job; only the low 56 bits are used
  uint32_t step = 0;          // clock of the step
  uint32_t first_sample = 0;  // index of the micro-batch's first sample in the step's global batch
};

// Input of one forward and backward pass. Arrays stay valid until the last Backward, or the last
// Forward of an evaluation.
struct MicroBatch {
  // 1 to the model's max_micro_batch.
  int samples = 0;
  // [samples, context], each in [0, symbols). DECODER and ENCODER: the inputs; ENCODER_DECODER: the
  // source.
  std::span<const int32_t> tokens = {};
  // [samples]: number of tokens of a sample that are not padding, each in [1, context]; empty: all.
  // Read by ENCODER and ENCODER_DECODER (for the source).
  std::span<const int32_t> lengths = {};
  // ENCODER_DECODER only: [samples, context], inputs of the decoder.
  std::span<const int32_t> decoder_tokens = {};
  // DECODER, ENCODER_DECODER: [samples, context], each in [0, symbols) or kernels::kNoTarget.
  // ENCODER: [samples], each in [0, classes).
  std::span<const int32_t> targets = {};
  // False: no dropout, and no backward pass follows.
  bool training = false;
  // Backward adds to the gradients (a later micro-batch of a step) instead of overwriting them.
  bool accumulate = false;
  // A later micro-batch adds to this one's gradients. They are not read before the last one's
  // Backward, so a model that queues may keep them to itself.
  bool partial = false;
  // Read when `training`. Independent of how a step is cut into micro-batches.
  DropoutStream dropout = {};
};

// Sums over the targets of a micro-batch that count.
struct LossSums {
  double loss = 0;  // cross-entropy, nats; without label smoothing and z-loss
  uint64_t targets = 0;
  uint64_t correct = 0;  // targets that were the likeliest symbol or class
};

// Elements of a block's weights: exactly one of the two.
struct WeightsView {
  std::span<const float> fp32 = {};
  std::span<const kernels::Bf16> bf16 = {};  // with train.precision BF16 only

  size_t size() const { return fp32.size() + bf16.size(); }
};

class ComputeDevice;  // model/backend.h
class OpProfile;      // model/op_profile.h

struct ModelOptions {
  ModelConfig config;    // all fields filled
  TrainConfig train;     // all fields filled; read: precision, recompute, label_smoothing, z_loss
  uint32_t symbols = 0;  // of the tokenizer
  uint32_t classes = 0;  // of the data; ENCODER
  int max_micro_batch = 1;
  bool inference = false;        // no backward passes: memory for one layer's activations
  OpProfile* profile = nullptr;  // for benchmarks: time by operation; outlives the model
};

// A transformer (made by model/transformer/create_model.h), run block by block so that the exchange
// of gradients and weights overlaps with it: Forward(b) is the first to need the weights of block
// b, and Backward(b) completes the gradient of block b. In forward order (parameters:
// model/layout.h):
//
//   DECODER           embedding; h.0 .. h.<L-1>; head
//   ENCODER           embedding; h.0 .. h.<L-1>; classifier
//   ENCODER_DECODER   embedding; h.0 .. h.<L-1>; decoder.embedding; decoder.h.0 .. ; head
//
//   embedding    x = dropout(wte[token] + wpe[position])
//   layer, PRE   x = x + dropout(proj(attention(qkv(ln_1(x)))));
//                decoder of two: x = x + dropout(proj(attention(q(ln_cross(x)), kv(memory))));
//                x = x + dropout(proj(activation(fc(ln_2(x)))))
//   layer, POST  x = ln_1(x + dropout(proj(attention(qkv(x))))) and so on: the norm behind the sum
//   head         loss = sum over targets of cross_entropy(ln_f(x) head^T, target)
//   classifier   loss = sum over samples of cross_entropy(x[first token] W + b, class), with PRE of
//                ln_f(x)
//
// Dropout applies to attention weights too. Attention is causal in decoders; elsewhere it covers
// all tokens that are not padding. `memory` is the encoder's output, with PRE after its own
// LayerNorm. Papers: Vaswani et al. 2017; Radford et al. 2019 (GPT-2); Devlin et al. 2019 (BERT).
//
// Gradients are those of the sum over targets, unscaled. Equal tokens, weights and `dropout` give
// equal bits for any number of threads and any recomputation; other micro-batches change only the
// order of sums.
// CreateModel allocates memory for activations, the first Forward for packed weights (sizes:
// model/transformer/memory.h); kernels keep scratch for each thread. Owned by one compute thread.
//
// On a device (model/backend.h), bound weights and gradients are in its memory (except for a model
// that stages them: `queues`), and a model may only queue work: Forward and Backward may return
// before they are done. All statements here about when they run and what is complete after them
// then hold in the order of the device's queue. The host waits in `losses`, `Logits`,
// `AwaitGradient` and `Synchronize`. After a device error calls still return, but nothing is
// computed or written, losses and gradients are meaningless, and `status` returns the error.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The parameters, as returned by ModelLayout.
  virtual const BlockTable& blocks() const = 0;
  int num_blocks() const { return blocks().blocks_size(); }
  // The block whose token embedding is also the head's matrix; none without a tied head.
  virtual std::optional<int> tied_block() const = 0;

  // Binds a block's weights, all elements in layout order. The caller keeps them alive. It may
  // change the values and bind them again, or bind others, whenever no Forward or Backward that
  // reads them runs: those of the block itself and, with a tied head, of the last block, which
  // reads those of tied_block(). With UNIFORM recomputation, Backward of a layer also reads the
  // weights of the layers of its group below it. BF16: the first Forward after a binding packs the
  // matrices.
  virtual void BindWeights(int block, WeightsView weights) = 0;

  // Releases the block's weights and copies of them (BF16: packed matrices). Others must be bound
  // before the block's next pass and, for tied_block() of a tied head, before the next pass of the
  // last block. Call only after the passes that read the weights. A backward pass may use weights
  // bound after the forward pass, if the values are the same.
  virtual void ReleaseWeights(int block) = 0;
  // Current size of such copies in the same memory as the weights.
  virtual uint64_t weight_copy_bytes() const = 0;

  // Binds the output of Backward(block): same size and order as the weights; need not be zeroed.
  // With a tied head, Backward of the last block already writes to the gradient of tied_block():
  // bind it before that. Every block's gradient is complete after its own Backward.
  virtual void BindGradient(int block, std::span<float> gradient) = 0;

  // Begins a pass; then call Forward(0) .. Forward(last) and, when training, Backward(last) ..
  // Backward(0), each once.
  virtual void Start(const MicroBatch& batch) = 0;
  virtual void Forward(int block) = 0;
  virtual void Backward(int block) = 0;

  // Losses of the pass. REQUIRES: Forward(last) is done and, when training, Backward(last), which
  // computes logits for a chunk of rows at a time.
  virtual LossSums losses() const = 0;

  // Whether Backward may return before the gradient is where it was bound, and passes before they
  // have read their weights. Weights and gradients are then bound in host memory even on a device.
  // A block's weights may change or be freed after its gradient was awaited, or after
  // ReleaseWeights or Synchronize.
  virtual bool queues() const { return false; }
  // Blocks until the block's gradient is complete and where it was bound; returns `status`.
  // REQUIRES: Backward(block) was called, in a pass that is not `partial`.
  virtual absl::Status AwaitGradient(int /*block*/) { return absl::OkStatus(); }
  // Makes copies from and to host memory fast, for memory that will be bound often, until the
  // result is destroyed; that may be on any thread, but before the memory is freed. Null: nothing
  // to gain.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> /*host*/) { return nullptr; }

  // The first error of the device known so far; always OK on a CPU.
  virtual absl::Status status() const { return absl::OkStatus(); }
  // Waits for all queued work; returns `status`.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // DECODER: logits [symbols] of the token after `tokens` (1 .. context of them), by a pass over
  // all of them; model/transformer/generator.h writes text faster. REQUIRES: weights of all blocks
  // are bound, no pass is in progress.
  virtual void Logits(std::span<const int32_t> tokens, std::span<float> logits) = 0;

  // Logits for the single sample of `batch`, whose targets are not read. ENCODER: logits [classes]
  // of its class; `position` is 0. ENCODER_DECODER: logits [symbols] of the token after
  // decoder_tokens[position]. REQUIRES: as above.
  virtual void Logits(const MicroBatch& batch, int position, std::span<float> logits) = 0;

 protected:
  Model() = default;
};

}  // namespace tug

#endif  // TUG_MODEL_MODEL_H_
