#ifndef TUG_EXCHANGE_RESIDUALS_H_
#define TUG_EXCHANGE_RESIDUALS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/lease.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"

namespace tug {

// What is kept of pushes from one to the next, for each virtual worker and segment that has been
// encoded with error feedback: the residual, FP32, an entry an element, and behind it what the
// codec keeps beside (SegmentCodec::StateFloats). Of gradients as they are pushed: sums, not means.
//
// Allocates for what it is asked for the first time. Not thread-safe.
class Residuals {
 public:
  // REQUIRES: `table` outlives it.
  explicit Residuals(const SegmentTable& table) : table_(table) {}

  // Zeros at first. REQUIRES: the same `state_floats` each time.
  std::span<float> Of(uint32_t virtual_worker, const Segment& segment, size_t state_floats);
  // It has changed; and, after some of these, for squares().
  void SumSquaresOf(uint32_t virtual_worker, const Segment& segment);
  void SumSquares(uint32_t virtual_worker);

  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  // What is kept of a virtual worker, by segment; empty: nothing.
  std::vector<SegmentResidual> Copy(uint32_t virtual_worker) const;
  // The virtual worker has these, in place of what it had. REQUIRES: of each segment as many floats
  // as Of would have of it.
  void Restore(uint32_t virtual_worker, std::vector<SegmentResidual> residuals);

  // Whether there is one, of zeros or not; and its sum of squares as of SumSquaresOf, 0 where there
  // is none.
  bool Has(uint32_t virtual_worker, const Segment& segment) const;
  double SquaresOf(uint32_t virtual_worker, const Segment& segment) const;
  // By virtual worker: the sum of squares of its residual. Empty, or 0, where there is none.
  std::span<const double> squares() const { return squares_; }

 private:
  struct OfVirtualWorker {                // by segment id
    std::vector<AlignedBuffer> elements;  // empty until the segment is encoded
    std::vector<double> squares;          // their sum
  };

  OfVirtualWorker& Find(uint32_t virtual_worker);
  uint32_t IdOf(const Segment& segment) const { return table_.id(segment.block, segment.index); }

  const SegmentTable& table_;
  std::vector<OfVirtualWorker> of_;  // by virtual worker
  std::vector<double> squares_;      // the same, summed
};

}  // namespace tug

#endif  // TUG_EXCHANGE_RESIDUALS_H_
