// What people are told of a job and its nodes.
#include <string>

#include "absl/time/time.h"
#include "coordinator/coordinator.h"

namespace tug {

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
  reply.set_failure(failure_);
  reply.set_view(view_.has_value() ? view_->number() : 0);
  reply.set_replicas(options_.config.sync().replicas());
  if (holders_.has_value()) {
    reply.set_segments(static_cast<uint32_t>(view_->lane_of_segment_size()));
    reply.set_segments_at_risk(holders_->AtRisk());
  }
  reply.set_stopped_early(stopped_early_);
  reply.set_replay(options_.config.replay().resolved_profile().name());
  if (early_stop_->best().has_value()) {
    reply.mutable_best()->set_version(early_stop_->best()->version);
    reply.mutable_best()->set_loss(early_stop_->best()->loss);
  }
  if (phase_ == RUNNING && last_step > timeline_->progress.step()) {
    reply.set_seconds_left(timeline_->progress.seconds_per_step() *
                           static_cast<double>(last_step - timeline_->progress.step()));
  }
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

}  // namespace tug
