// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/status_text.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/observe/progress_line.h"
#include "proto/process_name.h"

namespace tug {
namespace {

std::string Counted(uint32_t count, const char* one, const char* more) {
  return absl::StrCat(count, " ", count == 1 ? one : more);
}

// ", 12 segments, 12 replicas (3 being made)"
std::string HoldsText(const NodeStatus& node) {
  if (node.spare()) return ", spare";
  std::string text = absl::StrCat(", ", Counted(node.segments(), "segment", "segments"));
  if (node.copies() == 0) return text;
  absl::StrAppend(&text, ", ", Counted(node.copies(), "replica", "replicas"));
  if (node.copies_missing() > 0) {
    absl::StrAppend(&text, " (", node.copies_missing(), " being made)");
  }
  return text;
}

// ", sent 2.5 MB over the network and 70.0 MB through shared memory"
std::string SentText(const NodeCounters& counters) {
  const auto sent = [](uint64_t bytes, const char* medium) {
    return absl::StrCat(ByteText(static_cast<double>(bytes)), medium);
  };
  std::vector<std::string> parts;
  if (counters.socket_bytes() > 0) {
    parts.push_back(sent(counters.socket_bytes(), " over the network"));
  }
  if (counters.shared_memory_bytes() > 0) {
    parts.push_back(sent(counters.shared_memory_bytes(), " through shared memory"));
  }
  return parts.empty() ? "" : absl::StrCat(", sent ", absl::StrJoin(parts, " and "));
}

}  // namespace

std::string NodeText(const NodeStatus& node) {
  const std::string carries =
      node.kind() == SERVER
          ? absl::StrCat("lanes ", absl::StrJoin(node.lane_endpoints(), " "), HoldsText(node))
          : absl::StrCat("virtual workers ", absl::StrJoin(node.virtual_workers(), " "));
  const std::string rank =
      node.has_all_reduce_rank() ? absl::StrCat(", rank ", node.all_reduce_rank()) : "";
  const NodeCounters& counters = node.counters();
  std::string text =
      absl::StrFormat("  %s on %s (pid %d, node %d%s), last heartbeat %.1f s ago, %s%s, memory %s",
                      node.name(), node.host(), node.pid(), node.node_id(),
                      node.life() > 1 ? absl::StrCat(", ", LifeText(node.life())) : "",
                      node.seconds_since_heartbeat(), carries, rank,
                      ByteText(static_cast<double>(counters.peak_memory_bytes())));
  if (counters.most_outstanding_bytes() > 0) {
    absl::StrAppend(&text, ", peak in flight ",
                    ByteText(static_cast<double>(counters.most_outstanding_bytes())),
                    node.kind() == SERVER ? " from a lane to a worker" : "");
  }
  const uint64_t held = counters.weight_bytes() + counters.gradient_bytes() +
                        counters.optimizer_bytes() + counters.sum_bytes() + counters.cached_bytes();
  if (held > 0) {
    absl::StrAppend(&text, ", ", ByteText(static_cast<double>(held)), " held for training");
  }
  if (counters.updates() > 0) {
    absl::StrAppend(&text, ", ", WithThousands(counters.updates()), " updates");
  }
  if (counters.dropped_pushes() > 0) {
    absl::StrAppend(&text, ", ", WithThousands(counters.dropped_pushes()), " late pushes dropped");
  }
  absl::StrAppend(&text, SentText(counters));
  if (counters.encode_seconds() > 0) {
    absl::StrAppendFormat(&text, ", %.2f s of encoding", counters.encode_seconds());
  }
  if (counters.decode_seconds() > 0) {
    absl::StrAppendFormat(&text, ", %.2f s of decoding", counters.decode_seconds());
  }
  if (counters.messages_dropped() > 0) {
    absl::StrAppend(&text, ", ", counters.messages_dropped(), " malformed messages dropped");
  }
  if (counters.messages_refused() > 0) {
    absl::StrAppend(&text, ", ", counters.messages_refused(), " old messages refused");
  }
  if (!node.metrics_endpoint().empty()) {
    absl::StrAppend(&text, ", metrics at ", node.metrics_endpoint());
  }
  if (node.draining()) absl::StrAppend(&text, ", draining");
  if (node.finished()) absl::StrAppend(&text, ", finished");
  return text;
}

std::string CopiesText(const StatusReply& status) {
  if (status.replicas() < 2 || status.segments() == 0) return "";
  if (status.segments_at_risk() == 0) {
    return absl::StrCat("all segments have ", status.replicas(), " copies");
  }
  const bool one = status.segments_at_risk() == 1;
  return absl::StrCat(status.segments_at_risk(), " of ",
                      Counted(status.segments(), "segment", "segments"), one ? " has" : " have",
                      " no replica");
}

}  // namespace tug
