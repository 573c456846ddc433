// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/cuda/dropout_cuda.h"
#include "kernels/cuda/dropout_mask_cuda.h"
#include "kernels/cuda/layernorm_cuda.h"
#include "kernels/cuda/layernorm_team_cuda.h"

namespace tug::kernels::cuda {
namespace {

struct ForwardShared {
  float scratch[kWarp];
};

// Inputs of ResidualLayerNormForward, which are added before the row is normalized.
template <typename T>
struct Residual {
  const float* bias;
  const T* residual;
  DropoutMask mask;
  int64_t seq;
  T* sum;
};

// value = the row of residual + dropout(value + bias), as stored (rounded to T).
template <typename Team>
__device__ __forceinline__ void AddResidual(const Residual<typename Team::Element>& from,
                                            int64_t row, int64_t width,
                                            typename Team::Values& value) {
  using T = typename Team::Element;
  const auto sample = static_cast<uint32_t>(row / from.seq);
  const int64_t begin = row % from.seq * width;  // within the sample
#pragma unroll
  for (int k = 0; k < Team::kVectors; ++k) {
    const int64_t column = Team::Column(k);
    const int64_t left = width - column;
    auto& v = value[k];
    if (from.bias != nullptr) {
      float shift[Team::kPerVector];
      LoadVector<true>(from.bias + column, left, shift);
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) v[i] += shift[i];
    }
    if (from.mask.threshold != 0) {
      ApplyDropout(from.mask, KeptBits<Team::kPerVector>(from.mask, sample, begin + column), v);
    }
    float past[Team::kPerVector];
    LoadVector<true>(from.residual + row * width + column, left, past);
#pragma unroll
    for (int i = 0; i < Team::kPerVector; ++i) {
      v[i] = left > 0 ? Widen(Narrow<T>(past[i] + v[i])) : 0.0f;
    }
  }
#pragma unroll
  for (int k = 0; k < Team::kVectors; ++k) {
    const int64_t column = Team::Column(k);
    StoreVector<true>(value[k], width - column, from.sum + row * width + column);
  }
}

// Each row: its mean, the variance about that mean, then the result. gamma, beta: those of `a`,
// separate parameters since nvcc ignores __restrict__ on members.
template <typename Team, bool kResidual>
__global__ void __launch_bounds__(Team::kMaxThreads, Team::kColumns > 24 ? 1 : 2)
    ForwardKernel(LayerNormForwardArgs<typename Team::Element> a,
                  Residual<typename Team::Element> residual, const float* __restrict__ gamma,
                  const float* __restrict__ beta) {
  const int64_t width = a.width;
  float* const scratch = SharedMemory<ForwardShared>()->scratch;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t row = Team::FirstRow(); row < a.rows; row += Team::RowStride()) {
    typename Team::Values value;
    Team::Load(a.x + row * width, width, value);
    if constexpr (kResidual) AddResidual<Team>(residual, row, width, value);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) sum += value[k][i];
    }
    const float mean = Team::Sum(sum, scratch) * inverse_width;
    float squares = 0;
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
      const int64_t left = width - Team::Column(k);
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) {
        const float centred = i < left ? value[k][i] - mean : 0.0f;
        squares = fmaf(centred, centred, squares);
      }
    }
    const float variance = Team::Sum(squares, scratch) * inverse_width;
    const float rstd = 1.0f / sqrtf(variance + kLayerNormEpsilon);
#pragma unroll
    for (int k = 0; k < Team::kVectors; ++k) {
      const int64_t column = Team::Column(k);
      const int64_t left = width - column;
      float scale[Team::kPerVector];
      float shift[Team::kPerVector] = {};
      LoadVector<Team::kWhole>(gamma + column, left, scale);
      if (beta != nullptr) LoadVector<Team::kWhole>(beta + column, left, shift);
#pragma unroll
      for (int i = 0; i < Team::kPerVector; ++i) {
        value[k][i] = fmaf((value[k][i] - mean) * rstd, scale[i], shift[i]);
      }
      StoreVector<Team::kWhole>(value[k], left, a.y + row * width + column);
    }
    if (Team::Rank() == 0) {
      a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
  }
}

template <bool kResidual, typename T>
absl::Status LaunchForward(const LayerNormForwardArgs<T>& a, const Residual<T>& residual,
                           bool whole, const Stream& stream) {
  return WithLayerNormTeam<T>(a.width, whole, [&]<typename Team>(unsigned threads) {
    if constexpr (kResidual && !Team::kWhole) {
      return absl::InternalError("a row's random numbers do not begin with it");
    } else {
      const int64_t teams = (a.rows + Team::RowsPerBlock() - 1) / Team::RowsPerBlock();
      return Launch(ForwardKernel<Team, kResidual>,
                    {GridStrideBlocks(teams, 1), threads, stream, sizeof(ForwardShared)}, a,
                    residual, a.gamma, a.beta);
    }
  });
}

}  // namespace

template <typename T>
absl::Status LayerNormForward(const LayerNormForwardArgs<T>& a, const Stream& stream) {
  if (a.rows == 0 || a.width == 0) return absl::OkStatus();
  return LaunchForward<false>(a, Residual<T>(), AtVectors(a.x, a.gamma, a.beta, a.y), stream);
}

template <typename T>
absl::Status ResidualLayerNormForward(const ResidualLayerNormForwardArgs<T>& a,
                                      const Stream& stream) {
  if (a.add.width == 0 || a.rows() == 0) return absl::OkStatus();
  const DropoutAddArgs<T>& add = a.add;
  // KeptBits requires each row to begin with a block of 64 elements.
  const bool whole = AtVectors(add.x, add.bias, add.residual, a.gamma, a.beta, add.y, a.y);
  LayerNormForwardArgs<T> norm = a.norm();
  if (!whole || add.width % 64 != 0) {
    RETURN_IF_ERROR(DropoutAdd(add, stream));
    return LayerNormForward(norm, stream);
  }
  TUG_CHECK_LE(add.elements_per_sample, kMaxDropoutElements);
  norm.x = add.x;
  return LaunchForward<true>(norm,
                             {add.bias, add.residual, MakeDropoutMask(add.key, add.p),
                              add.elements_per_sample / add.width, add.y},
                             whole, stream);
}

template absl::Status LayerNormForward(const LayerNormForwardArgs<float>&, const Stream&);
template absl::Status LayerNormForward(const LayerNormForwardArgs<Bf16>&, const Stream&);
template absl::Status ResidualLayerNormForward(const ResidualLayerNormForwardArgs<float>&,
                                               const Stream&);
template absl::Status ResidualLayerNormForward(const ResidualLayerNormForwardArgs<Bf16>&,
                                               const Stream&);

}  // namespace tug::kernels::cuda
