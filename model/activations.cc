#include "model/activations.h"

namespace tug {

class Activations::Carver {
 public:
  explicit Carver(float* base) : base_(base) {}

  float* Take(int64_t size) {
    float* const array = base_ == nullptr ? nullptr : base_ + used_;
    constexpr int64_t kLine = AlignedBuffer::kAlignment / sizeof(float);
    used_ += (size + kLine - 1) / kLine * kLine;
    return array;
  }
  uint64_t used_bytes() const { return static_cast<uint64_t>(used_) * sizeof(float); }

 private:
  float* const base_;
  int64_t used_ = 0;
};

Activations::Activations(const GptShape& shape, int64_t samples)
    : buffer_(SizeBytes(shape, samples)) {
  Carver carver(buffer_.floats().data());
  Carve(shape, samples, carver);
}

uint64_t Activations::SizeBytes(const GptShape& shape, int64_t samples) {
  Activations plan;
  Carver carver(nullptr);
  plan.Carve(shape, samples, carver);
  return carver.used_bytes();
}

void Activations::Carve(const GptShape& shape, int64_t samples, Carver& carver) {
  const int64_t rows = samples * shape.context;
  const int64_t narrow = rows * shape.width;
  embedding = carver.Take(narrow);
  layers.clear();
  for (int64_t l = 0; l < shape.layers; ++l) {
    LayerActivations& layer = layers.emplace_back();
    layer.ln_1 = carver.Take(narrow);
    layer.ln_1_mean = carver.Take(rows);
    layer.ln_1_rstd = carver.Take(rows);
    layer.qkv = carver.Take(3 * narrow);
    layer.probs = carver.Take(rows * shape.heads * shape.context);
    layer.mixed = carver.Take(narrow);
    layer.middle = carver.Take(narrow);
    layer.ln_2 = carver.Take(narrow);
    layer.ln_2_mean = carver.Take(rows);
    layer.ln_2_rstd = carver.Take(rows);
    layer.fc = carver.Take(4 * narrow);
    layer.gelu = carver.Take(4 * narrow);
    layer.out = carver.Take(narrow);
  }
  ln_f = carver.Take(narrow);
  ln_f_mean = carver.Take(rows);
  ln_f_rstd = carver.Take(rows);
  logits = carver.Take(rows * shape.symbols);
  losses = carver.Take(rows);
  gradient = carver.Take(narrow);
  branch = carver.Take(narrow);
  branch_output = carver.Take(narrow);
  wide = carver.Take(4 * narrow);
}

}  // namespace tug
