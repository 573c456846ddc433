// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_H_
#define TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_H_

// Common types of the codecs on the GPU (one_bit_cuda.h and others): they encode or decode many
// segments at once, such as those of a block, since one takes less time than a kernel launch.
// Bytes, lengths and residuals are those of SegmentCodec (compression/codec.h) to the bit, so the
// CPU's codec decodes them, and vice versa.

#include <cstddef>
#include <cstdint>

namespace tug::cuda {

struct SegmentPlace {
  int64_t first;        // first element, in the arrays of elements and of residuals
  int64_t elements;     // 1 to 2^24
  int64_t encoding_at;  // byte where the encoding begins: a multiple of 8
};

// Segments that do not overlap. Their encodings do not overlap either; each has MaxEncodedBytes of
// the codec rounded up to a multiple of 8.
struct SegmentBatch {
  const SegmentPlace* places;  // [count] in device memory
  int64_t count;               // at most 65,535
  int64_t max_elements;        // of the largest segment
};

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_SEGMENTS_CUDA_H_
