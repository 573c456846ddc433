#ifndef TUG_COORDINATOR_PLACEMENT_H_
#define TUG_COORDINATOR_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tug {

// Which lane owns each segment: lane index per segment, in segment order. Heaviest segment first,
// each to the lane with the fewest bytes so far; ties go to the lower index (Graham 1969, longest
// processing time first). So no two lanes differ by more than the largest segment. A pure function:
// every run of a job places alike. REQUIRES: lanes >= 1.
std::vector<uint32_t> PlaceSegments(std::span<const uint64_t> segment_bytes, uint32_t lanes);

// Virtual workers 0..virtual_workers-1 dealt to `workers` in contiguous runs, as equal as possible:
// the first virtual_workers % workers carry one more. REQUIRES: 1 <= workers <= virtual_workers.
std::vector<std::vector<uint32_t>> AssignVirtualWorkers(uint32_t virtual_workers, uint32_t workers);

}  // namespace tug

#endif  // TUG_COORDINATOR_PLACEMENT_H_
