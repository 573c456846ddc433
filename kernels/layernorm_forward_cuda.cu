#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/dropout_cuda.h"
#include "kernels/dropout_mask_cuda.h"
#include "kernels/layernorm_cuda.h"
#include "kernels/layernorm_team_cuda.h"

namespace tug::kernels::cuda {
namespace {

struct ForwardShared {
  float scratch[kWarp];
};

// What ResidualLayerNormForward does before the row is normalised.
template <typename T>
struct Residual {
  const float* bias;
  const T* residual;
  DropoutMask mask;
  int64_t seq;
  T* sum;
};

// value = the row of residual + dropout(value + bias), as it is stored.
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

// Each row: its mean, then its variance about that mean, then the result.
template <typename Team, bool kResidual>
__global__ void __launch_bounds__(Team::kMaxThreads, Team::kColumns > 24 ? 1 : 2)
    ForwardKernel(int64_t rows, int64_t width, const typename Team::Element* x,
                  Residual<typename Team::Element> residual, const float* __restrict__ gamma,
                  const float* __restrict__ beta, typename Team::Element* y,
                  float* __restrict__ mean_out, float* __restrict__ rstd_out) {
  float* const scratch = SharedMemory<ForwardShared>()->scratch;
  const float inverse_width = 1.0f / static_cast<float>(width);
  for (int64_t row = Team::FirstRow(); row < rows; row += Team::RowStride()) {
    typename Team::Values value;
    Team::Load(x + row * width, width, value);
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
      StoreVector<Team::kWhole>(value[k], left, y + row * width + column);
    }
    if (Team::Rank() == 0) {
      mean_out[row] = mean;
      rstd_out[row] = rstd;
    }
  }
}

template <bool kResidual, typename T>
absl::Status LaunchForward(int64_t rows, int64_t width, bool whole, const T* x,
                           const Residual<T>& residual, const float* gamma, const float* beta, T* y,
                           float* mean, float* rstd, const Stream& stream) {
  return WithLayerNormTeam<T>(width, whole, [&]<typename Team>(unsigned threads) {
    if constexpr (kResidual && !Team::kWhole) {
      return absl::InternalError("a row's random numbers do not begin with it");
    } else {
      const int64_t teams = (rows + Team::RowsPerBlock() - 1) / Team::RowsPerBlock();
      return Launch(ForwardKernel<Team, kResidual>,
                    {GridStrideBlocks(teams, 1), threads, stream, sizeof(ForwardShared)}, rows,
                    width, x, residual, gamma, beta, y, mean, rstd);
    }
  });
}

}  // namespace

template <typename T>
absl::Status LayerNormForward(int64_t rows, int64_t width, const T* x, const float* gamma,
                              const float* beta, T* y, float* mean, float* rstd,
                              const Stream& stream) {
  if (rows == 0 || width == 0) return absl::OkStatus();
  return LaunchForward<false>(rows, width, AtVectors(x, gamma, beta, y), x, Residual<T>(), gamma,
                              beta, y, mean, rstd, stream);
}

template <typename T>
absl::Status ResidualLayerNormForward(int64_t samples, int64_t seq, int64_t width, const T* x,
                                      const float* bias, const T* residual, float p,
                                      const DropoutKey& key, const float* gamma, const float* beta,
                                      T* sum, T* y, float* mean, float* rstd,
                                      const Stream& stream) {
  const int64_t rows = samples * seq;
  if (rows == 0 || width == 0) return absl::OkStatus();
  // KeptBits wants a row to begin with a block of 64 elements.
  const bool whole = AtVectors(x, bias, residual, gamma, beta, sum, y);
  if (!whole || width % 64 != 0) {
    RETURN_IF_ERROR(
        BiasDropoutAdd(samples, seq * width, width, x, bias, residual, p, key, sum, stream));
    return LayerNormForward<T>(rows, width, sum, gamma, beta, y, mean, rstd, stream);
  }
  TUG_CHECK_LE(seq * width, kMaxDropoutElements);
  const Residual<T> before{bias, residual, MakeDropoutMask(key, p), seq, sum};
  return LaunchForward<true>(rows, width, whole, x, before, gamma, beta, y, mean, rstd, stream);
}

template absl::Status LayerNormForward(int64_t, int64_t, const float*, const float*, const float*,
                                       float*, float*, float*, const Stream&);
template absl::Status LayerNormForward(int64_t, int64_t, const Bf16*, const float*, const float*,
                                       Bf16*, float*, float*, const Stream&);
template absl::Status ResidualLayerNormForward(int64_t, int64_t, int64_t, const float*,
                                               const float*, const float*, float, const DropoutKey&,
                                               const float*, const float*, float*, float*, float*,
                                               float*, const Stream&);
template absl::Status ResidualLayerNormForward(int64_t, int64_t, int64_t, const Bf16*, const float*,
                                               const Bf16*, float, const DropoutKey&, const float*,
                                               const float*, Bf16*, Bf16*, float*, float*,
                                               const Stream&);

}  // namespace tug::kernels::cuda
