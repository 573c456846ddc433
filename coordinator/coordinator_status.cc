// What people are told of a job and its nodes.
#include <limits>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/coordinator.h"

namespace tug {
namespace {

// The last step that all virtual workers of the worker have reported: what reports of a step say of
// the worker is the same in all.
void AddLastStep(const Member& member, NodeStatus& node) {
  if (member.started) node.set_clock(member.clock);
  if (!member.newest.has_value()) return;
  node.set_step_seconds(member.newest->step_seconds());
  node.set_compute_seconds(member.newest->compute_seconds());
  node.set_wait_seconds(member.newest->wait_seconds());
}

void AddBest(const std::optional<EvalMetrics>& best, StatusReply& reply) {
  reply.clear_best();
  if (!best.has_value()) return;
  reply.mutable_best()->set_version(best->version);
  reply.mutable_best()->set_loss(best->loss);
}

}  // namespace

void Coordinator::Watch(Member& member, const HeartbeatRequest& request, absl::Time now) {
  if (request.has_activity()) member.activity = request.activity();
  if (!request.has_counters()) return;
  member.counters = request.counters();
  // Between two heartbeats there may be a step's pushes, or none: a second has the mean of some.
  constexpr absl::Duration kSpan = absl::Seconds(1);
  const uint64_t sent = request.counters().socket_bytes();
  const bool begins = !member.counted.has_value() || sent < member.counted_bytes;
  const absl::Duration passed = now - member.counted.value_or(now);
  if (!begins && passed < kSpan) return;
  member.sent_bytes_per_second =
      begins ? 0 : static_cast<double>(sent - member.counted_bytes) / absl::ToDoubleSeconds(passed);
  member.counted = now;
  member.counted_bytes = sent;
}

StatusReply Coordinator::OnStatus(absl::Time now) const {
  StatusReply reply;
  reply.set_phase(phase_);
  reply.set_job(options_.job);
  reply.set_name(options_.config.name());
  reply.set_run_dir(options_.run_dir);
  reply.set_step(timeline_->progress.step());
  const uint64_t last_step =
      timeline_->end.final_version().value_or(options_.config.train().steps());
  reply.set_steps(last_step);
  reply.set_loss(timeline_->progress.loss().value_or(0));
  reply.set_tokens_per_second(timeline_->progress.tokens_per_second());
  reply.set_last_checkpoint(committed_version());
  reply.set_failure(Failure());
  AddWait(now, reply);
  reply.set_view(view_.has_value() ? view_->number() : 0);
  reply.set_replicas(options_.config.sync().replicas());
  if (holders_.has_value()) {
    reply.set_segments(static_cast<uint32_t>(view_->lane_of_segment_size()));
    reply.set_segments_at_risk(holders_->AtRisk());
  }
  if (view_.has_value()) {
    for (const BlockSpec& block : view_->blocks().blocks()) reply.add_block_names(block.name());
  }
  reply.set_page(page_);
  reply.set_stopped_early(stopped_early_);
  reply.set_replay(options_.config.replay().resolved_profile().name());
  AddBest(early_stop_->best(), reply);
  if (phase_ == RUNNING && last_step > timeline_->progress.step()) {
    reply.set_seconds_left(timeline_->progress.seconds_per_step() *
                           static_cast<double>(last_step - timeline_->progress.step()));
  }
  if (phase_ == DONE && committed_version() != reply.step()) TellOnlyWhatIsSaved(reply);
  for (const auto& [id, member] : membership_.members()) {
    NodeStatus* node = reply.add_nodes();
    node->set_node_id(id);
    node->set_kind(member.kind);
    node->set_host(member.host);
    node->set_pid(member.pid);
    node->set_seconds_since_heartbeat(absl::ToDoubleSeconds(now - member.last_heard));
    for (const std::string& endpoint : member.lane_endpoints) node->add_lane_endpoints(endpoint);
    *node->mutable_counters() = member.counters;
    node->set_finished(member.finished);
    node->set_metrics_endpoint(member.metrics_endpoint);
    *node->mutable_activity() = member.activity;
    node->set_sent_bytes_per_second(member.sent_bytes_per_second);
    AddLastStep(member, *node);
    AddServerStatus(member, *node);
    if (!view_.has_value()) continue;
    for (const WorkerAssignment& assignment : view_->workers()) {
      if (assignment.node_id() == id) {
        *node->mutable_virtual_workers() = assignment.virtual_workers();
      }
    }
  }
  return reply;
}

// The job was asked to stop while it was to go back to a checkpoint: the steps after that are gone.
// Or all was saved when it was to go back, and reports of the last steps were lost.
void Coordinator::TellOnlyWhatIsSaved(StatusReply& reply) const {
  reply.set_step(committed_version());
  reply.set_loss(std::numeric_limits<double>::quiet_NaN());
  reply.set_tokens_per_second(0);
  EarlyStop saved(options_.config.train());
  for (const EvalMetrics& eval : evals_) {
    if (eval.version <= reply.step()) saved.Add(eval);
  }
  AddBest(saved.best(), reply);
}

}  // namespace tug
