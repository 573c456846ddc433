// What nodes of a traced job recorded: asked for once its steps are over, and handed on whole.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "coordinator/coordinator.h"

namespace tug {

bool Coordinator::TraceWanted() const {
  if (traced_.end == 0 || phase_ != RUNNING) return false;
  // The weights of the last traced step arrive in the one after it.
  return timeline_->progress.step() > traced_.end ||
         membership_.Every(WORKER, [](const Member& worker) { return worker.finished; });
}

void Coordinator::CompleteTrace(absl::Time now) {
  if (trace_done_ || !TraceWanted()) return;
  if (!trace_heard_.has_value()) trace_heard_ = now;
  const auto has_sent = [](const auto& entry) { return entry.second.trace_sent; };
  const auto& members = membership_.members();
  if (std::all_of(members.begin(), members.end(), has_sent)) EndTrace();
}

bool Coordinator::TraceIsOverdue(absl::Time now) const {
  return !trace_done_ && TraceWanted() && trace_heard_.has_value() &&
         now - *trace_heard_ >= kTracePatience;
}

void Coordinator::EndTrace() {
  if (trace_done_) return;
  JobTrace trace;
  for (const auto& [id, member] : membership_.members()) {
    if (!member.trace_sent || member.trace_refused) trace.silent.push_back(member.Name());
  }
  trace_done_ = true;
  trace.range = traced_;
  for (const BlockSpec& block : blocks_.layout().blocks.blocks()) {
    trace.block_names.push_back(block.name());
  }
  for (auto& [id, node] : traces_.Take()) {
    const Member* member = membership_.Find(id);
    if (member == nullptr) continue;  // it was lost
    node.node_id = id;
    node.kind = member->kind;
    node.name = member->Name();
    trace.nodes.push_back(std::move(node));
  }
  actions_.emplace_back(TraceCompleted{std::move(trace)});
}

absl::StatusOr<TraceReply> Coordinator::OnTrace(const TraceChunk& chunk, absl::Time now) {
  Member* const member = membership_.Find(chunk.node_id());
  if (member == nullptr || chunk.job() != options_.job) {
    return absl::NotFoundError(
        absl::StrCat("node ", chunk.node_id(), " is not a member of this job (any more)"));
  }
  if (trace_done_ || !TraceWanted()) return TraceReply();  // nobody waits for it
  const absl::Status added = traces_.Add(chunk);
  member->trace_refused |= !added.ok();
  RETURN_IF_ERROR(added);
  trace_heard_ = now;
  return TraceReply();
}

}  // namespace tug
