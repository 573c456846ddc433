#ifndef TUG_MODEL_PARAMETERS_H_
#define TUG_MODEL_PARAMETERS_H_

#include <cstdint>
#include <span>

#include "base/check.h"
#include "model/layout.h"

namespace tug {

// The tensors of a block's flat parameters or gradients, in the order of model/layout.h; T is float
// or const float. Biases are nullptr without `bias`. Views: they own nothing.

// Takes tensors off the front of a block.
template <typename T>
class BlockReader {
 public:
  explicit BlockReader(std::span<T> block) : rest_(block) {}
  ~BlockReader() { TUG_CHECK(rest_.empty()) << "a block has the size that GptLayout gives it"; }

  T* Take(int64_t size) {
    T* const tensor = rest_.data();
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return tensor;
  }
  T* TakeIf(bool present, int64_t size) { return present ? Take(size) : nullptr; }

 private:
  std::span<T> rest_;
};

template <typename T>
struct EmbeddingTensors {
  T* wte;  // [V, C]
  T* wpe;  // [T, C]

  EmbeddingTensors(const GptShape& shape, std::span<T> block) {
    BlockReader<T> reader(block);
    wte = reader.Take(shape.symbols * shape.width);
    wpe = reader.Take(shape.context * shape.width);
  }
};

template <typename T>
struct LayerTensors {
  T* qkv;             // [C, 3C]
  T* attn_proj;       // [C, C]
  T* fc;              // [C, 4C]
  T* mlp_proj;        // [4C, C]
  T* ln_1;            // [C]
  T* ln_1_bias;       // [C]
  T* qkv_bias;        // [3C]
  T* attn_proj_bias;  // [C]
  T* ln_2;            // [C]
  T* ln_2_bias;       // [C]
  T* fc_bias;         // [4C]
  T* mlp_proj_bias;   // [C]

  LayerTensors(const GptShape& shape, std::span<T> block) {
    const int64_t c = shape.width;
    BlockReader<T> reader(block);
    qkv = reader.Take(c * 3 * c);
    attn_proj = reader.Take(c * c);
    fc = reader.Take(c * 4 * c);
    mlp_proj = reader.Take(4 * c * c);
    ln_1 = reader.Take(c);
    ln_1_bias = reader.TakeIf(shape.bias, c);
    qkv_bias = reader.TakeIf(shape.bias, 3 * c);
    attn_proj_bias = reader.TakeIf(shape.bias, c);
    ln_2 = reader.Take(c);
    ln_2_bias = reader.TakeIf(shape.bias, c);
    fc_bias = reader.TakeIf(shape.bias, 4 * c);
    mlp_proj_bias = reader.TakeIf(shape.bias, c);
  }
};

template <typename T>
struct HeadTensors {
  T* lm_head;    // [V, C]; nullptr when tied: it is the embedding's wte
  T* ln_f;       // [C]
  T* ln_f_bias;  // [C]

  HeadTensors(const GptShape& shape, std::span<T> block) {
    BlockReader<T> reader(block);
    lm_head = reader.TakeIf(!shape.tied_head, shape.symbols * shape.width);
    ln_f = reader.Take(shape.width);
    ln_f_bias = reader.TakeIf(shape.bias, shape.width);
  }
};

}  // namespace tug

#endif  // TUG_MODEL_PARAMETERS_H_
