// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/job_tracing.h"

#include <algorithm>
#include <utility>

namespace tug {

bool JobTracing::IsWanted(uint64_t step) const {
  if (done_ || stage_.phase() != RUNNING) return false;
  // The weights of the last traced step arrive during the next step.
  return step > traced_.end || std::ranges::all_of(membership_.OfKind(WORKER), &Member::finished);
}

absl::Status JobTracing::Add(const TraceChunk& chunk, Member& sender, absl::Time now) {
  absl::Status added = traces_.Add(chunk);
  if (added.ok()) {
    heard_ = now;
  } else {
    sender.trace_refused = true;
  }
  return added;
}

void JobTracing::Advance(uint64_t step, absl::Time now) {
  if (!IsWanted(step)) return;
  if (!heard_.has_value()) heard_ = now;
  const auto has_sent = [](const auto& entry) { return entry.second.trace_sent; };
  if (std::ranges::all_of(membership_.members(), has_sent)) End();
}

void JobTracing::End() {
  if (std::exchange(done_, true)) return;
  JobTrace trace;
  trace.range = traced_;
  for (const auto& [id, member] : membership_.members()) {
    if (!member.trace_sent || member.trace_refused) trace.silent.push_back(member.NameAndPlace());
  }
  for (const BlockSpec& block : blocks_.layout().blocks.blocks()) {
    trace.block_names.push_back(block.name());
  }
  for (auto& [id, node] : traces_.Take()) {
    const Member* member = membership_.Find(id);
    if (member == nullptr) continue;  // it was lost
    node.node_id = id;
    node.kind = member->kind;
    node.name = member->Name();
    node.place = member->Place();
    trace.nodes.push_back(std::move(node));
  }
  actions_.Add(TraceCompleted{std::move(trace)});
}

}  // namespace tug
