#ifndef TUG_EXCHANGE_RUNS_H_
#define TUG_EXCHANGE_RUNS_H_

// Some of the elements of a block, as runs: what a step touches of an embedding.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"

namespace tug {

// Elements [begin, end) of a block. A list of runs is sorted, its runs neither overlap nor adjoin
// nor are empty.
struct ElementRun {
  uint32_t begin = 0;
  uint32_t end = 0;

  friend bool operator==(const ElementRun&, const ElementRun&) = default;
};
using ElementRuns = std::vector<ElementRun>;

// The runs of `rows` of a matrix [*, row_elements] that begins at element `matrix_begin`; rows in
// any order, repeats allowed.
ElementRuns RunsOfRows(std::span<const int32_t> rows, uint64_t row_elements, uint64_t matrix_begin);
// Union of two lists.
ElementRuns Merge(std::span<const ElementRun> a, std::span<const ElementRun> b);
// The part inside [begin, end), relative to `begin`.
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
// Writes EncodedBytes(runs, true) bytes: runs, and their elements gathered from `elements`.
void EncodeRuns(std::span<const ElementRun> runs, std::span<const float> elements,
                std::span<std::byte> out);
// Writes EncodedBytes(runs, false) bytes.
void EncodeRunList(std::span<const ElementRun> runs, std::span<std::byte> out);
// Nothing unless the payload is well-formed for a message of `elements` elements: sorted runs
// inside them, exactly the bytes that belong to them. The payload comes from outside.
std::optional<EncodedRuns> DecodeRuns(std::span<const std::byte> payload, uint64_t elements,
                                      bool with_values);
// Copies the values to their places in `elements`; the other elements stay.
void Scatter(const EncodedRuns& encoded, std::span<float> elements);

}  // namespace tug

#endif  // TUG_EXCHANGE_RUNS_H_
