#ifndef TUG_MODEL_MODEL_H_
#define TUG_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "kernels/bf16.h"
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

// What one forward and backward pass reads. Arrays stay valid until the last Backward, or Forward
// of an evaluation.
struct MicroBatch {
  // At most the model's max_micro_batch, at least 1.
  int samples = 0;
  // [samples, context], each in [0, symbols): of DECODER and ENCODER the inputs, of ENCODER_DECODER
  // the source.
  std::span<const int32_t> tokens = {};
  // [samples]: how many tokens of a sample are not padding, each in [1, context]; empty: all.
  // Read by ENCODER and ENCODER_DECODER (of the source).
  std::span<const int32_t> lengths = {};
  // ENCODER_DECODER: [samples, context], inputs of the decoder.
  std::span<const int32_t> decoder_tokens = {};
  // DECODER, ENCODER_DECODER: [samples, context], each in [0, symbols) or kernels::kNoTarget.
  // ENCODER: [samples], each in [0, classes).
  std::span<const int32_t> targets = {};
  // False: no dropout, and no backward pass follows.
  bool training = false;
  // Backward adds to what the gradients hold (a later micro-batch of a step) instead of overwriting
  // them.
  bool accumulate = false;
  // A later micro-batch adds to this one's gradients: until the last one's Backward nobody reads
  // them, and a model that queues may keep them to itself.
  bool partial = false;
  // Read when `training`. Cutting a step into other micro-batches drops the same elements.
  DropoutStream dropout = {};
};

// Over the targets of a micro-batch that count.
struct LossSums {
  double loss = 0;  // cross-entropy, nats; without label smoothing and z-loss
  uint64_t targets = 0;
  uint64_t correct = 0;  // whose likeliest symbol or class was the target
};

// Elements of a block's weights: one of the two.
struct WeightsView {
  std::span<const float> fp32 = {};
  std::span<const kernels::Bf16> bf16 = {};  // with train.precision BF16 only

  size_t size() const { return fp32.size() + bf16.size(); }
};

class ComputeDevice;  // model/backend.h
class OpProfile;      // model/op_profile.h

struct ModelOptions {
  ModelConfig config;    // all fields filled
  TrainConfig train;     // all fields filled: precision, recompute, label_smoothing, z_loss
  uint32_t symbols = 0;  // of the tokenizer
  uint32_t classes = 0;  // of the data; ENCODER
  int max_micro_batch = 1;
  bool inference = false;  // no backward pass ever follows: memory for one layer's activations
  OpProfile* profile = nullptr;  // for benchmarks: where time goes; outlives the model
};

