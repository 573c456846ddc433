// SPDX-License-Identifier: Apache-2.0
#include "metrics/coordinator_metrics.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

using F = CoordinatorFigures;
using S = MetricSamples;

template <auto member>
void Total(const F& figures, S& samples) {
  Field<member>(figures.totals, samples);
}

// "server 3"
std::string NameOf(const NodeStatus& node) {
  return absl::StrCat(node.kind() == SERVER ? "server " : "worker ", node.node_id());
}

constexpr MetricRow<F> kRows[] = {
    {"tug_phase", MetricType::kGauge, "state", "phase",
     "1 for the phase that the job is in, 0 for the others",
     [](const F& f, S& s) {
       for (const Phase phase : {WAITING, RUNNING, DONE, FAILED}) {
         s.Add(Phase_Name(phase), f.status.phase() == phase ? 1 : 0);
       }
     }},
    {"tug_step", MetricType::kGauge, "steps", "", "Steps completed of the job's timeline",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.step())); }},
    {"tug_last_step", MetricType::kGauge, "steps", "", "The step that the job will end with",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.steps())); }},
    {"tug_steps_total", MetricType::kCounter, "steps", "",
     "Steps completed, those that were taken again included", Total<&JobTotals::steps>},
    {"tug_tokens_total", MetricType::kCounter, "tokens", "",
     "Tokens read in them, without padding; of a replay, samples", Total<&JobTotals::tokens>},
    {"tug_tokens_per_second", MetricType::kGauge, "tokens", "", "Over the last 50 steps",
     [](const F& f, S& s) { s.Add(f.status.tokens_per_second()); }},
    {"tug_loss", MetricType::kGauge, "nats", "", "Training loss of the newest step",
     [](const F& f, S& s) {
       if (f.status.step() > 0) s.Add(f.status.loss());
     }},
    {"tug_validation_loss", MetricType::kGauge, "nats", "", "Of the newest evaluation",
     [](const F& f, S& s) {
       if (f.totals.validation_loss.has_value()) s.Add(*f.totals.validation_loss);
     }},
    {"tug_best_validation_loss", MetricType::kGauge, "nats", "", "The lowest of all evaluations",
     [](const F& f, S& s) {
       if (f.status.has_best()) s.Add(f.status.best().loss());
     }},
    {"tug_evaluations_total", MetricType::kCounter, "evaluations", "", "Evaluations completed",
     Total<&JobTotals::evaluations>},
    {"tug_job_push_bytes_total", MetricType::kCounter, "bytes", "",
     "Payloads pushed by all workers, as they reported with their steps",
     Total<&JobTotals::pushed_bytes>},
    {"tug_job_pull_bytes_total", MetricType::kCounter, "bytes", "",
     "Payloads pulled by all workers, as they reported with their steps",
     Total<&JobTotals::pulled_bytes>},
    {"tug_checkpoints_total", MetricType::kCounter, "checkpoints", "", "Checkpoints committed",
     Total<&JobTotals::checkpoints>},
    {"tug_checkpoint_bytes_total", MetricType::kCounter, "bytes", "", "Size of their files",
     Total<&JobTotals::checkpoint_bytes>},
    {"tug_checkpoint_write_seconds_total", MetricType::kCounter, "seconds", "",
     "Time to write them, of the slowest process each",
     Total<&JobTotals::checkpoint_write_seconds>},
    {"tug_checkpoint_pause_seconds_total", MetricType::kCounter, "seconds", "",
     "Training stood still for at most so long for them",
     Total<&JobTotals::checkpoint_pause_seconds>},
    {"tug_checkpoint_step", MetricType::kGauge, "steps", "", "Step of the newest",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.status.last_checkpoint())); }},
    {"tug_rollbacks_total", MetricType::kCounter, "rollbacks", "",
     "How often the job went back to a checkpoint", Total<&JobTotals::rollbacks>},
    {"tug_notices_total", MetricType::kCounter, "notices", "",
     "Things that a person should know, as metrics.jsonl has them", Total<&JobTotals::notices>},
    {"tug_view", MetricType::kGauge, "number", "", "Number of the newest view",
     [](const F& f, S& s) { s.Add(f.status.view()); }},
    {"tug_members", MetricType::kGauge, "nodes", "kind",
     "Nodes that are in: workers, servers, spares",
     [](const F& f, S& s) {
       std::map<std::string, int> members = {{"worker", 0}, {"server", 0}, {"spare", 0}};
       for (const NodeStatus& node : f.status.nodes()) {
         ++members[node.kind() == WORKER ? "worker" : node.spare() ? "spare" : "server"];
       }
       for (const auto& [kind, count] : members) s.Add(kind, count);
     }},
    {"tug_heartbeat_age_seconds", MetricType::kGauge, "seconds", "node",
     "Since the last heartbeat of a node",
     [](const F& f, S& s) {
       for (const NodeStatus& node : f.status.nodes()) {
         s.Add(NameOf(node), node.seconds_since_heartbeat());
       }
     }},
    {"tug_segments", MetricType::kGauge, "segments", "", "Segments of the job's blocks",
     [](const F& f, S& s) { s.Add(f.status.segments()); }},
    {"tug_segments_at_risk", MetricType::kGauge, "segments", "",
     "Segments with fewer whole copies than sync.replicas asks for",
     [](const F& f, S& s) { s.Add(f.status.segments_at_risk()); }},
    {"tug_remaining_seconds", MetricType::kGauge, "seconds", "",
     "To the end of the job, as it goes now",
     [](const F& f, S& s) { s.Add(f.status.seconds_left()); }},
};

}  // namespace

std::span<const MetricRow<CoordinatorFigures>> CoordinatorMetrics() { return kRows; }

}  // namespace tug
