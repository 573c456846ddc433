// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/generator.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/memory/lease.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "model/backend/cpu_backend.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/parameters.h"
#include "model/layout.h"
#include "model/pass.h"

namespace tug {
namespace {

// Parameters of one layer, and its keys and values of the tokens read so far.
class Layer {
 public:
  Layer(const ModelShape& shape, const BlockSpec& spec)
      : qkv(shape.width, 3 * shape.width),
        attention_projection(shape.width, shape.width),
        fc(shape.width, shape.mlp_width),
        mlp_projection(shape.mlp_width, shape.width),
        ln_1(shape.width),
        ln_2(shape.width),
        keys(CacheBytes(shape)),
        values(CacheBytes(shape)),
        parameters_(spec, spec.name() + ".") {
    qkv.AddTo(parameters_, "attn.c_attn");
    attention_projection.AddTo(parameters_, "attn.c_proj");
    fc.AddTo(parameters_, "mlp.c_fc");
    mlp_projection.AddTo(parameters_, "mlp.c_proj");
    ln_1.AddTo(parameters_, "ln_1");
    ln_2.AddTo(parameters_, "ln_2");
  }
  Layer(const Layer&) = delete;  // parameters are referenced by address
  Layer& operator=(const Layer&) = delete;

  void Bind(const Pass<float>& pass, std::span<const float> weights) {
    parameters_.BindWeights({.fp32 = weights});
    parameters_.Prepare(pass);
  }

  Linear<float> qkv, attention_projection, fc, mlp_projection;
  Norm<float> ln_1, ln_2;
  AlignedBuffer keys, values;  // [context, C]

 private:
  static size_t CacheBytes(const ModelShape& shape) {
    return static_cast<size_t>(shape.context * shape.width) * sizeof(float);
  }

  BlockParameters<float> parameters_;
};

// The blocks before and after the layers.
class Ends {
 public:
  Ends(const ModelShape& shape, const BlockTable& table)
      : head(shape.width, shape.symbols, kernels::WeightOrder::kOutIn),
        ln_f(shape.width),
        tied_(shape.tied_head),
        first_(table.blocks(0), ""),
        last_(table.blocks(table.blocks_size() - 1), "") {
    first_.Add("wte.weight", wte);
    first_.Add("wpe.weight", wpe);
    if (!tied_) last_.Add("lm_head.weight", head);
    ln_f.AddTo(last_, "ln_f");
  }
  Ends(const Ends&) = delete;  // parameters are referenced by address
  Ends& operator=(const Ends&) = delete;

  void Bind(const Pass<float>& pass, std::span<const float> first, std::span<const float> last) {
    first_.BindWeights({.fp32 = first});
    last_.BindWeights({.fp32 = last});
    if (tied_) head.SetSource(wte.rows);
    head.Prepare(pass);
    last_.Prepare(pass);
  }

  Table wte, wpe;
  Matrix<float> head;
  Norm<float> ln_f;

 private:
  const bool tied_;
  BlockParameters<float> first_, last_;
};

// Activations of the tokens being read.
struct Rows {
  void Reserve(const ModelShape& shape, int64_t rows) {
    const auto size = [rows](int64_t width) { return static_cast<size_t>(rows * width); };
    if (stream.size() >= size(shape.width)) return;
    for (auto* of_width : {&stream, &normed, &mixed, &branch}) of_width->resize(size(shape.width));
    qkv.resize(size(3 * shape.width));
    for (auto* of_mlp : {&pre, &activated}) of_mlp->resize(size(shape.mlp_width));
    for (auto* statistic : {&mean, &rstd}) statistic->resize(size(1));
    log_sum_exp.resize(size(shape.heads));
  }

  std::vector<float> stream, normed, mixed, branch;  // [rows, C]
  std::vector<float> qkv;                            // [rows, 3C]
  std::vector<float> pre, activated;                 // [rows, M]
  std::vector<float> mean, rstd;                     // [rows], of a LayerNorm; never read
  std::vector<float> log_sum_exp;                    // [H, rows]; never read
};

}  // namespace

struct Generator::State {
  State(const ModelConfig& config, uint32_t symbols,
        const std::vector<std::span<const float>>& weights, ThreadPool& pool);

  // Reads tokens that fit into the context after those in the cache.
  void Read(std::span<const int32_t> tokens);
  void ReadLayer(int64_t rows, Layer& layer);
  void AttentionBranch(int64_t rows, const float* x, Layer& layer);
  void MlpBranch(int64_t rows, const float* x, const Layer& layer);
  // stream += branch.
  void AddBranch(int64_t rows);
  void Normalize(int64_t rows, const Norm<float>& norm, const float* x, float* y);

  // Constant after construction.
  const ModelShape shape;
  const BlockTable table;
  ThreadPool& pool;
  CpuBackend<float> backend;
  const Pass<float> pass;  // only for its backend
  Ends ends;

