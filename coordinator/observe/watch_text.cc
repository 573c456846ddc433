// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/watch_text.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/median.h"
#include "coordinator/observe/sync_figures.h"

namespace tug {
namespace {

constexpr double kMinShownSeconds = 0.05;  // seconds
constexpr int kMaxNamed = 3;               // virtual workers, or workers, in a sentence
constexpr double kMinOwnGap = 0.005;       // seconds

std::string BlockName(uint32_t block, const StatusReply& status) {
  if (block < static_cast<uint32_t>(status.block_names_size())) {
    return status.block_names(static_cast<int>(block));
  }
  return absl::StrCat("block ", block);
}

// " 0.8 s"
std::string For(double seconds) {
  return seconds < kMinShownSeconds ? "" : absl::StrFormat(" %.1f s", seconds);
}

const NodeStatus* CarrierOf(uint32_t virtual_worker, const StatusReply& status) {
  for (const NodeStatus& node : status.nodes()) {
    const auto& carried = node.virtual_workers();
    if (std::ranges::find(carried, virtual_worker) != carried.end()) return &node;
  }
  return nullptr;
}

// "virtual worker 2 (worker-1)"; if there are many, only their number.
std::string MissingText(const NodeActivity& activity, const StatusReply& status) {
  const int count = activity.late_size();
  if (count > kMaxNamed) return absl::StrCat(count, " virtual workers");
  std::vector<std::string> names;
  for (const uint32_t virtual_worker : activity.late()) {
    const NodeStatus* carrier = CarrierOf(virtual_worker, status);
    names.push_back(absl::StrCat(
        virtual_worker, carrier == nullptr ? "" : absl::StrCat(" (", carrier->name(), ")")));
  }
  return absl::StrCat(count == 1 ? "virtual worker " : "virtual workers ",
                      absl::StrJoin(names, ", "));
}

// For a worker that waits for the sum of a block: the virtual workers whose pushes a server misses,
// of that block or else of another one, which then comes first.
std::string SumText(const NodeActivity& waiting, const StatusReply& status) {
  const NodeActivity* missing = nullptr;
  for (const NodeStatus& node : status.nodes()) {
    const NodeActivity& server = node.activity();
    if (node.kind() != SERVER || server.doing() != NodeActivity::WAITING_FOR_SUM ||
        server.late_size() == 0) {
      continue;
    }
    if (missing == nullptr || server.block() == waiting.block()) missing = &server;
  }
  return missing == nullptr ? "sum" : absl::StrCat("sum, missing ", MissingText(*missing, status));
}

// Name of the pushes that a server waits for: in an all-reduce they come from its own worker only.
const char* PushesName(const StatusReply& status) {
  return status.all_reduces() ? "gradients" : "pushes";
}

double OwnSeconds(const NodeStatus& node) { return node.step_seconds() - node.wait_seconds(); }

// Workers that are still training.
std::vector<const NodeStatus*> Workers(const StatusReply& status) {
  std::vector<const NodeStatus*> workers;
  for (const NodeStatus& node : status.nodes()) {
    const bool steps = node.kind() == WORKER && node.virtual_workers_size() > 0;
    if (steps && !node.finished()) workers.push_back(&node);
  }
  return workers;
}

// Heartbeats differ in age: workers with a newer one may seem ahead by steps that this one has
// completed too.
std::string BehindText(const NodeStatus& worker, const std::vector<const NodeStatus*>& workers) {
  constexpr uint64_t kBehind = 2;
  constexpr double kHeartbeatsApart = 0.5;  // seconds
  uint64_t most = 0;
  std::vector<double> step_seconds;
  for (const NodeStatus* other : workers) {
    most = std::max(most, other->clock());
    step_seconds.push_back(other->step_seconds());
  }
  const double behind = static_cast<double>(most - worker.clock()) * Median(step_seconds);
  if (worker.clock() + kBehind > most ||
      behind < kHeartbeatsApart + worker.seconds_since_heartbeat()) {
    return "";
  }
  return absl::StrCat("step ", worker.clock() + 1, ", others at ", most + 1);
}

std::string SlowText(const NodeStatus& worker, const std::vector<const NodeStatus*>& workers) {
  std::vector<double> others;
  for (const NodeStatus* other : workers) {
    if (other != &worker && other->step_seconds() > 0) others.push_back(OwnSeconds(*other));
  }
  if (others.empty() || worker.step_seconds() <= 0) return "";
  const double own = OwnSeconds(worker), median = Median(others);
  if (own < kLateRatio * median || own - median < kMinOwnGap) return "";
  return absl::StrFormat("%.0f ms per step without waiting, median of the others %.0f ms",
                         own * 1e3, median * 1e3);
}

// Servers' waits for this worker's pushes.
std::string AwaitedText(const NodeStatus& worker, const StatusReply& status, size_t workers) {
  for (const NodeStatus& node : status.nodes()) {
    const NodeActivity& activity = node.activity();
    if (node.kind() != SERVER || activity.doing() != NodeActivity::WAITING_FOR_SUM ||
        activity.seconds() < kLateSeconds || activity.late_size() == 0) {
      continue;
    }
    std::map<uint32_t, bool> awaited;  // node ids
    for (const uint32_t late : activity.late()) {
      if (const NodeStatus* carrier = CarrierOf(late, status)) awaited[carrier->node_id()] = true;
    }
    if (!awaited.contains(worker.node_id()) || 2 * awaited.size() > workers) continue;
    return absl::StrCat(node.name(), " has waited", For(activity.seconds()),
                        status.all_reduces() ? " for its gradient of " : " for its push of ",
                        BlockName(activity.block(), status));
  }
  return "";
}

}  // namespace

std::string PhaseText(Phase phase) {
  switch (phase) {
    case WAITING:
      return "waiting for nodes";
    case RUNNING:
      return "running";
    case DONE:
      return "done";
    case FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string AllReduceText(const StatusReply& status) {
  if (!status.all_reduces()) return "";
  size_t ranks = 0;
  std::vector<std::string> names;
  for (const NodeStatus& node : status.nodes()) {
    if (node.kind() != SERVER || !node.has_all_reduce_rank()) continue;
    ++ranks;
    for (const std::string& name : node.activity().algorithms()) {
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  if (ranks == 0) return "all-reduce";
  if (ranks == 1) return "all-reduce of 1 rank: nothing is sent";
  const std::string algorithms = absl::StrReplaceAll(absl::StrJoin(names, " and "), {{"_", " "}});
  return absl::StrCat("all-reduce", names.empty() ? "" : " by ", algorithms, " between ", ranks,
                      " ranks");
}

std::string WaitText(const StatusReply& status) {
  if (!status.has_wait()) return "";
  const JobWait& wait = status.wait();
  return absl::StrFormat("waiting for %s, for %.0f s: %s", wait.what(), wait.seconds(),
                         wait.ends());
}

std::string ActivityText(const NodeStatus& node, const StatusReply& status) {
  if (node.finished()) return "finished";
  if (node.spare()) return "standby";
  const NodeActivity& activity = node.activity();
  const std::string block = BlockName(activity.block(), status);
  const std::string waiting = absl::StrCat("waiting", For(activity.seconds()), " for ");
  switch (activity.doing()) {
    case NodeActivity::COMPUTING:
      return absl::StrCat("computing ", block);
    case NodeActivity::WAITING_FOR_DATA:
      return absl::StrCat(waiting, "data");
    case NodeActivity::WAITING_FOR_QUEUE:
      return absl::StrCat(waiting, block, ": queue");
    case NodeActivity::WAITING_FOR_WIRE:
      return absl::StrCat(waiting, block, ": wire");
    case NodeActivity::WAITING_FOR_SUM:
      if (node.kind() == WORKER) {
        return absl::StrCat(waiting, block, ": ", SumText(activity, status));
      }
      return absl::StrCat(waiting, PushesName(status), " of ", block, ": ",
                          MissingText(activity, status));
    case NodeActivity::UPDATING:
      return status.all_reduces() ? "all-reducing or updating" : "updating";
    case NodeActivity::RESTING:
      return "idle";
    default:
      return "";
  }
}

std::vector<std::string> LateTexts(const StatusReply& status) {
  std::vector<std::string> texts;
  if (status.phase() != RUNNING) return texts;
  const std::vector<const NodeStatus*> workers = Workers(status);
  for (const NodeStatus& node : status.nodes()) {
    if (node.seconds_since_heartbeat() >= kSilentSeconds) {
      texts.push_back(absl::StrFormat("%s: no heartbeat for %.1f s", node.name(),
                                      node.seconds_since_heartbeat()));
    }
  }
  if (workers.size() < 2) return texts;
  for (const NodeStatus* worker : workers) {
    std::vector<std::string> reasons = {BehindText(*worker, workers), SlowText(*worker, workers),
                                        AwaitedText(*worker, status, workers.size())};
    std::erase(reasons, "");
    if (reasons.empty()) continue;
    texts.push_back(absl::StrCat(worker->name(), " is slow: ", absl::StrJoin(reasons, "; ")));
  }
  return texts;
}

double MeanStaleness(const NodeCounters& counters) {
  const auto& staleness = counters.staleness();
  return SyncFigures{.staleness = {staleness.begin(), staleness.end()}}.MeanStaleness();
}

}  // namespace tug
