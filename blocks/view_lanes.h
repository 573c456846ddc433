// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_VIEW_LANES_H_
#define TUG_BLOCKS_VIEW_LANES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "blocks/requests.h"
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

// Index in View.lanes; 0 if the view does not have the lane.
uint32_t LaneIndexOf(const View& view, uint32_t lane_number);

// Lane number of the owner of every segment. REQUIRES: lane_of_segment indexes into lanes.
std::vector<uint32_t> LaneNumberOfSegment(const View& view);

// Lanes that a node exchanges segments with, in the order of the view: all lanes, or, if the view
// pairs a server with this worker (`exchange: ALL_REDUCE`), those of that server.
std::vector<Lane> LanesFor(const View& view, PeerId self);
// Lane number of each segment for a worker: that of its owner, or of the lane of the server paired
// with the worker. REQUIRES: lane_of_segment indexes into lanes; a paired server has one lane.
std::vector<uint32_t> LaneNumberOfSegmentFor(const View& view, PeerId self);

// With `exchange: ALL_REDUCE`, by rank: the lanes that reduce sums, in the order of their workers,
// so that a rank's share of the virtual workers does not depend on node ids.
std::vector<PeerId> ReducingLanes(const View& view);

// Names of the view's servers, by node id.
std::map<uint32_t, std::string> ServerNames(const View& view);

// With `placement.host_weight_cache`: the lanes on a host that serve weights of lanes on other
// hosts (server/pulls/weight_cache.h). With L_0 .. L_(K-1) the view's lanes on the host, L_(j mod
// K) serves the j-th lane elsewhere, both in the order of the view. Empty on a host without lanes
// or if the host is unknown (0). A function of the view, so workers and lanes agree.
PullLanes PullLanesOn(const View& view, uint64_t host_id);
// PullLanesOn for a worker's host; empty without the cache.
PullLanes PullLanesFor(const View& view, PeerId self, const JobConfig& config);
// Numbers of the lanes whose weights this lane serves on its host, ascending. Empty if the view
// does not have the lane.
std::vector<uint32_t> CachedLanes(const View& view, uint32_t lane_number);

// Options of a worker's exchange for a job and view: all except `trace` and `time`.
ExchangeOptions ExchangeOptionsOf(const JobConfig& config, uint64_t job, const View& view,
                                  PeerId self);
// Request that moves a worker's exchange to a later view.
ViewRequest ViewRequestOf(const View& view, PeerId self, const JobConfig& config);

// By segment, the numbers of the lanes with a replica of it, in addition to its owner; empty: no
// replicas. REQUIRES: copies index into lanes, and have one entry per segment.
std::vector<std::vector<uint32_t>> LaneNumbersOfCopies(const View& view);

// Connects to every lane of LanesFor except `self`. May be called for successive views: connected
// lanes stay connected.
absl::Status ConnectToLanes(const View& view, PeerId self, Transport& transport);

}  // namespace tug

#endif  // TUG_BLOCKS_VIEW_LANES_H_
