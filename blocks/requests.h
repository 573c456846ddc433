// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_REQUESTS_H_
#define TUG_BLOCKS_REQUESTS_H_

// Options, requests and events of an exchange (exchange/exchange.h).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "blocks/runs.h"
#include "config/sync_mode.h"
#include "kernels/bf16.h"
#include "proto/job.pb.h"
#include "transport/transport.h"

namespace tug {

inline constexpr uint32_t kMaxVirtualWorkers = 4096;  // per job

// For weights that are not pulled from their owner: owner's lane number -> number of the lane to
// pull from (PullLanesOn, view_lanes.h).
using PullLanes = std::map<uint32_t, uint32_t>;

struct ExchangeOptions {
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  std::vector<uint32_t> lane_of_segment;
  CommConfig comm;              // all fields filled
  TraceTrack* trace = nullptr;  // outlives the exchange; may be null
  // Clock for ExchangeCounters::encode_seconds and for the choices of auto codecs; same lifetime as
  // `trace`. Without it encoding counts as taking no time, and links are measured by the `now` of
  // calls.
  const TimeSource* time = nullptr;
  // Mode of the job's sync policy. If versions do not determine clocks, a push carries the last
  // pulled version of its segments, and the reply to a pull is identified by the clock it repeats.
  SyncMode mode = SyncModeOf(SyncConfig::BSP);
  // From config/placement_mode.h: releases received parts of a push and never resends them; instead
  // asks the lane whether it has them (kPushAsked).
  bool frees_gradients = false;
  // For exact pulls of whole partitions, with placement.host_weight_cache.
  PullLanes pull_lanes = {};
  // With comm.push_codec: block names (BlockNames) and the training seed, which seeds encodings.
  std::vector<std::string> block_names = {};
  uint64_t seed = 0;
};

// [first, first + count)
struct VirtualWorkerRun {
  uint32_t first = 0;
  uint16_t count = 1;

  friend bool operator==(const VirtualWorkerRun&, const VirtualWorkerRun&) = default;
};

// Frames of all segments of a block (compression/codecs/frames.h), one after another, that the
// caller has already encoded from its gradient.
struct PushFrames {
  Lease bytes;
  std::vector<uint64_t> begins;  // offsets in `bytes` by segment index, and of the end

