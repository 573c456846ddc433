// SPDX-License-Identifier: Apache-2.0
#include "model/backend/pass_graphs.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tug {
namespace {

using kernels::cuda::Event;
using kernels::cuda::Graph;

// Smaller graphs save nothing.
constexpr size_t kMinOperations = 2;
// Consecutive times the GPU must keep up before a graph is made.
constexpr int kTimesKeptUp = 2;
// Keys of a model with dropout are new in every step.
constexpr size_t kMaxKnownPasses = 1024;

absl::Status QueueOne(const CollectedPass::Operation& operation) {
  const absl::Status status = operation.queue();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(operation.name, ": ", status.message()));
}

absl::Status QueueAll(const CollectedPass& pass) {
  for (const auto& operation : pass.operations()) RETURN_IF_ERROR(QueueOne(operation));
  return absl::OkStatus();
}

}  // namespace

absl::Status PassGraphs::Queue(const CollectedPass& pass) {
  if (use_ == GraphUse::kNever || pass.operations().size() < kMinOperations) {
    return QueueAll(pass);
  }
  Known& known = KnownOf(pass.key());
  if (!known.graph.has_value() && IsWorthAGraph(known) && !Capture(pass, known)) {
    return QueueAll(pass);
  }
  if (!known.graph.has_value()) return QueueEach(pass, known);
  ++queue_.graph_launches;
  return QueueOne({"CUDA graph of a pass", [&] { return known.graph->Launch(queue_.stream); }});
}

PassGraphs::Known& PassGraphs::KnownOf(const std::string& key) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (known_.size() == kMaxKnownPasses) {
    std::erase_if(known_, [](const auto& entry) { return !entry.second.graph.has_value(); });
    if (known_.size() == kMaxKnownPasses) known_.clear();
  }
  return known_[key];
}

bool PassGraphs::IsWorthAGraph(const Known& known) const {
  if (use_ == GraphUse::kAlways) return known.times > 0;
  return known.times_kept_up >= kTimesKeptUp;
}

// A pass that cannot be captured is queued operation by operation, as are all later passes; an
// error of the pass itself shows up then. Existing graphs and their memory are freed.
bool PassGraphs::Capture(const CollectedPass& pass, Known& known) {
  absl::StatusOr<Graph> graph = Graph::Capture(queue_.stream, [&] { return QueueAll(pass); });
  if (graph.ok()) {
    known.graph.emplace(*std::move(graph));
  } else {
    LogWarning("CUDA graphs are disabled: a pass could not be captured",
               {{"error", std::string(graph.status().message())}});
    use_ = GraphUse::kNever;
    Forget();
  }
  return graph.ok();
}

// If the GPU has reached the last operation by the time it is queued, the GPU was faster than the
// host: launches dominate. The first time is not counted, since the host also loads kernels,
// chooses products and allocates.
absl::Status PassGraphs::QueueEach(const CollectedPass& pass, Known& known) {
  if (known.times++ == 0) return QueueAll(pass);
  if (!before_last_.has_value()) {
    ASSIGN_OR_RETURN(before_last_, Event::Create());
  }
  for (const auto& operation : pass.operations()) {
    if (&operation == &pass.operations().back()) {
      RETURN_IF_ERROR(before_last_->Record(queue_.stream));
    }
    RETURN_IF_ERROR(QueueOne(operation));
  }
  ASSIGN_OR_RETURN(const bool kept_up, before_last_->IsDone());
  known.times_kept_up = kept_up ? known.times_kept_up + 1 : 0;
  return absl::OkStatus();
}

}  // namespace tug
