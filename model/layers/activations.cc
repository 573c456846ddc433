// SPDX-License-Identifier: Apache-2.0
#include "model/layers/activations.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "model/layers/recompute.h"

namespace tug {
namespace {

// Limit of a chunk's logits. Each chunk reads the head's matrix twice and adds to its whole
// gradient: more rows reduce this cost but take more memory. Passes of a 30M model with 50,257
// symbols, alternating, in ms: 1,117 and 1,240 with 32 MiB against 1,110 and 1,057 with 64; 1,195,
// 1,123, 1,154 with 64 against 1,165, 1,073, 1,085 with 128.
constexpr int64_t kLogitsBytes = int64_t{128} << 20;
constexpr int64_t kChunkStep = 32;  // rows; suits the products
constexpr int64_t kMinChunk = 64;

// For the gradients of R rows of logits, the head's products take 6 R V C FLOPs, and its FP32
// gradient is read and written once, 8 V C bytes. A GPU does about 250 bf16 FLOPs per byte moved
// (H100: 800e12 and 3.35e12 per second), so the traffic costs 8 * 250 / (6 R) of the products'
// time: 2% for this many rows. In FP32 products take over ten times as long, so one chunk suffices.
constexpr int64_t kMaxGradientRows = 16384;

}  // namespace

int64_t HeadChunkRows(int64_t symbols) {
  const int64_t rows = kLogitsBytes / (static_cast<int64_t>(sizeof(float)) * symbols);
  return std::max(rows / kChunkStep * kChunkStep, kMinChunk);
}

int64_t HeadGradientRows(int64_t symbols, int64_t gradient_bytes) {
  const int64_t chunk = HeadChunkRows(symbols);
  const int64_t rows = gradient_bytes / (static_cast<int64_t>(sizeof(kernels::Bf16)) * symbols);
  return std::max(std::min(rows, kMaxGradientRows) / chunk, int64_t{1}) * chunk;
}

int64_t HeadColumns(const ModelShape& shape) {
  return shape.family == ModelConfig::ENCODER ? shape.classes : shape.symbols;
}

ActivationOptions ActivationOptionsOf(const ModelOptions& options) {
  const ModelShape shape = ModelShapeOf(options.config, options.symbols, options.classes);
  return {.shape = shape,
          .train = options.train,
          .dropout = options.config.dropout() > 0,
          .samples = options.max_micro_batch,
          .inference = options.inference,
          .logits_stride = HeadColumns(shape)};
}

template <typename T>
class Activations<T>::Carver {
 public:
  explicit Carver(std::byte* base) : base_(reinterpret_cast<uintptr_t>(base)) {}
  // Only counts: array addresses are distinct and not null, but invalid.
  Carver() : base_(kLine) {}

  template <typename U = T>
  U* Take(int64_t size) {
    U* const array = reinterpret_cast<U*>(base_ + used_bytes_);
    used_bytes_ += (static_cast<size_t>(size) * sizeof(U) + kLine - 1) / kLine * kLine;
    return array;
  }
  NormStatistics TakeStatistics(int64_t rows) {
    float* const mean = Take<float>(rows);
    return {mean, Take<float>(rows)};
  }
  size_t used_bytes() const { return used_bytes_; }

