// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_PARAMETERS_H_
#define TUG_MODEL_LAYERS_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/linear.h"
#include "model/backend.h"
#include "model/model.h"
#include "model/pass.h"
#include "proto/blocks.pb.h"

namespace tug {

// The three kinds of parameters of blocks. Values and gradients are in the block's flat arrays,
// which the model's caller owns; with bf16, matrices may be copies (WeightMatrix).

// A matrix of products x W.
template <typename T>
struct Matrix {
  Matrix(int64_t in, int64_t out, kernels::WeightOrder order) : in(in), out(out), order(order) {}

  // Sets the source that the next Prepare binds.
  void SetSource(WeightsView view) {
    source = view;
    is_new = true;
  }
  void Prepare(const Pass<T>& pass);
  // Drops the source and copies of it, until another source is set.
  void Release();
  // Current size of such copies.
  uint64_t CopyBytes() const { return weights != nullptr ? weights->copy_bytes() : 0; }
  // FLOPs of a product with `rows` rows.
  double Flops(int64_t rows) const { return 2.0 * static_cast<double>(rows * in * out); }
  // Arguments of the product that computes the gradient or, with `accumulate`, adds to it.
  kernels::LinearWeightGradientArgs<T> WeightGradient(int64_t rows, const T* x, const T* dy,
                                                      int64_t dy_stride, bool accumulate) const {
    return {in, out, order, rows, x, dy, dy_stride, accumulate, gradient};
  }

  const int64_t in, out;
  const kernels::WeightOrder order;
  std::unique_ptr<WeightMatrix<T>> weights;  // null before the first Prepare
  float* gradient = nullptr;                 // in the order of the weights
  WeightsView source;
  bool is_new = false;
};

// A table for row lookup.
struct Table {
  WeightsView rows;
  float* gradient = nullptr;
};

// A bias or the scale of a LayerNorm: the bound values, as floats. Null if the model has no biases.
struct Vector {
  int64_t size = 0;
  const float* value = nullptr;
  float* gradient = nullptr;
};

// Parameters of one block by their names in the layout, bound and released together. Not
// thread-safe.
template <typename T>
class BlockParameters {
 public:
  // `prefix`: common prefix of the block's names. `spec` must outlive this.
  BlockParameters(const BlockSpec& spec, std::string prefix)
      : spec_(spec), prefix_(std::move(prefix)) {}

  // Each parameter must outlive this. REQUIRES: the layout has a tensor of that name and size; only
  // a bias may be missing.
  void Add(const std::string& name, Matrix<T>& matrix);
  void Add(const std::string& name, Table& table);
  void Add(const std::string& name, Vector& vector);

  // See Model::BindWeights and Model::BindGradient.
  void BindWeights(WeightsView weights);
  void BindGradient(std::span<float> gradient);

  // See Model::ReleaseWeights. Keeps the memory for vectors, which is small.
  void ReleaseWeights();
  // Size of the matrices' copies.
  uint64_t CopyBytes() const;

  // Work after BindWeights, before weights are read. Repeated calls do nothing.
  void Prepare(const Pass<T>& pass);
  // Call before the block's backward pass: weights may have been bound since the forward pass, and
  // gradients of vectors must be zeroed, since kernels add to them.
  void PrepareBackward(const Pass<T>& pass);

 private:
  template <typename Parameter>
  struct Placed {
    Parameter* parameter;
    size_t offset, size;  // in elements, within the block
  };
  // Finds the tensor in the block; size 0: no such name.
  template <typename Parameter>
  Placed<Parameter> Place(const std::string& name, Parameter& parameter) const;

  const BlockSpec& spec_;
  const std::string prefix_;
  std::vector<Placed<Matrix<T>>> matrices_;
  std::vector<Placed<Table>> tables_;
  std::vector<Placed<Vector>> vectors_;
  WeightsView weights_;
  std::span<float> gradient_;
  bool is_new_ = false;                 // weights bound since the last Prepare
  std::shared_ptr<std::byte> widened_;  // vectors of bf16 weights, as floats
};

extern template struct Matrix<float>;
extern template struct Matrix<kernels::Bf16>;
extern template class BlockParameters<float>;
extern template class BlockParameters<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_PARAMETERS_H_