// A transformer, run block by block so that the exchange of gradients and weights overlaps with it:
// weights of block b are first needed by Forward(b), the gradient of block b is complete after
// Backward(b). In forward order (model/layout.h has their parameters):
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
// with dropout on attention weights too. Attention is causal in decoders; elsewhere it reaches what
// is not padding. `memory` is the encoder's output, with PRE behind a LayerNorm of its own.
// Papers: Vaswani et al. 2017; Radford et al. 2019 (GPT-2); Devlin et al. 2019 (BERT).
//
// Gradients are of the sum over targets, unscaled. Same tokens, weights and `dropout` give the same
// bits whatever the number of threads and whatever is recomputed; another cut into micro-batches
// only changes the order of sums.
// Memory for activations is allocated by Create, for packed weights by the first Forward (how much:
// model/memory.h); kernels keep scratch for each thread. Owned by one compute thread.
//
// On a device (model/backend.h) weights and gradients that are bound lie in its memory (but for a
// model that stages them: `queues`), and a model may only queue: Forward and Backward may return
// before they are done. What is said here of when they run and what is complete after them then
// holds in the order of the device's queue. The host waits in `losses`, `Logits`, `AwaitGradient`
// and `Synchronize`. An error of the device ends nothing: from then on nothing is computed or
// written, losses and gradients mean nothing, and `status` has it.
class Model {
 public:
  // `pool` outlives the model. InvalidArgument when a size is out of range or beyond what dropout
  // can number (2^34 attention weights or activations of a sample); the message names the field.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelOptions& options,
                                                       ThreadPool& pool);
  // The same on a device, which need not outlive the model; in place of `pool` what it says does.
  // Errors also: those of making a backend; RESOURCE_EXHAUSTED when there is no memory for
  // activations, naming what would help.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelOptions& options,
                                                       ComputeDevice& device);
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The parameters, as ModelLayout gives them.
  virtual const BlockTable& blocks() const = 0;
  int num_blocks() const { return blocks().blocks_size(); }
  // The block whose token embedding is the head's matrix too; none without a tied head.
  virtual std::optional<int> tied_block() const = 0;

  // Weights of a block, all its elements in the order of the layout. The caller keeps them alive
  // and may change the values and bind them again, or bind others, whenever no Forward or Backward
  // runs that reads them: those of the block itself and, with a tied head, of the last block, which
  // reads those of tied_block(). With UNIFORM recomputation Backward of a layer also reads the
  // weights of the layers of its group below it. BF16: matrices are packed by the first Forward
  // after a binding.
  virtual void BindWeights(int block, WeightsView weights) = 0;

  // The block's weights are gone, and so are copies of them here (BF16: packed matrices), until
  // others are bound: before the block's next pass and, with a tied head, for tied_block() before
  // the next pass of the last block. Not before a pass that reads them is over. The weights of a
  // backward pass may be bound after the forward pass, with the same values.
  virtual void ReleaseWeights(int block) = 0;
  // Of such copies in the same memory as the weights, at present.
  virtual uint64_t weight_copy_bytes() const = 0;

  // Where Backward(block) puts the block's gradient; same size and order as the weights, contents
  // need no zeroing. With a tied head, Backward of the last block already writes to the gradient of
  // tied_block(): bind that before it. That gradient, as every block's, is complete after its own
  // Backward.
  virtual void BindGradient(int block, std::span<float> gradient) = 0;

  // Begins a pass; then Forward(0) .. Forward(last), and when training Backward(last) ..
  // Backward(0), each once.
  virtual void Start(const MicroBatch& batch) = 0;
  virtual void Forward(int block) = 0;
  virtual void Backward(int block) = 0;

  // Of the pass. REQUIRES: Forward(last) done, and when training Backward(last), where logits exist
  // for a chunk of rows at a time.
  virtual LossSums losses() const = 0;

  // Whether Backward may return before the gradient is where it was bound, and passes before they
  // have read the weights that were. What is bound lies in the host's memory all the same. Then a
  // block's weights may change, and their memory go, when its gradient has been awaited, or after
  // ReleaseWeights, or Synchronize.
  virtual bool queues() const { return false; }
  // Blocks until the block's gradient of the pass is complete and where it was bound; `status`
  // then. REQUIRES: Backward(block) done, of a pass that is not `partial`.
  virtual absl::Status AwaitGradient(int /*block*/) { return absl::OkStatus(); }
  // For memory of the host that will be bound, and often: makes copies from and to it quick until
  // what is returned goes, on any thread, which must be before the memory does. Null: nothing to
  // gain.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> /*host*/) { return nullptr; }

  // The first error of the device, as far as it is known; of a CPU always OK.
  virtual absl::Status status() const { return absl::OkStatus(); }
  // Waits for all that is queued; then `status`.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // DECODER: logits [symbols] of what follows `tokens` (1 .. context of them), by a pass over all
  // of them: model/generator.h writes text faster. REQUIRES: weights of all blocks bound, no pass
  // under way.
  virtual void Logits(std::span<const int32_t> tokens, std::span<float> logits) = 0;

  // Of the one sample of `batch`, whose targets are not read. ENCODER: logits [classes] of its
  // class; position 0. ENCODER_DECODER: logits [symbols] of what follows decoder_tokens[position].
  // REQUIRES: as above.
  virtual void Logits(const MicroBatch& batch, int position, std::span<float> logits) = 0;

 protected:
  Model() = default;
};

}  // namespace tug

#endif  // TUG_MODEL_MODEL_H_
