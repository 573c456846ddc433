// SPDX-License-Identifier: Apache-2.0
#include "model/layers/parameters.h"

#include <type_traits>

#include "base/check.h"
#include "model/layout.h"

namespace tug {
namespace {

WeightsView Part(WeightsView view, size_t offset, size_t size) {
  if (!view.fp32.empty()) return {.fp32 = view.fp32.subspan(offset, size)};
  return {.bf16 = view.bf16.subspan(offset, size)};
}

// FP32 weights are rounded to bf16; bf16 weights may be read in place.
template <typename T>
OpWork PackingWork(int64_t elements, const WeightsView& source) {
  if (std::is_same_v<T, float> || source.fp32.empty()) return {};
  return {.bytes = static_cast<double>(elements) * (sizeof(float) + sizeof(T))};
}

}  // namespace

template <typename T>
void Matrix<T>::Prepare(const Pass<T>& pass) {
  if (!is_new) return;
  is_new = false;
  const OpTimer timer(pass.profile, Op::kPacking, PackingWork<T>(in * out, source));
  if (weights == nullptr) weights = pass.backend.NewMatrix(in, out, order);
  if (!source.bf16.empty()) return weights->Bind(source.bf16.data());
  weights->Bind(source.fp32.data());
}

template <typename T>
void Matrix<T>::Release() {
  source = {};
  is_new = false;
  if (weights != nullptr) weights->Release();
}

template <typename T>
template <typename Parameter>
BlockParameters<T>::Placed<Parameter> BlockParameters<T>::Place(const std::string& name,
                                                                Parameter& parameter) const {
  size_t offset = 0;
  for (const TensorSpec& tensor : spec_.tensors()) {
    const size_t size = ElementCount(tensor);
    if (tensor.name() == prefix_ + name) return {&parameter, offset, size};
    offset += size;
  }
  return {&parameter, 0, 0};
}

template <typename T>
void BlockParameters<T>::Add(const std::string& name, Matrix<T>& matrix) {
  matrices_.push_back(Place(name, matrix));
  TUG_CHECK_EQ(matrices_.back().size, static_cast<size_t>(matrix.in * matrix.out));
}

template <typename T>
void BlockParameters<T>::Add(const std::string& name, Table& table) {
  tables_.push_back(Place(name, table));
  TUG_CHECK_GT(tables_.back().size, 0u);
}

template <typename T>
void BlockParameters<T>::Add(const std::string& name, Vector& vector) {
  const Placed<Vector> placed = Place(name, vector);
  TUG_CHECK(placed.size > 0 || name.ends_with(".bias")) << "no tensor " << prefix_ << name;
  if (placed.size == 0) return;
  vector.size = static_cast<int64_t>(placed.size);
  vectors_.push_back(placed);
}

template <typename T>
void BlockParameters<T>::BindWeights(WeightsView weights) {
  TUG_CHECK_EQ(weights.size(), ElementCount(spec_));
  TUG_CHECK((std::is_same_v<T, kernels::Bf16>) || weights.bf16.empty())
      << "a model of FP32 reads FP32 weights";
  weights_ = weights;
  is_new_ = true;
  for (const auto& [matrix, offset, size] : matrices_) {
    matrix->SetSource(Part(weights, offset, size));
  }
  for (const auto& [table, offset, size] : tables_) table->rows = Part(weights, offset, size);
}

template <typename T>
void BlockParameters<T>::ReleaseWeights() {
  weights_ = {};
  is_new_ = false;
  for (const auto& [matrix, offset, size] : matrices_) matrix->Release();
  for (const auto& [table, offset, size] : tables_) table->rows = {};
  for (const auto& [vector, offset, size] : vectors_) vector->value = nullptr;
}

template <typename T>
uint64_t BlockParameters<T>::CopyBytes() const {
  uint64_t bytes = 0;
  for (const auto& [matrix, offset, size] : matrices_) bytes += matrix->CopyBytes();
  return bytes;
}

template <typename T>
void BlockParameters<T>::BindGradient(std::span<float> gradient) {
  TUG_CHECK_EQ(gradient.size(), ElementCount(spec_));
  gradient_ = gradient;
  for (const auto& [matrix, offset, size] : matrices_) matrix->gradient = &gradient[offset];
  for (const auto& [table, offset, size] : tables_) table->gradient = &gradient[offset];
  for (const auto& [vector, offset, size] : vectors_) vector->gradient = &gradient[offset];
}

template <typename T>
void BlockParameters<T>::Prepare(const Pass<T>& pass) {
  TUG_CHECK_GT(weights_.size(), 0u) << "no weights bound to block " << spec_.name();
  for (const auto& [matrix, offset, size] : matrices_) matrix->Prepare(pass);
  if (!std::exchange(is_new_, false) || vectors_.empty()) return;
  if (!weights_.fp32.empty()) {
    for (const auto& [vector, offset, size] : vectors_) vector->value = &weights_.fp32[offset];
    return;
  }
  if (widened_ == nullptr) {
    size_t total = 0;
    for (const auto& [vector, offset, size] : vectors_) total += size;
    auto memory = pass.backend.Allocate(total * sizeof(float), "biases and norms as floats");
    if (!memory.ok()) return;  // the backend keeps the error, and computes nothing
    widened_ = *std::move(memory);
  }
  auto* widened = reinterpret_cast<float*>(widened_.get());
  for (const auto& [vector, offset, size] : vectors_) {
    pass.backend.FloatFromBf16(&weights_.bf16[offset], widened, vector->size);
    vector->value = widened;
    widened += size;
  }
}

template <typename T>
void BlockParameters<T>::PrepareBackward(const Pass<T>& pass) {
  Prepare(pass);
  TUG_CHECK(!gradient_.empty()) << "no gradient bound to block " << spec_.name();
  if (pass.batch.accumulate) return;
  for (const auto& [vector, offset, size] : vectors_) {
    pass.backend.FillZero(vector->gradient, size * sizeof(float));
  }
}

template struct Matrix<float>;
template struct Matrix<kernels::Bf16>;
template class BlockParameters<float>;
template class BlockParameters<kernels::Bf16>;

}  // namespace tug
