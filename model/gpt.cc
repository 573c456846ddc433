#include "model/gpt.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "model/activations.h"
#include "model/gpt_layer.h"
#include "model/layout.h"
#include "model/parameters.h"

namespace tug {
namespace {

using kernels::MatMul;
using kernels::Transpose;

constexpr uint64_t kLargestSample = uint64_t{1}
                                    << 34;  // elements that kernels/dropout.h can number

absl::Status CheckSizes(const ModelConfig& config, uint32_t symbols, int max_micro_batch) {
  if (config.layers() < 1 || config.heads() < 1 || config.width() < 1 || config.context() < 1) {
    return absl::InvalidArgumentError(
        "model.layers, model.heads, model.width and model.context must be at least 1");
  }
  if (config.width() % config.heads() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.width ", config.width(), " must be a multiple of model.heads ", config.heads()));
  }
  if (!(config.dropout() >= 0 && config.dropout() < 1)) {
    return absl::InvalidArgumentError("model.dropout must lie in [0, 1)");
  }
  if (symbols < 1 || max_micro_batch < 1) {
    return absl::InvalidArgumentError("a model needs at least 1 symbol and 1 sample");
  }
  const uint64_t context = config.context();
  const uint64_t attention_row = (context + 63) / 64 * 64;
  if (config.heads() * context * attention_row > kLargestSample ||
      context * config.width() > kLargestSample) {
    return absl::InvalidArgumentError(absl::StrCat("model.context ", context,
                                                   " is too long for model.heads ", config.heads(),
                                                   " and model.width ", config.width()));
  }
  return absl::OkStatus();
}

}  // namespace

struct Gpt::State {
  State(const ModelConfig& config, uint32_t symbols, int samples, ThreadPool& thread_pool)
      : shape(GptShapeOf(config, symbols)),
        dropout(static_cast<float>(config.dropout())),
        max_samples(samples),
        pool(thread_pool),
        table(GptLayout(config, symbols)),
        weights(static_cast<size_t>(table.blocks_size())),
        gradients(weights.size()),
        activations(shape, samples) {}

  int last() const { return static_cast<int>(weights.size()) - 1; }
  int64_t rows() const { return samples * seq; }
  // Gradient of a block as it is before its backward pass.
  std::span<float> Gradient(int block) const;
  LayerPass Pass(int layer) const;
  void Begin(const MicroBatch& batch, int64_t sequence);
  // The final LayerNorm and the logits of `count` rows from `first`, written to the first rows of
  // ln_f and logits.
  void HeadLogits(int64_t first, int64_t count);
  const float* HeadMatrix() const;
  void ForwardEmbedding();
  void ForwardHead();
  void BackwardHead();
  void BackwardEmbedding();

  // Constant after construction.
  const GptShape shape;
  const float dropout;
  const int max_samples;
  ThreadPool& pool;
  const BlockTable table;

  std::vector<std::span<const float>> weights;  // by block
  std::vector<std::span<float>> gradients;
  Activations activations;

