#ifndef TUG_EXCHANGE_REQUESTS_H_
#define TUG_EXCHANGE_REQUESTS_H_

// What an exchange is asked, and what it says.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "exchange/runs.h"
#include "kernels/bf16.h"
#include "proto/job.pb.h"
#include "proto/sync_mode.h"
#include "transport/transport.h"

namespace tug {

inline constexpr uint32_t kMaxVirtualWorkers = 4096;  // of a job

// By number of the lane that owns weights, the lane that is asked for them in its stead
// (PullLanesOn, view_lanes.h). An owner that is not in it is asked itself.
using PullLanes = std::map<uint32_t, uint32_t>;

struct ExchangeOptions {
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  std::vector<uint32_t> lane_of_segment;
  CommConfig comm;              // all fields filled
  TraceTrack* trace = nullptr;  // outlives the exchange; may be null
  // For ExchangeCounters::encode_seconds, and what auto codecs go by; as `trace`. Without it
  // encoding takes no time, and links are measured by the `now` of calls.
  const TimeSource* time = nullptr;
  // Of the job's policy. Where versions tell no clock, a push says the version that came last of
  // its segments, and the answer to a pull is known by the clock it repeats.
  SyncMode mode = SyncModeOf(SyncConfig::BSP);
  // Of proto/placement_mode.h: what a lane has received of a push is let go of, and never sent
  // again. Then the lane is asked whether it has it (kPushAsked).
  bool frees_gradients = false;
  // Of exact pulls of whole partitions, under placement.host_weight_cache.
  PullLanes pull_lanes = {};
  // With comm.push_codec: the blocks' names (BlockNames), and train's seed, which encodings are
  // drawn by.
  std::vector<std::string> block_names = {};
  uint64_t seed = 0;
};

// [first, first + count)
struct VirtualWorkerRun {
  uint32_t first = 0;
  uint16_t count = 1;

  friend bool operator==(const VirtualWorkerRun&, const VirtualWorkerRun&) = default;
};

// Frames of all segments of a block (compression/frames.h), one behind the other, which somebody
// has made of its gradient already.
struct PushFrames {
  Lease bytes;
  std::vector<uint64_t> begins;  // in `bytes`, by segment's index, and of what is behind the last

