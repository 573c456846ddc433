// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_RUNS_H_
#define TUG_BLOCKS_RUNS_H_

// Ranges of elements of a block, such as the part of an embedding that a step touches.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/lease.h"

namespace tug {

// Elements [begin, end) of a block. A list of runs is sorted; its runs are not empty, do not
// overlap and are not adjacent.
struct ElementRun {
  uint32_t begin = 0;
  uint32_t end = 0;

  friend bool operator==(const ElementRun&, const ElementRun&) = default;
};
using ElementRuns = std::vector<ElementRun>;

// Runs of `rows` of a matrix [*, row_elements] that begins at element `matrix_begin`; rows in any
// order, repeats allowed.
ElementRuns RunsOfRows(std::span<const int32_t> rows, uint64_t row_elements, uint64_t matrix_begin);
// Union of two lists.
ElementRuns Merge(std::span<const ElementRun> a, std::span<const ElementRun> b);
// Part of `runs` inside [begin, end), relative to `begin`.
ElementRuns Clip(std::span<const ElementRun> runs, uint64_t begin, uint64_t end);
uint64_t ElementsOf(std::span<const ElementRun> runs);

// Codec kRuns on the wire, little-endian:
//   uint32 number of runs | uint32 0 | runs: uint32 begin, uint32 end, relative to the first
//   element of the message's segments | (push and weights only) FP32 elements of all runs
struct EncodedRuns {
  ElementRuns runs;
  std::span<const float> values;  // in the payload; empty for a pull
};
uint64_t EncodedBytes(std::span<const ElementRun> runs, bool with_values);
// Writes EncodedBytes(runs, true) bytes: the runs, then their elements gathered from `elements`.
void EncodeRuns(std::span<const ElementRun> runs, std::span<const float> elements,
                std::span<std::byte> out);
// Writes EncodedBytes(runs, false) bytes.
void EncodeRunList(std::span<const ElementRun> runs, std::span<std::byte> out);
// Returns nothing unless the payload, which is untrusted, is well-formed for a message of
// `elements` elements: sorted runs inside them and exactly the bytes of these runs.
std::optional<EncodedRuns> DecodeRuns(std::span<const std::byte> payload, uint64_t elements,
                                      bool with_values);
// Copies the values into `elements`; the other elements stay unchanged.
void Scatter(const EncodedRuns& encoded, std::span<float> elements);

}  // namespace tug

#endif  // TUG_BLOCKS_RUNS_H_
