#ifndef TUG_EXCHANGE_VIEW_LANES_H_
#define TUG_EXCHANGE_VIEW_LANES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "exchange/requests.h"
#include "proto/control.pb.h"
#include "transport/transport.h"

namespace tug {

// A lane's number in the data plane: known to a server as soon as it has a node id, before any
// view, and the same in all views. (Its index in View.lanes is a position in one view only.)
inline constexpr uint32_t kMaxLanesPerServer = 256;
inline uint32_t LaneNumber(uint32_t server_node_id, uint32_t index_on_server) {
  return server_node_id * kMaxLanesPerServer + index_on_server;
}
inline uint32_t LaneNumber(const Lane& lane) {
  return LaneNumber(lane.server_node_id(), lane.index_on_server());
}

// Index in View.lanes; 0 if the view lacks the lane.
uint32_t LaneIndexOf(const View& view, uint32_t lane_number);

// Lane number of the owner of every segment. REQUIRES: lane_of_segment indexes into lanes.
std::vector<uint32_t> LaneNumberOfSegment(const View& view);

// The lanes that a node exchanges segments with, in the order of the view: all; but if the view has
// a server beside this worker (`exchange: ALL_REDUCE`), those of that server.
std::vector<Lane> LanesFor(const View& view, PeerId self);
// The lane number of each segment for a worker: that of its owner, or of the lane beside the
// worker. REQUIRES: as above; a server beside a worker has one lane.
std::vector<uint32_t> LaneNumberOfSegmentFor(const View& view, PeerId self);

// With `exchange: ALL_REDUCE`, by rank: the lanes that reduce sums, in the order of the workers
// that they are beside, so that a rank's part of the virtual workers does not depend on node ids.
std::vector<PeerId> ReducingLanes(const View& view);

// With `placement.host_weight_cache`, who is asked for weights on a host, where it is not their
// owner (server/weight_cache.h). Of the lanes L_0 .. L_(K-1) of the view that are on the host, L_(j
// mod K) stands in for the j-th that is elsewhere, all in the order of the view. Empty on a host
// without a lane, and where the host is not known (0). A function of the view: workers and lanes
// agree.
PullLanes PullLanesOn(const View& view, uint64_t host_id);
// The same for a worker; empty without the cache.
PullLanes PullLanesFor(const View& view, PeerId self, const JobConfig& config);
// The numbers of the lanes that a lane stands in for, ascending. REQUIRES: the lane is in the view.
std::vector<uint32_t> CachedLanes(const View& view, uint32_t lane_number);

// The options of a worker's exchange in a job, as of a view: all but the trace and the clock.
ExchangeOptions ExchangeOptionsOf(const JobConfig& config, uint64_t job, const View& view,
                                  PeerId self);
// What the exchange of a worker is told of a later view.
ViewRequest ViewRequestOf(const View& view, PeerId self, const JobConfig& config);

// By segment, the numbers of the lanes that keep a copy of it beside the owner; empty: nobody keeps
// any. REQUIRES: copies index into lanes, and have an entry per segment.
std::vector<std::vector<uint32_t>> LaneNumbersOfCopies(const View& view);

// Connects to every lane of LanesFor but `self`. May be called for one view after the other: lanes
// that are connected stay so.
absl::Status ConnectToLanes(const View& view, PeerId self, Transport& transport);

}  // namespace tug

#endif  // TUG_EXCHANGE_VIEW_LANES_H_
