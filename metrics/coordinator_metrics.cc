// SPDX-License-Identifier: Apache-2.0
#include "metrics/coordinator_metrics.h"

#include <map>
#include <string>

namespace tug {
namespace {

using F = CoordinatorFigures;
using S = MetricSamples;

template <auto member>
void Total(const F& figures, S& samples) {
  Field<member>(figures.totals, samples);
}

constexpr MetricRow<F> kRows[] = {
    {"tug_phase", MetricType::kGauge, "state", "phase",
     "1 for the current phase of the job, 0 for the others",
     [](const F& f, S& s) {
       for (const Phase phase : {WAITING, RUNNING, DONE, FAILED}) {
         s.Add(Phase_Name(phase), f.status.phase() == phase ? 1 : 0);
       }
     }},
    {"tug_step", MetricType::kGauge, "steps", "",
     "Steps completed; falls when the job rolls back to a checkpoint",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.step())); }},
    {"tug_last_step", MetricType::kGauge, "steps", "",
     "Step at which the job ends: train.steps, or earlier after a stop",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.steps())); }},
    {"tug_steps_total", MetricType::kCounter, "steps", "",
     "Steps completed, including those repeated after a rollback", Total<&JobTotals::steps>},
    {"tug_tokens_total", MetricType::kCounter, "tokens", "",
     "Tokens trained on, without padding; in a replay, samples", Total<&JobTotals::tokens>},
    {"tug_tokens_per_second", MetricType::kGauge, "tokens", "",
     "Training throughput, averaged over the last 50 steps",
     [](const F& f, S& s) { s.Add(f.status.tokens_per_second()); }},
    {"tug_loss", MetricType::kGauge, "nats", "", "Training loss of the last step",
     [](const F& f, S& s) {
       if (f.status.step() > 0) s.Add(f.status.loss());
     }},
    {"tug_validation_loss", MetricType::kGauge, "nats", "",
     "Validation loss of the last evaluation",
     [](const F& f, S& s) {
       if (f.totals.validation_loss.has_value()) s.Add(*f.totals.validation_loss);
     }},
    {"tug_best_validation_loss", MetricType::kGauge, "nats", "", "Lowest validation loss so far",
     [](const F& f, S& s) {
       if (f.status.has_best()) s.Add(f.status.best().loss());
     }},
    {"tug_evaluations_total", MetricType::kCounter, "evaluations", "", "Evaluations completed",
     Total<&JobTotals::evaluations>},
    {"tug_job_push_bytes_total", MetricType::kCounter, "bytes", "",
     "Payload bytes pushed by all workers, as of their last step reports",
     Total<&JobTotals::pushed_bytes>},
    {"tug_job_pull_bytes_total", MetricType::kCounter, "bytes", "",
     "Payload bytes pulled by all workers, as of their last step reports",
     Total<&JobTotals::pulled_bytes>},
    {"tug_checkpoints_total", MetricType::kCounter, "checkpoints", "", "Checkpoints committed",
     Total<&JobTotals::checkpoints>},
    {"tug_checkpoint_bytes_total", MetricType::kCounter, "bytes", "",
     "Size of all checkpoint files written", Total<&JobTotals::checkpoint_bytes>},
    {"tug_checkpoint_write_seconds_total", MetricType::kCounter, "seconds", "",
     "Time to write checkpoints; per checkpoint, of the slowest process",
     Total<&JobTotals::checkpoint_write_seconds>},
    {"tug_checkpoint_pause_seconds_total", MetricType::kCounter, "seconds", "",
     "Upper bound on the time training paused for checkpoints",
     Total<&JobTotals::checkpoint_pause_seconds>},
    {"tug_checkpoint_step", MetricType::kGauge, "steps", "", "Step of the last checkpoint",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.last_checkpoint())); }},
    {"tug_rollbacks_total", MetricType::kCounter, "rollbacks", "",
     "Rollbacks of the job to a checkpoint", Total<&JobTotals::rollbacks>},
    {"tug_notices_total", MetricType::kCounter, "notices", "",
     "Notices to the user, as written to metrics.jsonl", Total<&JobTotals::notices>},
    {"tug_view", MetricType::kGauge, "number", "",
     "Number of the current view; increases when nodes join, leave or are lost",
     [](const F& f, S& s) { s.Add(f.status.view()); }},
    {"tug_members", MetricType::kGauge, "nodes", "kind",
     "Nodes in the job, by kind: worker, server, spare",
     [](const F& f, S& s) {
       std::map<std::string, int> members = {{"worker", 0}, {"server", 0}, {"spare", 0}};
       for (const NodeStatus& node : f.status.nodes()) {
         ++members[node.kind() == WORKER ? "worker" : node.spare() ? "spare" : "server"];
       }
       for (const auto& [kind, count] : members) s.Add(kind, count);
     }},
    {"tug_heartbeat_age_seconds", MetricType::kGauge, "seconds", "node",
     "Time since the last heartbeat of each node",
     [](const F& f, S& s) {
       for (const NodeStatus& node : f.status.nodes()) {
         s.Add(node.name(), node.seconds_since_heartbeat());
       }
     }},
    {"tug_segments", MetricType::kGauge, "segments", "", "Segments the model is divided into",
     [](const F& f, S& s) { s.Add(f.status.segments()); }},
    {"tug_segments_at_risk", MetricType::kGauge, "segments", "",
     "Segments with fewer complete copies than sync.replicas",
     [](const F& f, S& s) { s.Add(f.status.segments_at_risk()); }},
    {"tug_remaining_seconds", MetricType::kGauge, "seconds", "",
     "Estimated time to the end of the job at the current pace",
     [](const F& f, S& s) { s.Add(f.status.seconds_left()); }},
};

}  // namespace

std::span<const MetricRow<CoordinatorFigures>> CoordinatorMetrics() { return kRows; }

}  // namespace tug
