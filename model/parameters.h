#ifndef TUG_MODEL_PARAMETERS_H_
#define TUG_MODEL_PARAMETERS_H_

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

// The three kinds of parameters that blocks are made of. Values and gradients lie in the block's
// flat arrays, which the caller of the model owns; matrices of bf16 may be copies (WeightMatrix).

// A matrix of products x W.
template <typename T>
struct Matrix {
  Matrix(int64_t in, int64_t out, kernels::WeightOrder order) : in(in), out(out), order(order) {}

  // Bound by the next Prepare.
  void SetSource(WeightsView view) {
    source = view;
    is_new = true;
  }
  void Prepare(const Pass<T>& pass);
  // Without a source and copies of it, until another one is set.
  void Release();
  // Of such copies, at present.
  uint64_t CopyBytes() const { return weights != nullptr ? weights->copy_bytes() : 0; }
  // Of a product with `rows` rows.
  double Flops(int64_t rows) const { return 2.0 * static_cast<double>(rows * in * out); }
  // Of the product that makes or, with `accumulate`, adds to the gradient.
  kernels::LinearWeightGradientArgs<T> WeightGradient(int64_t rows, const T* x, const T* dy,
                                                      int64_t dy_stride, bool accumulate) const {
    return {in, out, order, rows, x, dy, dy_stride, accumulate, gradient};
  }

  const int64_t in, out;
  const kernels::WeightOrder order;
  std::unique_ptr<WeightMatrix<T>> weights;  // from the first Prepare on
  float* gradient = nullptr;                 // in the order of the weights
  WeightsView source;
  bool is_new = false;
};

// Rows that are looked up.
struct Table {
  WeightsView rows;
  float* gradient = nullptr;
};

// A bias, or the scale of a LayerNorm: the values that were bound, as floats. Without values where
// the model has no biases.
struct Vector {
  int64_t size = 0;
  const float* value = nullptr;
  float* gradient = nullptr;
};

// The parameters of one block by their names in the layout, bound and unbound together. Not
// thread-safe.
template <typename T>
class BlockParameters {
 public:
  // `prefix`: what all names of the block begin with. `spec` outlives this.
  BlockParameters(const BlockSpec& spec, std::string prefix)
      : spec_(spec), prefix_(std::move(prefix)) {}

  // Each outlives this. REQUIRES: the layout has a tensor of that name and size; a vector may be
  // absent.
  void Add(const std::string& name, Matrix<T>& matrix);
  void Add(const std::string& name, Table& table);
  void Add(const std::string& name, Vector& vector);

  // As Model::BindWeights and Model::BindGradient.
  void BindWeights(WeightsView weights);
  void BindGradient(std::span<float> gradient);

  // As Model::ReleaseWeights. Keeps memory for vectors, which is small.
  void ReleaseWeights();
  // Of copies that matrices have.
  uint64_t CopyBytes() const;

  // What is to do once after BindWeights, before weights are read.
  void Prepare(const Pass<T>& pass);
  // Before the block's backward pass: weights may have been bound since its forward pass, and
  // kernels add to the gradients of vectors.
  void PrepareBackward(const Pass<T>& pass);

 private:
  template <typename Parameter>
  struct Placed {
    Parameter* parameter;
    size_t offset, size;  // elements, in the block
  };
  // Of the tensor in the block; size 0: none of that name.
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
  std::shared_ptr<std::byte> widened_;  // vectors of weights that are bf16, as floats
};

extern template struct Matrix<float>;
extern template struct Matrix<kernels::Bf16>;
extern template class BlockParameters<float>;
extern template class BlockParameters<kernels::Bf16>;

}  // namespace tug

#endif  // TUG_MODEL_PARAMETERS_H_