  bool empty() const { return begins.empty(); }
  // Of `count` segments from `first` on.
  Lease Of(uint32_t first, uint32_t count) const {
    return bytes.Slice(begins[first], begins[first + count] - begins[first]);
  }
};

// The gradient of a whole block.
struct PushRequest {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;        // first of an aligned group; below kMaxVirtualWorkers
  uint16_t virtual_worker_count = 1;  // see server/sum_tree.h
  uint64_t clock = 0;
  uint64_t token_count = 0;  // terms in the unscaled sum
  Lease gradient;            // block_elements floats; must not change before PushCommitted, or
                             // with frees_gradients before PushReceived
  // The elements that may differ from 0; empty: all. Only they are sent, where that is smaller, so
  // the sums are the same. Ignored where a segment of the partition is encoded
  // (exchange/codec_choice.h): what becomes of it must not depend on where the block is cut.
  ElementRuns runs = {};
  // Empty: the exchange encodes. Else what it would make of this gradient and of what encodings
  // before have left out: who makes them keeps that, and the exchange nothing, so that a push that
  // is dropped is lost for the next ones (sync.policy BACKUP). Elements of encoded segments are
  // then not read in `gradient`. As that, not to be changed.
  PushFrames frames = {};
};

// The weights of a whole block.
struct PullRequest {
  uint32_t block = 0;
  Want want = Want::kExact;
  uint64_t clock = 0;  // that is to begin with them (proto/sync_mode.h)
  // block_elements; written until BlockPulled. With pull_format CHANGES: where it is that of the
  // block's pull before, what that has left there is still there.
  std::span<float> destination;
  // Weights may stay in memory that the lanes share, if the whole block lies there in one piece:
  // see BlockPulled. The destination is then not touched. Not so with pull_format CHANGES.
  bool allow_in_place = false;
  // The elements that are wanted; empty: all. Of the others, any may be written, with its weight of
  // the same version, or stay as it is. Ignored with a pull_format other than
  // FP32, as for pushes.
  ElementRuns runs = {};
  // In place of `destination`, with pull_format BF16: receives the weights as they are pulled.
  std::span<kernels::Bf16> bf16_destination = {};
  // Some of those that are to begin that clock: the weights will have all their pushes before it.
  // Read where pushes are updates only.
  VirtualWorkerRun virtual_workers = {};
};

// The weights of a block where the lanes have them. They stay as they are while the leases live;
// the server needs the memory again soon, so drop them when the weights have been used.
struct InPlaceWeights {
  // block_elements, the one or the other as the pull's destination; both empty: not in place
  std::span<const float> elements;
  std::span<const kernels::Bf16> bf16_elements = {};
  std::vector<Lease> leases = {};
};

struct BlockPulled {
  uint32_t block = 0;
  uint64_t version = 0;  // the lowest of its partitions; kExact where pushes are no updates: that
                         // which was asked for
  InPlaceWeights in_place = {};
  uint64_t newest = 0;      // the highest
  uint64_t clock = 0;       // PullRequest::clock
  bool superseded = false;  // nothing has come of it: another pull of the block took its place, or
                            // it was given up
};

// Where a lane is reached.
struct LaneAddress {
  PeerId peer = 0;
  std::string endpoint;
};

// The job's next view, of the same timeline (Exchange::SetView).
struct ViewRequest {
  uint32_t view = 0;
  std::vector<uint32_t> lane_of_segment;  // who owns each, as in ExchangeOptions
  PullLanes pull_lanes = {};              // the same
  std::vector<LaneAddress> lanes = {};    // those of the view, for whoever connects
};

// The virtual workers that the worker carries now (Exchange::SetCarried).
struct CarriedRequest {
  std::vector<uint32_t> virtual_workers;
};

// What the pushes of a virtual worker have left out of a segment: an entry an element, and behind
// them what its codec keeps beside (exchange/residuals.h).
struct SegmentResidual {
  uint32_t segment = 0;  // id
  AlignedBuffer values;
};

// With frees_gradients: all of a push has been received, and nobody wants its gradient any more but
// repeats that are under way. Comes once for each push, before PushCommitted.
struct PushReceived {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
};

// With frees_gradients: a lane has no memory for a part of it yet. May come any number of times
// before PushReceived.
struct PushDeferred {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
};

struct PushCommitted {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  // A part of it at least came too late, and is in no version (sync.policy BACKUP). With
  // fault.on_worker_loss SHRINK one that is late is committed with the others, and not told apart.
  bool dropped = false;
  // With frees_gradients: a lane does not know what it had received, and it cannot be sent again.
  bool lost = false;
};

struct ExchangeSinks {
  std::function<void(Outgoing)> send;
  std::function<void(BlockPulled)> pulled;
  std::function<void(PushCommitted)> committed;
  std::function<void(PushReceived)> received = {};  // with frees_gradients; so is `deferred`
  std::function<void(PushDeferred)> deferred = {};
  // Whether what is sent to the lane goes through shared memory (Transport::SharesMemoryWith);
  // none: no.
  std::function<bool(PeerId)> shares_memory = {};
  // Memory to send from (Transport::NewBuffer); none: the heap.
  std::function<std::shared_ptr<AlignedBuffer>(size_t)> new_buffer = {};
};

struct ExchangeCounters {
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  uint64_t pulled_bytes = 0;
  // Of pushes sent and not received, at a time: in sockets, on the wire and in lanes' queues; a
  // partition counts once, however often it is sent. At most max(credit_bytes, a partition).
  uint64_t most_outstanding_bytes = 0;
  // Of the same, now; and what waits for its turn and for credit.
  uint64_t outstanding_bytes = 0;
  uint64_t waiting_bytes = 0;
  double encode_seconds = 0;  // spent in making frames of gradients
  uint64_t resent = 0;
  uint64_t deferred = 0;  // pushes that a lane had no memory for yet
  uint64_t dropped = 0;   // partitions of pushes that came too late
  uint64_t refused = 0;
  uint64_t ignored = 0;  // answers that nothing waits for: late or repeated ones
};

}  // namespace tug

#endif  // TUG_EXCHANGE_REQUESTS_H_
