// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_RESIDUALS_H_
#define TUG_EXCHANGE_ENCODE_RESIDUALS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory/lease.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"

namespace tug {

// State kept between pushes, for each virtual worker and segment encoded with error feedback: the
// residual (FP32, one entry per element), followed by the codec's state
// (SegmentCodec::StateFloats). Residuals have the units of pushed gradients: sums, not means.
//
// Allocates on the first use of a segment. Not thread-safe.
class Residuals {
 public:
  // REQUIRES: `table` outlives this object.
  explicit Residuals(const SegmentTable& table) : table_(table) {}

  // Returns a segment's residual and codec state, zeros on first use. REQUIRES: the same
  // `state_floats` each time.
  std::span<float> Of(uint32_t virtual_worker, const Segment& segment, size_t state_floats);
  // Call SumSquaresOf after changing a residual, and SumSquares after some of these, to update
  // squares().
  void SumSquaresOf(uint32_t virtual_worker, const Segment& segment);
  void SumSquares(uint32_t virtual_worker);

  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  // Copies of a virtual worker's residuals, by segment; empty: none.
  std::vector<SegmentResidual> Copy(uint32_t virtual_worker) const;
  // Replaces a virtual worker's residuals. REQUIRES: the same number of floats per segment as Of.
  void Restore(uint32_t virtual_worker, std::vector<SegmentResidual> residuals);

  // Whether a residual exists, even of zeros; its sum of squares as of SumSquaresOf, 0 if none
  // exists.
  bool Has(uint32_t virtual_worker, const Segment& segment) const;
  double SquaresOf(uint32_t virtual_worker, const Segment& segment) const;
  // Sum of squares of the residual, by virtual worker. Missing or 0: no residual.
  std::span<const double> squares() const { return squares_; }

 private:
  struct OfVirtualWorker {                // by segment id
    std::vector<AlignedBuffer> elements;  // empty until the segment is encoded
    std::vector<double> squares;          // sum of squares of the elements
  };

  OfVirtualWorker& Find(uint32_t virtual_worker);
  uint32_t IdOf(const Segment& segment) const { return table_.id(segment.block, segment.index); }

  const SegmentTable& table_;
  std::vector<OfVirtualWorker> of_;  // by virtual worker
  std::vector<double> squares_;      // by virtual worker: the sum over its segments
};

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_RESIDUALS_H_