 private:
  static constexpr size_t kLine = 64;  // bytes; alignment of arrays
  const uintptr_t base_;
  size_t used_bytes_ = 0;
};

template <typename T>
Activations<T>::Activations(const ActivationOptions& options, std::shared_ptr<std::byte> memory)
    : buffer_(std::move(memory)) {
  Carver carver(buffer_.get());
  Carve(options, carver);
}

template <typename T>
uint64_t Activations<T>::SizeBytes(const ActivationOptions& options) {
  Activations plan;
  Carver carver;
  plan.Carve(options, carver);
  return carver.used_bytes();
}

template <typename T>
void Activations<T>::Carve(const ActivationOptions& options, Carver& carver) {
  const ModelShape& shape = options.shape;
  const int64_t rows = options.samples * shape.context;
  const int64_t narrow = rows * shape.width;
  CarveStack(options, /*decoder_stack=*/false, carver);
  if (shape.has_decoder_stack()) {
    memory = stacks.front().out;
    if (shape.pre_norm()) {
      memory = memory_norm = carver.Take(narrow);
      memory_statistics = carver.TakeStatistics(rows);
    }
    CarveStack(options, /*decoder_stack=*/true, carver);
  }
  branch = carver.Take(narrow);
  if (!options.inference) {
    for (StackActivations<T>& stack : stacks) stack.gradient = carver.Take(narrow);
    if (options.dropout) branch_gradient = carver.Take(narrow);
    wide = carver.Take(rows * std::max(3 * shape.width, shape.mlp_width));
  } else if (shape.activation == ModelConfig::RELU) {
    wide = carver.Take(rows * shape.mlp_width);
  }
  CarveHead(options, carver);
}

template <typename T>
void Activations<T>::CarveStack(const ActivationOptions& options, bool decoder_stack,
                                Carver& carver) {
  const ModelShape& shape = options.shape;
  const int64_t narrow = options.samples * shape.context * shape.width;
  StackActivations<T>& stack = stacks.emplace_back();
  stack.embedding = carver.Take(narrow);
  // Inference: only one layer's input and output, alternating.
  T* spare = options.inference ? carver.Take(narrow) : nullptr;
  T* in = stack.embedding;
  const std::vector<LayerRecompute> plan =
      PlanRecompute(options.train, shape.layers, options.inference);
  for (size_t l = 0; l < plan.size(); ++l) {
    LayerActivations<T>& layer = stack.layers.emplace_back();
    const auto set = static_cast<size_t>(plan[l].shared_set);
    if (!plan[l].own && set < shared_sets_.size()) {
      layer.memory = shared_sets_[set];
    } else {
      layer.memory = layer_memory_.emplace_back(std::make_unique<LayerMemory<T>>()).get();
      if (!plan[l].own) shared_sets_.push_back(layer.memory);
    }
    LayerMemory<T>& memory = *layer.memory;
    if (plan[l].shared_attention) {
      if (shared_self_ == nullptr) shared_self_ = NewAttention(options, false, carver);
      if (decoder_stack && shared_cross_ == nullptr) {
        shared_cross_ = NewAttention(options, true, carver);
      }
      memory.self = shared_self_;
      if (decoder_stack) memory.cross = shared_cross_;
    }
    CarveLayer(options, decoder_stack, memory, carver);

    layer.in = in;
    layer.keeps_input = plan[l].keeps_input;
    if (options.inference) {
      layer.out = std::exchange(spare, in);
    } else if (l + 1 < plan.size() && !plan[l + 1].keeps_input) {
      if (memory.out == nullptr) memory.out = carver.Take(narrow);
      layer.out = memory.out;
    } else {
      layer.out = carver.Take(narrow);
    }
    in = layer.out;
  }
  stack.out = in;
}

// Arrays that exist already, in shared memory, are kept.
template <typename T>
void Activations<T>::CarveLayer(const ActivationOptions& options, bool cross,
                                LayerMemory<T>& memory, Carver& carver) {
  const ModelShape& shape = options.shape;
  const int64_t rows = options.samples * shape.context;
  const int64_t narrow = rows * shape.width;
  const int branches = cross ? 3 : 2;
  for (int i = 0; i < branches; ++i) {
    const bool last = i + 1 == branches;
    const bool has_norm = shape.pre_norm() || !last, has_sum = !shape.pre_norm() || !last;
    if (has_norm && memory.norms[i] == nullptr) memory.norms[i] = carver.Take(narrow);
    if (has_sum && memory.sums[i] == nullptr) memory.sums[i] = carver.Take(narrow);
    if (memory.statistics[i].mean == nullptr) memory.statistics[i] = carver.TakeStatistics(rows);
  }
  if (memory.self == nullptr) memory.self = NewAttention(options, false, carver);
  if (cross && memory.cross == nullptr) memory.cross = NewAttention(options, true, carver);
  if (memory.hidden != nullptr) return;
  if (shape.activation == ModelConfig::GELU) {
    memory.before_activation = carver.Take(rows * shape.mlp_width);
  }
  memory.hidden = carver.Take(rows * shape.mlp_width);
}

template <typename T>
AttentionMemory<T>* Activations<T>::NewAttention(const ActivationOptions& options, bool cross,
                                                 Carver& carver) {
  const ModelShape& shape = options.shape;
  const int64_t rows = options.samples * shape.context;
  const int64_t narrow = rows * shape.width;
  AttentionMemory<T>& attention =
      *attention_memory_.emplace_back(std::make_unique<AttentionMemory<T>>());
  attention.q = carver.Take(cross ? narrow : 3 * narrow);
  if (cross) attention.kv = carver.Take(2 * narrow);
  attention.mixed = carver.Take(narrow);
  attention.log_sum_exp = carver.template Take<float>(rows * shape.heads);
  return &attention;
}

template <typename T>
void Activations<T>::CarveHead(const ActivationOptions& options, Carver& carver) {
  const ModelShape& shape = options.shape;
  const bool classifier = shape.family == ModelConfig::ENCODER;
  const int64_t all_rows = classifier ? options.samples : options.samples * shape.context;
  const int64_t rows = classifier ? all_rows : std::min(all_rows, HeadChunkRows(shape.symbols));
  int64_t gradient_rows = rows;
  if (!classifier && !options.inference && !std::is_same_v<T, float>) {
    gradient_rows =
        std::min(all_rows, HeadGradientRows(shape.symbols, options.logits_gradient_bytes));
  }
  head.chunk_rows = rows;
  head.gradient_rows = gradient_rows;
  head.input = carver.Take(gradient_rows * shape.width);
  if (!classifier || shape.pre_norm()) head.statistics = carver.TakeStatistics(gradient_rows);
  if (classifier && shape.pre_norm()) head.first_tokens = carver.Take(rows * shape.width);
  head.logits = carver.template Take<float>(rows * options.logits_stride);
  if constexpr (std::is_same_v<T, float>) {
    head.logits_gradient = head.logits;
  } else if (!options.inference) {
    head.logits_gradient = carver.Take(gradient_rows * options.logits_stride);
  }
  head.losses = carver.template Take<float>(all_rows);
  head.correct = carver.template Take<uint8_t>(all_rows);
}

template class Activations<float>;
template class Activations<kernels::Bf16>;

}  // namespace tug
