#ifndef TUG_SERVER_MEMORY_H_
#define TUG_SERVER_MEMORY_H_

#include <cstdint>

#include "exchange/segment_table.h"
#include "proto/control.pb.h"

namespace tug {

// What a server process uses at most, bytes: with P parameters on its lanes and S virtual workers,
//    4 P         weights
//    4 P         the previous copy, for pulls of the version before
//    8 P         Adam's m and v
//    4 P S/2     sums that wait for their sibling (S/2 rounded up)
//   12 P         a checkpoint being taken: m and v copied, weights of that version held back
// + messages on their way in: min(credit of all workers, 4 P S) + 64 MiB for the process itself.
// Pure.
uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id);

}  // namespace tug

#endif  // TUG_SERVER_MEMORY_H_
