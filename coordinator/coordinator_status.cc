// SPDX-License-Identifier: Apache-2.0
// The status of a job and its nodes, as shown to users.
#include <limits>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "coordinator/coordinator.h"

namespace tug {
namespace {

// Adds the newest step that the worker has reported. All reports of a step carry the same values
// for the worker.
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

// Reduces the status to what the last checkpoint has. REQUIRES: the job is done, and its last
// checkpoint is not of the last reported step. Either the job was stopped during a rollback, and
// later steps are lost; or all steps were saved when the rollback began, and reports of the last
// ones were lost.
void LimitToLastCheckpoint(EarlyStop evaluations, StatusReply& reply) {
  reply.set_step(reply.last_checkpoint());
  reply.set_loss(std::numeric_limits<double>::quiet_NaN());
  reply.set_tokens_per_second(0);
  evaluations.GoBackTo(reply.step());
  AddBest(evaluations.best(), reply);
}

}  // namespace

StatusReply Coordinator::OnStatus(absl::Time now) const {
  StatusReply reply;
  reply.set_phase(phase());
  reply.set_job(options_.job);
  reply.set_name(config().name());
  reply.set_run_dir(options_.run_dir);
  reply.set_step(timeline_->progress.step());
  const uint64_t last_step = timeline_->LastStep();
  reply.set_steps(last_step);
  reply.set_loss(timeline_->progress.loss().value_or(0));
  reply.set_tokens_per_second(timeline_->progress.tokens_per_second());
  reply.set_last_checkpoint(checkpoints_.committed_version());
  reply.set_failure(Failure());
  AddWait(now, reply);
  reply.set_replicas(config().sync().replicas());
  views_.AddStatus(reply);
  reply.set_stopped_early(stopped_early_);
  reply.set_has_staleness(StalenessBound(config().sync()).has_value());
  reply.set_all_reduces(AllReduces(config()));
  reply.set_replay(config().replay().resolved_profile().name());
  AddBest(early_stop_.best(), reply);
  if (phase() == RUNNING && last_step > timeline_->progress.step()) {
    reply.set_seconds_left(timeline_->progress.seconds_per_step() *
                           static_cast<double>(last_step - timeline_->progress.step()));
  }
  if (phase() == DONE && reply.last_checkpoint() != reply.step()) {
    LimitToLastCheckpoint(early_stop_, reply);
  }
  for (const auto& [id, member] : membership_.members()) {
    NodeStatus* node = reply.add_nodes();
    node->set_node_id(id);
    node->set_kind(member.kind);
    node->set_name(member.Name());
    node->set_life(member.name.life);
    node->set_host(member.host);
    node->set_pid(member.pid);
    node->set_seconds_since_heartbeat(absl::ToDoubleSeconds(now - member.last_heard));
    for (const std::string& endpoint : member.lane_endpoints) node->add_lane_endpoints(endpoint);
    *node->mutable_counters() = member.counters;
    node->set_finished(member.finished);
    node->set_metrics_endpoint(member.metrics_endpoint);
    *node->mutable_activity() = member.activity;
    node->set_socket_bytes_per_second(member.sends.sockets());
    node->set_shared_memory_bytes_per_second(member.sends.shared_memory());
    AddLastStep(member, *node);
    node->set_draining(member.leaving);
    views_.AddStatus(member, *node);
  }
  return reply;
}

}  // namespace tug
