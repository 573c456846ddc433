#ifndef TUG_SERVER_MEMORY_H_
#define TUG_SERVER_MEMORY_H_

#include <cstdint>

#include "exchange/segment_table.h"
#include "proto/control.pb.h"

namespace tug {

// What a server process uses at most, bytes: with P parameters on its lanes,
//   12 P   weights, Adam's m and v; SGD has only m, or with no momentum neither
//    4 P   previous copy, for pulls of the version before; with bf16 pulls 2 P, with int8
//          pulls 1.02 P, for each of the newest and the previous encoded copy instead; with pulls
//          of changes 8 P, the shadows of both, and as long as they can be the changes of both
//          and answers with them on their way out: min(pull credit of all workers, a copy for
//          each); with PULL_AUTO such answers too, as int8, beside the 4 P
//    4 P   one sum for each segment
//   + messages on their way in: min(credit of all workers, 4 P S), S virtual workers; with
//     comm.scheduler AUTO the largest credit that the tuner may choose
// Where every push is an update (SSP, ASP), in place of the previous copy and the sums:
//   + answers on their way out: min(pull credit of all workers, 4 P S)
//    4 P S   with sync.delay_compensation, the weights that each worker was served: S of them at
//            most, since each carries a virtual worker
// With C parameters of other servers' segments that it keeps copies of:
//   12 C   weights, m and v, as far as the optimizer keeps them
//    4 C   weights of the version before, where pushes are summed (2 C with bf16 pulls, 1.02 C with
//          int8, 8 C with changes)
//   + updates on their way to copies, 72 MiB at most, and from every other server, 32 MiB each
// With placement.host_weight_cache and K bytes of what it keeps for its host (HeldMemory), in
// buffers of multiples of 4 KiB:
//   2 K   the newest version, and the one before as long as workers read it where it lies
//   + messages with newer weights on their way in: min(pull credit of a worker, K)
// With `exchange: ALL_REDUCE` P is all of the model, workers are the one beside the server, and
//    4 P   sums that are reduced, with their trailers; 6 P with collective.format BF16 or FP16
// come to it; a checkpoint takes 12 bytes of each parameter that the server writes.
// (At a change of placement a lane has those segments twice for a moment that it comes to own, or
// owns no longer and copies.)
//   + 64 MiB: sums that wait for their siblings (kServerParkingBytes, shard.h) and the process
//     itself
// for any number of workers and any order of arrival (push_admission.h).
struct ServerMemory {
  uint64_t line_bytes = 0;
  // 12 P more while a checkpoint is being taken: m and v, as far as there are, copied; weights of
  // that version held back, or copied.
  uint64_t checkpoint_bytes = 0;
};
// Pure.
ServerMemory PredictServerMemory(const JobConfig& config, const SegmentTable& table,
                                 const View& view, uint32_t server_node_id);

// What a lane, or all lanes of a server, have of weights, optimizer state, sums and cached weights
// at most at a time, bytes, as LaneMemory, BufferPool and WeightCache count it: with P parameters
// of segments that they own, with `exchange: ALL_REDUCE` all there are,
//   weights    8 P   the newest version and the one before; with bf16 pulls 4 P + 2 * 2 P, with
//                    int8 pulls 4 P + 2 * 1.02 P, with pulls of changes 4 P + 2 * 4 P and two
//                    frames of changes as long as they can be. 4 P where every push is an update
//   optimizer  8 P   Adam's m and v; SGD has m alone, or with no momentum neither
//   sums       4 P   one for each segment. None where every push is an update; none with one
//                    virtual worker and a server beside its worker that keeps its gradient (not
//                    ZERO2, ZERO3): it is read where it lies. With ALL_REDUCE 4 P that are reduced
//                    (6 P with collective.format BF16 or FP16), and beside it at most 4 P where
//                    workers carry more than two virtual workers, or share no memory with the
//                    server and carry two
// and with C parameters of other servers' segments that they keep copies of:
//   weights    8 C   as above; but with pulls of changes 12 C, and 4 C + 1.02 C with int8, 4 C +
//                    2 C with bf16
//   optimizer  8 C   as above
// and, with placement.host_weight_cache, with P_k parameters of segments of lanes on other hosts
// that they stand in for (PullLanesOn, exchange/view_lanes.h),
//   cached     4 P_k   as they are pulled; 2 P_k with bf16 pulls, 1.02 P_k with int8. All lanes of
//                    a host together: P, less what is owned there
// Beyond it, for a while: 4 P of weights while a checkpoint or a slow link still reads a version
// when the one after the next is made; as much again as is cached, while workers still read it and
// the next version comes; sums that wait for their siblings, at most
// kServerParkingBytes (shard.h) a server; both placements' while segments change hands. Where not
// all sums are open at a time (`clip: OFF`, workers that are late one after the other), sums take
// less.
struct HeldMemory {
  uint64_t weights = 0;
  uint64_t optimizer = 0;
  uint64_t sums = 0;
  uint64_t cached = 0;

  uint64_t total() const { return weights + optimizer + sums + cached; }
};
// Of the lane at index `lane` of the view. Pure.
HeldMemory PredictLaneHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                           uint32_t lane);
// Of all lanes of a server. Pure.
HeldMemory PredictServerHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                             uint32_t server_node_id);

// Where pushes are summed: of the copy that answers a worker's pull of so many elements, a segment;
// 0: it is answered in place. Pure.
uint64_t CopiedAnswerBytes(CommConfig::Format pull_format, double pull_density, uint64_t elements);

// Both together. Pure.
uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id);

}  // namespace tug

#endif  // TUG_SERVER_MEMORY_H_