  // The pass under way.
  MicroBatch batch;
  int64_t samples = 0;
  int64_t seq = 0;       // positions of a sample: the context, less in Logits
  float p = 0;           // of dropping an element
  int next_forward = 0;  // block; last() + 1: all done
  int next_backward = -1;
  double loss_sum = 0;
};

std::span<float> Gpt::State::Gradient(int block) const {
  TUG_CHECK(!gradients[block].empty()) << "no gradient bound to block " << block;
  return gradients[block];
}

LayerPass Gpt::State::Pass(int layer) const {
  LayerPass pass{pool, shape, samples, seq, p, {}, layer};
  pass.dropout = batch.dropout;
  return pass;
}

void Gpt::State::Begin(const MicroBatch& micro_batch, int64_t sequence) {
  TUG_CHECK_GE(micro_batch.samples, 1);
  TUG_CHECK_LE(micro_batch.samples, max_samples);
  batch = micro_batch;
  samples = micro_batch.samples;
  seq = sequence;
  p = batch.training ? dropout : 0.0f;
  TUG_CHECK_EQ(batch.tokens.size(), static_cast<size_t>(rows()));
  for (const int32_t token : batch.tokens) {
    TUG_CHECK(token >= 0 && token < shape.symbols) << "token " << token;
  }
  next_forward = 0;
  next_backward = -1;
  loss_sum = 0;
}

const float* Gpt::State::HeadMatrix() const {
  return shape.tied_head ? EmbeddingTensors<const float>(shape, weights[0]).wte
                         : HeadTensors<const float>(shape, weights[last()]).lm_head;
}

void Gpt::State::ForwardEmbedding() {
  const EmbeddingTensors<const float> w(shape, weights[0]);
  float* const out = activations.embedding;
  kernels::EmbeddingForward(pool, samples, seq, shape.width, batch.tokens.data(), w.wte, w.wpe,
                            out);
  if (p > 0) {
    kernels::DropoutAdd(pool, samples, seq * shape.width, out, nullptr, p,
                        DropoutKeyOf(batch.dropout, kEmbeddingSite), out);
  }
}

void Gpt::State::HeadLogits(int64_t first, int64_t count) {
  const HeadTensors<const float> w(shape, weights[last()]);
  Activations& a = activations;
  kernels::LayerNormForward(pool, count, shape.width, a.layers.back().out + first * shape.width,
                            w.ln_f, w.ln_f_bias, a.ln_f, a.ln_f_mean, a.ln_f_rstd);
  MatMul(pool, Transpose::kNo, Transpose::kYes, count, shape.symbols, shape.width, a.ln_f,
         shape.width, HeadMatrix(), shape.width, 0, a.logits, shape.symbols);
}

void Gpt::State::ForwardHead() {
  Activations& a = activations;
  HeadLogits(0, rows());
  if (batch.training) {
    kernels::CrossEntropy(pool, rows(), shape.symbols, a.logits, batch.targets.data(), a.losses);
  } else {
    kernels::CrossEntropyLoss(pool, rows(), shape.symbols, a.logits, batch.targets.data(),
                              a.losses);
  }
  for (int64_t row = 0; row < rows(); ++row) loss_sum += double{a.losses[row]};
}

// 1. dhead (+)= dlogits^T ln_f;  2. dln_f = dlogits head;  3. through LayerNorm into a.gradient.
void Gpt::State::BackwardHead() {
  const HeadTensors<const float> w(shape, weights[last()]);
  const HeadTensors<float> dw(shape, Gradient(last()));
  Activations& a = activations;
  const float beta = batch.accumulate ? 1.0f : 0.0f;
  if (!batch.accumulate) {
    std::fill_n(dw.ln_f, shape.width, 0.0f);
    if (shape.bias) std::fill_n(dw.ln_f_bias, shape.width, 0.0f);
  }
  float* const dhead =
      shape.tied_head ? EmbeddingTensors<float>(shape, Gradient(0)).wte : dw.lm_head;
  MatMul(pool, Transpose::kYes, Transpose::kNo, shape.symbols, shape.width, rows(), a.logits,
         shape.symbols, a.ln_f, shape.width, beta, dhead, shape.width);
  MatMul(pool, Transpose::kNo, Transpose::kNo, rows(), shape.width, shape.symbols, a.logits,
         shape.symbols, HeadMatrix(), shape.width, 0, a.branch, shape.width);
  std::fill_n(a.gradient, rows() * shape.width, 0.0f);
  kernels::LayerNormBackward(pool, rows(), shape.width, a.branch, a.layers.back().out, w.ln_f,
                             a.ln_f_mean, a.ln_f_rstd, a.gradient, dw.ln_f, dw.ln_f_bias);
}

// A tied head has put its part into wte's gradient already.
void Gpt::State::BackwardEmbedding() {
  const std::span<float> gradient = Gradient(0);
  const EmbeddingTensors<float> dw(shape, gradient);
  if (!batch.accumulate) {
    if (!shape.tied_head) std::fill_n(dw.wte, shape.symbols * shape.width, 0.0f);
    std::fill_n(dw.wpe, shape.context * shape.width, 0.0f);
  }
  float* const dout = activations.gradient;
  if (p > 0) {
    kernels::DropoutBackward(pool, samples, seq * shape.width, dout, p,
                             DropoutKeyOf(batch.dropout, kEmbeddingSite), dout);
  }
  kernels::EmbeddingBackward(pool, samples, seq, shape.width, batch.tokens.data(), dout, dw.wte,
                             dw.wpe);
}

absl::StatusOr<std::unique_ptr<Gpt>> Gpt::Create(const ModelConfig& config, uint32_t symbols,
                                                 int max_micro_batch, ThreadPool& pool) {
  if (absl::Status status = CheckSizes(config, symbols, max_micro_batch); !status.ok()) {
    return status;
  }
  return std::unique_ptr<Gpt>(
      new Gpt(std::make_unique<State>(config, symbols, max_micro_batch, pool)));
}

Gpt::Gpt(std::unique_ptr<State> state) : state_(std::move(state)) {}
Gpt::~Gpt() = default;

const BlockTable& Gpt::blocks() const { return state_->table; }
int Gpt::num_blocks() const { return state_->last() + 1; }

void Gpt::BindWeights(int block, std::span<const float> weights) {
  TUG_CHECK_EQ(weights.size(), ElementCount(state_->table.blocks(block)));
  state_->weights[block] = weights;
}

void Gpt::BindGradient(int block, std::span<float> gradient) {
  TUG_CHECK_EQ(gradient.size(), ElementCount(state_->table.blocks(block)));
  state_->gradients[block] = gradient;
}

void Gpt::Start(const MicroBatch& batch) {
  State& s = *state_;
  s.Begin(batch, s.shape.context);
  TUG_CHECK_EQ(batch.targets.size(), batch.tokens.size());
  for (const int32_t target : batch.targets) {
    TUG_CHECK(target >= 0 && target < s.shape.symbols) << "target " << target;
  }
}

void Gpt::Forward(int block) {
  State& s = *state_;
  TUG_CHECK_EQ(block, s.next_forward) << "blocks run forward in order";
  TUG_CHECK(!s.weights[block].empty()) << "no weights bound to block " << block;
  ++s.next_forward;
  if (block == 0) return s.ForwardEmbedding();
  if (block == s.last()) {
    s.ForwardHead();
    if (s.batch.training) s.next_backward = block;
    return;
  }
  const float* const in =
      block == 1 ? s.activations.embedding : s.activations.layers[block - 2].out;
  LayerForward(s.Pass(block - 1), LayerTensors<const float>(s.shape, s.weights[block]), in,
               s.activations.branch, s.activations.layers[block - 1]);
}

void Gpt::Backward(int block) {
  State& s = *state_;
  TUG_CHECK_EQ(block, s.next_backward) << "blocks run backward in order, after a training pass";
  --s.next_backward;
  if (block == s.last()) return s.BackwardHead();
  if (block == 0) return s.BackwardEmbedding();
  Activations& a = s.activations;
  const std::span<float> gradient = s.Gradient(block);
  const float* const in = block == 1 ? a.embedding : a.layers[block - 2].out;
  LayerBackward(s.Pass(block - 1), LayerTensors<const float>(s.shape, s.weights[block]), in,
                a.layers[block - 1], s.batch.accumulate,
                LayerScratch{a.branch, a.branch_output, a.wide}, a.gradient,
                LayerTensors<float>(s.shape, gradient));
}

double Gpt::loss_sum() const {
  TUG_CHECK_EQ(state_->next_forward, num_blocks()) << "the forward pass is not done";
  return state_->loss_sum;
}

void Gpt::Logits(std::span<const int32_t> tokens, std::span<float> logits) {
  State& s = *state_;
  TUG_CHECK(!tokens.empty() && tokens.size() <= static_cast<size_t>(s.shape.context));
  TUG_CHECK_EQ(logits.size(), static_cast<size_t>(s.shape.symbols));
  MicroBatch batch;
  batch.samples = 1;
  batch.tokens = tokens;
  s.Begin(batch, static_cast<int64_t>(tokens.size()));
  for (int block = 0; block < s.last(); ++block) Forward(block);
  s.HeadLogits(s.rows() - 1, 1);
  std::copy_n(s.activations.logits, s.shape.symbols, logits.begin());
}

}  // namespace tug