  std::deque<Layer> layers;
  std::vector<int32_t> read;  // tokens whose keys and values are in the layers
  Rows arrays;
  std::vector<float> logits;
};

Generator::State::State(const ModelConfig& config, uint32_t symbols,
                        const std::vector<std::span<const float>>& weights, ThreadPool& pool)
    : shape(ModelShapeOf(config, symbols, /*classes=*/0)),
      table(ModelLayout(config, symbols, /*classes=*/0)),
      pool(pool),
      backend(pool),
      pass{.backend = backend, .profile = nullptr},
      ends(shape, table),
      logits(static_cast<size_t>(shape.symbols)) {
  TUG_CHECK_EQ(weights.size(), static_cast<size_t>(table.blocks_size()));
  ends.Bind(pass, weights.front(), weights.back());
  for (size_t block = 1; block + 1 < weights.size(); ++block) {
    layers.emplace_back(shape, table.blocks(static_cast<int>(block))).Bind(pass, weights[block]);
  }
}

void Generator::State::Normalize(int64_t rows, const Norm<float>& norm, const float* x, float* y) {
  norm.Forward(pass, rows, x, y, {arrays.mean.data(), arrays.rstd.data()});
}

void Generator::State::AddBranch(int64_t rows) {
  float* const stream = arrays.stream.data();
  backend.DropoutAdd({.samples = 1,
                      .elements_per_sample = rows * shape.width,
                      .x = arrays.branch.data(),
                      .residual = stream,
                      .y = stream});
}

void Generator::State::AttentionBranch(int64_t rows, const float* x, Layer& layer) {
  const int64_t c = shape.width, dim = c / shape.heads;
  const auto past = static_cast<int64_t>(read.size());
  const float* const qkv = arrays.qkv.data();
  float* const keys = layer.keys.floats().data();
  float* const values = layer.values.floats().data();
  float* const mixed = arrays.mixed.data();
  layer.qkv.Forward(pass, rows, x, arrays.qkv.data());
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(qkv + row * 3 * c + c, c, keys + (past + row) * c);
    std::copy_n(qkv + row * 3 * c + 2 * c, c, values + (past + row) * c);
  }
  if (past == 0 && rows > 1) {
    const kernels::AttentionShape whole{.batch = 1,
                                        .queries = rows,
                                        .keys = rows,
                                        .heads = shape.heads,
                                        .head_dim = dim,
                                        .causal = true};
    backend.AttentionForward({.shape = whole,
                              .in = {qkv, keys, values, 3 * c, c},
                              .out = mixed,
                              .log_sum_exp = arrays.log_sum_exp.data()});
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      kernels::AttentionOfOneQuery(pool, {past + row + 1, shape.heads, dim, qkv + row * 3 * c, keys,
                                          values, mixed + row * c});
    }
  }
  layer.attention_projection.Forward(pass, rows, mixed, arrays.branch.data());
}

void Generator::State::MlpBranch(int64_t rows, const float* x, const Layer& layer) {
  const auto activation = shape.activation == ModelConfig::RELU ? kernels::Activation::kRelu
                                                                : kernels::Activation::kGelu;
  layer.fc.ForwardActivation(pass, rows, x, activation, arrays.pre.data(), arrays.activated.data());
  layer.mlp_projection.Forward(pass, rows, arrays.activated.data(), arrays.branch.data());
}

void Generator::State::ReadLayer(int64_t rows, Layer& layer) {
  const bool pre = shape.pre_norm();
  float* const stream = arrays.stream.data();
  float* const normed = arrays.normed.data();
  if (pre) Normalize(rows, layer.ln_1, stream, normed);
  AttentionBranch(rows, pre ? normed : stream, layer);
  AddBranch(rows);
  Normalize(rows, pre ? layer.ln_2 : layer.ln_1, stream, pre ? normed : stream);
  MlpBranch(rows, pre ? normed : stream, layer);
  AddBranch(rows);
  if (!pre) Normalize(rows, layer.ln_2, stream, stream);
}

void Generator::State::Read(std::span<const int32_t> tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  const auto past = static_cast<int64_t>(read.size());
  TUG_CHECK_LE(past + rows, shape.context);
  for (const int32_t token : tokens) {
    TUG_CHECK(token >= 0 && token < shape.symbols) << "token " << token;
  }
  arrays.Reserve(shape, rows);
  backend.EmbeddingForward(kernels::EmbeddingForwardArgs<float, float>{
      1, rows, shape.width, tokens.data(), ends.wte.rows.fp32.data(),
      ends.wpe.rows.fp32.data() + past * shape.width, arrays.stream.data()});
  for (Layer& layer : layers) ReadLayer(rows, layer);
  read.insert(read.end(), tokens.begin(), tokens.end());
  Normalize(1, ends.ln_f, arrays.stream.data() + (rows - 1) * shape.width, arrays.normed.data());
  backend.LogitsForward(*ends.head.weights,
                        {1, arrays.normed.data(), /*bias=*/nullptr, logits.data(), shape.symbols});
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(
    const ModelConfig& config, uint32_t symbols, const std::vector<std::span<const float>>& weights,
    ThreadPool& pool) {
  if (config.family() != ModelConfig::DECODER) {
    return absl::InvalidArgumentError(
        absl::StrCat("only a model of model.family DECODER can generate text, this one is ",
                     ModelConfig::Family_Name(config.family())));
  }
  return absl::WrapUnique(new Generator(std::make_unique<State>(config, symbols, weights, pool)));
}

Generator::Generator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generator::~Generator() = default;

void Generator::Reset() { state_->read.clear(); }

std::span<const float> Generator::Append(std::span<const int32_t> tokens) {
  TUG_CHECK(!tokens.empty());
  const auto context = static_cast<size_t>(state_->shape.context);
  if (state_->read.size() + tokens.size() <= context) {
    state_->Read(tokens);
  } else {
    std::vector<int32_t> all = std::exchange(state_->read, {});
    all.insert(all.end(), tokens.begin(), tokens.end());
    state_->Read(
        std::span(all).last(std::max((context + 1) / 2, std::min(tokens.size(), context))));
  }
  return state_->logits;
}

}  // namespace tug
