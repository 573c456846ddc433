// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_TRACED_SPANS_H_
#define TUG_EXPLAIN_TRACED_SPANS_H_

// Compute times, transfers and work of lanes in a trace (coordinator/trace/trace_file.h).

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace tug {

// A message in flight.
struct Transfer {
  double begin = 0;  // seconds
  double end = 0;
  double bytes = 0;
};

// One direction of a host's link.
struct LinkEnd {
  uint32_t node = 0;
  bool out = false;
  friend auto operator<=>(const LinkEnd&, const LinkEnd&) = default;
};

// Key of a pass over a block: virtual worker, block, whether backward.
using Pass = std::tuple<uint32_t, std::string, bool>;

struct TracedSpans {
  std::map<Pass, std::map<uint64_t, double>> passes;  // seconds
  // Bytes by block, then by worker and step.
  std::map<std::string, std::map<std::pair<uint32_t, uint64_t>, double>> pulled;
  std::map<LinkEnd, std::vector<Transfer>> transfers;
  double lane_seconds = 0;    // sums, updates and decoding, of all lanes
  double encode_seconds = 0;  // of all workers
  double decode_seconds = 0;
  std::set<uint64_t> clocks;  // with sums
  std::set<uint32_t> devices;
  std::map<uint32_t, std::string> hosts;  // by node
  std::map<uint32_t, bool> is_server;
};

// Pure. Throws nlohmann::json::exception for a trace that lacks a field.
TracedSpans ReadSpans(const nlohmann::json& trace);

}  // namespace tug

#endif  // TUG_EXPLAIN_TRACED_SPANS_H_
