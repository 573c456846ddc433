#ifndef TUG_COMPRESSION_SEGMENTS_CUDA_H_
#define TUG_COMPRESSION_SEGMENTS_CUDA_H_

// What the codecs on the GPU (compression/x_cuda.h) have in common: they encode or decode many
// segments, as those of a block, at once, since one takes less time than the launch of a kernel.
// Bytes, lengths and residuals are those of compression/codec.h's SegmentCodec, to the bit: so who
// gets them decodes with the CPU's codec, and the other way round.

#include <cstddef>
#include <cstdint>

namespace tug::cuda {

struct SegmentPlace {
  int64_t first;        // of its elements, in the array of all; and of its residual in that
  int64_t elements;     // 1 to 2^24
  int64_t encoding_at;  // where the encoding begins, in bytes: a multiple of 8
};

// Segments that do not overlap, nor their encodings, each of which has MaxEncodedBytes of the codec
// rounded up to a multiple of 8.
struct SegmentBatch {
  const SegmentPlace* places;  // [count] in device memory
  int64_t count;               // 65,535 at most
  int64_t most_elements;       // of one of them
};

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_SEGMENTS_CUDA_H_
