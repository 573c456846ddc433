// SPDX-License-Identifier: Apache-2.0
// The codecs on the GPU over segments of 262,144 elements: bytes of device memory per second,
// compared with those of a copy in the same run.
#include "kernels/cuda/device/cuda_benchmark.h"

#if TUG_CUDA || TUG_CUDA_EMULATED
#include <vector>

#include "base/status_macros.h"
#include "compression/cuda/int8_cuda.h"
#include "compression/cuda/one_bit_cuda.h"
#include "compression/cuda/top_k_cuda.h"
#endif

namespace tug::cuda {
namespace {

using kernels::cuda::CudaBenchmark;

#if TUG_CUDA || TUG_CUDA_EMULATED

const int64_t kSegment = CudaBenchmark::Size(1 << 18, 1 << 11);
const int64_t kSegments = CudaBenchmark::Size(256, 2);
const int64_t kElements = kSegment * kSegments;
constexpr double kDensity = 0.01;

struct Arrays {
  SegmentBatch batch;
  float* elements;
  float* decoded;
  float* residual;
  std::byte* encodings;  // twice the bytes of FP32
  uint32_t* lengths;
  uint32_t* malformed;
};

absl::StatusOr<Arrays> MakeArrays(CudaBenchmark& b) {
  std::vector<SegmentPlace> places;
  for (int64_t i = 0; i < kSegments; ++i) {
    places.push_back({i * kSegment, kSegment, i * kSegment * 8});
  }
  const size_t bytes = places.size() * sizeof(SegmentPlace);
  ASSIGN_OR_RETURN(void* const on_device, b.Zeros(static_cast<int64_t>(bytes)));
  RETURN_IF_ERROR(kernels::cuda::CopyToDeviceAsync(on_device, places.data(), bytes, b.stream()));
  RETURN_IF_ERROR(b.stream().Synchronize());
  ASSIGN_OR_RETURN(float* const elements, b.Floats(kElements));
  ASSIGN_OR_RETURN(void* const decoded, b.Zeros(kElements * 4));
  ASSIGN_OR_RETURN(void* const residual, b.Zeros(kElements * 4));
  ASSIGN_OR_RETURN(void* const encodings, b.Zeros(kElements * 8));
  ASSIGN_OR_RETURN(void* const lengths, b.Zeros(kSegments * 4));
  ASSIGN_OR_RETURN(void* const malformed, b.Zeros(kSegments * 4));
  return Arrays{{static_cast<const SegmentPlace*>(on_device), kSegments, kSegment},
                elements,
                static_cast<float*>(decoded),
                static_cast<float*>(residual),
                static_cast<std::byte*>(encodings),
                static_cast<uint32_t*>(lengths),
                static_cast<uint32_t*>(malformed)};
}

absl::Status Run(CudaBenchmark& b) {
  ASSIGN_OR_RETURN(const Arrays a, MakeArrays(b));
  const auto n = static_cast<double>(kElements);
  const auto& stream = b.stream();
  RETURN_IF_ERROR(b.Bytes("copy", 8 * n, [&] {
    return kernels::cuda::CopyOnDeviceAsync(a.encodings, a.elements,
                                            static_cast<size_t>(kElements) * 4, stream);
  }));
  // With error feedback the elements are read, and the residual is read and written.
  RETURN_IF_ERROR(b.Bytes("int8, encode with error feedback", 13.0156 * n, [&] {
    return EncodeInt8WithResidual(a.batch, a.elements, a.residual, a.encodings, a.lengths, stream);
  }));
  RETURN_IF_ERROR(b.Bytes("int8, decode", 5.0156 * n, [&] {
    return DecodeInt8(a.batch, a.encodings, a.lengths, DecodeTo::kStore, a.decoded, a.malformed,
                      stream);
  }));
  RETURN_IF_ERROR(b.Bytes("one_bit, encode with error feedback", 12.1328 * n, [&] {
    return EncodeOneBitWithResidual(a.batch, a.elements, a.residual, a.encodings, a.lengths,
                                    stream);
  }));
  RETURN_IF_ERROR(b.Bytes("one_bit, decode", 4.1328 * n, [&] {
    return DecodeOneBit(a.batch, a.encodings, a.lengths, DecodeTo::kStore, a.decoded, a.malformed,
                        stream);
  }));
  // Lower bound of the bytes read and written.
  RETURN_IF_ERROR(b.Bytes("top_k, 1%, encode with error feedback", 12.05 * n, [&] {
    return EncodeTopKWithResidual(a.batch, kDensity, a.elements, a.residual, a.encodings, a.lengths,
                                  stream);
  }));
  RETURN_IF_ERROR(b.Bytes("top_k, 1%, decode", 4.05 * n, [&] {
    return DecodeTopK(a.batch, a.encodings, a.lengths, DecodeTo::kStore, a.decoded, a.malformed,
                      stream);
  }));
  return stream.Synchronize();
}

#else

// Without CUDA there is nothing to run.
absl::Status Run(CudaBenchmark&) { return kernels::cuda::CheckGpu(); }

#endif

}  // namespace
}  // namespace tug::cuda

int main() { return tug::kernels::cuda::RunCudaBenchmark(tug::cuda::Run); }
