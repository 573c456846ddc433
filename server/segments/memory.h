// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_MEMORY_H_
#define TUG_SERVER_SEGMENTS_MEMORY_H_

#include <cstdint>

#include "blocks/segment_table.h"
#include "proto/control.pb.h"

namespace tug {

// Upper bound on the memory of a server process, bytes. With P parameters on its lanes:
//   12 P   weights, Adam's m and v; SGD has only m, or without momentum neither
//    4 P   previous version, for pulls; instead with bf16 pulls 2 P, with int8 pulls 1.02 P, for
//          each of the newest and the previous encoded copy; with pulls of changes 8 P, the shadows
//          of both, plus the changes of both at their maximum size, plus answers with them in
//          flight: min(pull credit of all workers, one copy per worker); with PULL_AUTO such
//          answers too, as int8, in addition to the 4 P
//    4 P   one sum per segment
//   + arriving messages: min(credit of all workers, 4 P S), S virtual workers; with
//     comm.scheduler AUTO the largest credit that the tuner may choose
// SSP and ASP, instead of the previous version and the sums:
//   + answers in flight: min(pull credit of all workers, 4 P S)
//    4 P S   with sync.delay_compensation: weights that each worker was served; at most S workers,
//            since each runs at least one virtual worker
// With replicas of C parameters of other servers' segments:
//   12 C   weights, m and v, as far as the optimizer keeps them
//    4 C   weights of the previous version if pushes are summed (2 C with bf16 pulls, 1.02 C with
//          int8, 8 C with changes)
//   + updates in flight to replicas, at most 72 MiB, and from every other server, 32 MiB each
// With placement.host_weight_cache and K bytes cached for its host (HeldMemory), in buffers of
// multiples of 4 KiB:
//   2 K   the newest version, and the previous one while workers read it in place
//   + messages with newer weights in flight: min(pull credit of a worker, K)
// With `exchange: ALL_REDUCE`, P is the whole model, the only worker is the one paired with the
// server, a checkpoint takes 12 bytes of each parameter that the server writes, and there are also
//    4 P   sums that are reduced, with their trailers; 6 P with collective.format BF16 or FP16
// (While a placement changes, a lane briefly has two copies of segments that it starts to own, or
// turns from own segments into replicas.)
//   + 64 MiB: sums that wait for their siblings (kServerParkingBytes,
//     server/shard/shard_options.h) and the process itself
// The bound holds for any number of workers and any order of arrival (push_admission.h).
struct ServerMemory {
  uint64_t line_bytes = 0;
  // Additional 12 P while a checkpoint is taken: copies of m and v, as far as they exist; weights
  // of that version, held back or copied.
  uint64_t checkpoint_bytes = 0;
};
// Pure.
ServerMemory PredictServerMemory(const JobConfig& config, const SegmentTable& table,
                                 const View& view, uint32_t server_node_id);

// Peak memory of a lane, or of all lanes of a server, for weights, optimizer state, sums and cached
// weights, in bytes, as LaneMemory, BufferPool and WeightCache count it. With P parameters of owned
// segments (`exchange: ALL_REDUCE`: of all segments):
//   weights    8 P   the newest and the previous version; with bf16 pulls 4 P + 2 * 2 P, with int8
//                    pulls 4 P + 2 * 1.02 P, with pulls of changes 4 P + 2 * 4 P and two frames of
//                    changes at their maximum size. 4 P under SSP and ASP
//   optimizer  8 P   Adam's m and v; SGD has m only, or without momentum neither
//   sums       4 P   one per segment. None under SSP and ASP; none with one virtual worker and a
//                    server paired with its worker that keeps its gradient (not ZERO2, ZERO3): the
//                    gradient is read in place. With ALL_REDUCE 4 P that are reduced (6 P with
//                    collective.format BF16 or FP16), and in addition at most 4 P if workers run
//                    more than two virtual workers, or two without memory shared with the server
// With replicas of C parameters of other servers' segments:
//   weights    8 C   as above, except 12 C with pulls of changes, 4 C + 1.02 C with int8, 4 C + 2 C
//                    with bf16
//   optimizer  8 C   as above
// With placement.host_weight_cache and P_k parameters of other hosts' segments that they cache
// (PullLanesOn, blocks/view_lanes.h):
//   cached     4 P_k   as they are pulled; 2 P_k with bf16 pulls, 1.02 P_k with int8. All lanes of
//                    a host together: P minus what the host owns
// Temporarily more: 4 P of weights while a checkpoint or a slow link still reads a version when the
// version after the next is made; the cached bytes again while workers still read them and the next
// version arrives; sums that wait for their siblings, at most kServerParkingBytes
// (server/shard/shard_options.h) per server; both placements' segments during a change. If sums are
// not all open at the same time (`clip: OFF`, workers that are late one after the other), sums take
// less.
struct HeldMemory {
  uint64_t weights = 0;
  uint64_t optimizer = 0;
  uint64_t sums = 0;
  uint64_t cached = 0;

  uint64_t total() const { return weights + optimizer + sums + cached; }
};
// For the lane at index `lane` of the view. Pure.
HeldMemory PredictLaneHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                           uint32_t lane);
// For all lanes of a server. Pure.
HeldMemory PredictServerHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                             uint32_t server_node_id);

// BSP, BACKUP: bytes of the copy that answers a worker's pull of a segment with `elements`; 0: it
// is answered in place. Pure.
uint64_t CopiedAnswerBytes(CommConfig::Format pull_format, double pull_density, uint64_t elements);

// line_bytes + checkpoint_bytes. Pure.
uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id);

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_MEMORY_H_