  bool empty() const { return begins.empty(); }
  // Frames of `count` segments from `first` on.
  Lease Of(uint32_t first, uint32_t count) const {
    return bytes.Slice(begins[first], begins[first + count] - begins[first]);
  }
};

// The gradient of a whole block.
struct PushRequest {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;        // first of an aligned group; below kMaxVirtualWorkers
  uint16_t virtual_worker_count = 1;  // see server/sums/sum_tree.h
  uint64_t clock = 0;
  uint64_t token_count = 0;  // terms in the unscaled sum
  Lease gradient;            // block_elements floats; must not change before PushCommitted, or
                             // before PushReceived with frees_gradients
  // Elements that may differ from 0; empty: all. Only they are sent where that is smaller; the sums
  // are the same. Ignored if a segment of the partition is encoded (blocks/codec_choice.h): the
  // result must not depend on the partitioning.
  ElementRuns runs = {};
  // Empty: the exchange encodes. Otherwise the frames it would make of this gradient and the
  // residuals of earlier encodings. The caller keeps those residuals, the exchange none, so a
  // dropped push is lost for later ones (sync.policy BACKUP). Elements of encoded segments are then
  // not read from `gradient`. Must not change, like `gradient`.
  PushFrames frames = {};
};

// The weights of a whole block.
struct PullRequest {
  uint32_t block = 0;
  Want want = Want::kExact;
  uint64_t clock = 0;  // clock that begins with these weights (config/sync_mode.h)
  // block_elements; written until BlockPulled. With pull_format CHANGES: if the destination is the
  // same as in the block's previous pull, its contents must be unchanged.
  std::span<float> destination;
  // Allows the weights to stay in memory that the lanes share, if the whole block lies there in one
  // piece: see BlockPulled. The destination is then not written. Ignored with pull_format CHANGES.
  bool allow_in_place = false;
  // Elements to pull; empty: all. Any other element may be overwritten with its weight of the same
  // version, or left unchanged. Ignored with a pull_format other than FP32, as for pushes.
  ElementRuns runs = {};
  // Replaces `destination` with pull_format BF16: receives the weights in the pulled format.
  std::span<kernels::Bf16> bf16_destination = {};
  // A run of the virtual workers that will begin this clock: the weights will contain all their
  // earlier pushes. Read only if every push is an update.
  VirtualWorkerRun virtual_workers = {};
};

// Weights of a block in the lanes' memory. They stay unchanged while the leases live; drop the
// leases soon after use, because the server needs the memory again.
struct InPlaceWeights {
  // block_elements, in the format of the pull's destination; both empty: not in place
  std::span<const float> elements;
  std::span<const kernels::Bf16> bf16_elements = {};
  std::vector<Lease> leases = {};
};

struct BlockPulled {
  uint32_t block = 0;
  uint64_t version = 0;  // lowest version of its partitions; for kExact under a policy that sums
                         // pushes, the requested one
  InPlaceWeights in_place = {};
  uint64_t newest = 0;      // highest version of its partitions
  uint64_t clock = 0;       // PullRequest::clock
  bool superseded = false;  // the pull ended without result: replaced by another pull of the block,
                            // or cancelled
};

// Address of a lane.
struct LaneAddress {
  PeerId peer = 0;
  std::string endpoint;
};

// The job's next view, of the same timeline (Exchange::SetView).
struct ViewRequest {
  uint32_t view = 0;
  std::vector<uint32_t> lane_of_segment;  // owner of each segment, as in ExchangeOptions
  PullLanes pull_lanes = {};              // as in ExchangeOptions
  std::vector<LaneAddress> lanes = {};    // lanes of the view, to connect to
};

// The worker's current virtual workers (Exchange::SetCarried).
struct CarriedRequest {
  std::vector<uint32_t> virtual_workers;
};

// Error-feedback residual of a virtual worker for one segment: one entry per element, then the
// additional state of its codec (exchange/encode/residuals.h).
struct SegmentResidual {
  uint32_t segment = 0;  // id
  AlignedBuffer values;
};

// With frees_gradients: lanes have received the whole push; only repeats in flight may still read
// its gradient. Sent once per push, before PushCommitted.
struct PushReceived {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
};

// With frees_gradients: a lane has no memory for a part of the push yet. May be sent any number of
// times before PushReceived.
struct PushDeferred {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
};

struct PushCommitted {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
  // At least one part came too late and is in no version (sync.policy BACKUP). With
  // fault.on_worker_loss SHRINK a late push is committed like the others and not marked.
  bool dropped = false;
  // With frees_gradients: a lane lost a part that it had received, and which cannot be resent.
  bool lost = false;
};

struct ExchangeSinks {
  std::function<void(Outgoing)> send;
  std::function<void(BlockPulled)> pulled;
  std::function<void(PushCommitted)> committed;
  std::function<void(PushReceived)> received = {};  // with frees_gradients, like `deferred`
  std::function<void(PushDeferred)> deferred = {};
  // Whether messages to the lane go through shared memory (Transport::SharesMemoryWith); null: no.
  std::function<bool(PeerId)> shares_memory = {};
  // Allocates send buffers (Transport::NewBuffer); null: the heap.
  std::function<std::shared_ptr<AlignedBuffer>(size_t)> new_buffer = {};
};

struct ExchangeCounters {
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  uint64_t pulled_bytes = 0;
  // Peak of outstanding_bytes; at most max(credit_bytes, a partition).
  uint64_t most_outstanding_bytes = 0;
  // Bytes of pushes sent and not received: in sockets, on the wire and in lanes' queues; a
  // partition counts once, however often it is sent. `waiting_bytes`: queued, waiting for credit.
  uint64_t outstanding_bytes = 0;
  uint64_t waiting_bytes = 0;
  double encode_seconds = 0;  // spent encoding gradients into frames
  uint64_t resent = 0;
  uint64_t deferred = 0;  // pushes that a lane had no memory for
  uint64_t dropped = 0;   // partitions that arrived too late
  uint64_t refused = 0;
  uint64_t ignored = 0;  // late or repeated replies, for which no request is open
};

}  // namespace tug

#endif  // TUG_BLOCKS_REQUESTS_H_
