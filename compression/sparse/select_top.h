// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_SELECT_TOP_H_
#define TUG_COMPRESSION_SPARSE_SELECT_TOP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compression/codec.h"

namespace tug {

// Indices, ascending, of the `count` elements of the largest magnitude; of equal ones those with
// the lower index. Zeros are omitted, so there may be fewer. Exact for any input: a sample gives a
// threshold that somewhat more than `count` elements reach, one pass collects those, and counts of
// their magnitudes' bits find the last one to keep. Input that defeats the sample takes a second
// pass. Nothing if an element is not finite. The span is in `scratch`, valid until its next use.
// REQUIRES: 1 <= count <= elements. Thread-safe.
std::optional<std::span<const uint32_t>> SelectTop(std::span<const float> elements, size_t count,
                                                   CodecScratch& scratch);

// Faster than SelectTop: selects all elements that reach the sample's threshold if they are from
// half of `count` to MostAbout of it, else exactly `count` (hierarchical selection, Lin et al.
// 2018, section 3.1: of those that reach it if they are more, of all if they are fewer).
constexpr size_t MostAbout(size_t count) { return count + count / 4; }
std::optional<std::span<const uint32_t>> SelectAbout(std::span<const float> elements, size_t count,
                                                     CodecScratch& scratch);

// residual += elements, and SelectTop of `residual` in the same pass.
std::optional<std::span<const uint32_t>> AddAndSelectTop(std::span<const float> elements,
                                                         std::span<float> residual, size_t count,
                                                         CodecScratch& scratch);

// velocity = momentum * velocity + elements, residual += velocity, and SelectAbout of `residual` in
// the same pass.
std::optional<std::span<const uint32_t>> AccumulateAndSelectAbout(
    std::span<const float> elements, float momentum, std::span<float> velocity,
    std::span<float> residual, size_t count, CodecScratch& scratch);

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_SELECT_TOP_H_
