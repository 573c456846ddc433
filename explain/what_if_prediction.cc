// SPDX-License-Identifier: Apache-2.0
#include "explain/what_if_prediction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Part of a step through memory that is exposed communication, above which a note is due.
constexpr double kMuchExposed = 0.3;

// Subtracts the simulated chunks from `chunks_left`.
absl::StatusOr<SchedulingPrediction> Simulate(const JobConfig& job, const SimulatedHosts& hosts,
                                              double& chunks_left) {
  ASSIGN_OR_RETURN(const double chunks, SimulatedChunks(job, hosts));
  if (chunks > chunks_left) {
    return absl::UnimplementedError(
        absl::StrCat("the simulation would take too long (", chunks,
                     " message chunks; the limit over all predictions is ", kMaxWhatIfChunks,
                     ", of which ", chunks_left, " are left)"));
  }
  chunks_left -= chunks;
  return PredictScheduling(job, hosts);
}

}  // namespace

absl::StatusOr<WhatIfReport> PredictWhatIfs(const TracedProfile& traced, double measured_seconds) {
  WhatIfReport report{.measured_seconds = measured_seconds,
                      .link_bytes_per_second = traced.hosts.link_bytes_per_second,
                      .in_memory = traced.in_memory,
                      .lane_bytes_per_second = traced.hosts.server_bytes_per_second,
                      .slowdown = traced.slowdown,
                      .notes = traced.notes};
  double chunks_left = kMaxWhatIfChunks;
  ASSIGN_OR_RETURN(const SchedulingPrediction base,
                   Simulate(traced.job, traced.hosts, chunks_left));
  report.simulated_seconds = base.step_seconds;
  if (traced.in_memory && base.exposed_seconds > kMuchExposed * base.step_seconds) {
    report.notes.push_back(
        "much of a step is exchange, whose share of this host's memory and cores is not simulated: "
        "predictions of changes to it were off by up to 19% (docs/explain.md)");
  }
  for (const WhatIf& change : WhatIfsFor(traced)) {
    ASSIGN_OR_RETURN(const JobConfig job, Changed(traced.job, change));
    const SimulatedHosts hosts = HostsWith(traced, job, change);
    const absl::StatusOr<SchedulingPrediction> step = Simulate(job, hosts, chunks_left);
    if (!step.ok()) {
      report.notes.push_back(absl::StrCat(change.name, ": ", step.status().message()));
      continue;
    }
    report.predictions.push_back({change.name, change.sets, change.effect, step->step_seconds,
                                  base.step_seconds / step->step_seconds});
  }
  std::stable_sort(
      report.predictions.begin(), report.predictions.end(),
      [](const WhatIfPrediction& a, const WhatIfPrediction& b) { return a.speed_up > b.speed_up; });
  return report;
}

OrderedJson WhatIfJson(const WhatIfReport& report) {
  OrderedJson predictions = OrderedJson::array();
  for (const WhatIfPrediction& prediction : report.predictions) {
    predictions.push_back({{"name", prediction.name},
                           {"sets", prediction.sets},
                           {"link", prediction.effect.link},
                           {"compute", prediction.effect.compute},
                           {"own_hosts", prediction.effect.own_hosts},
                           {"step_seconds", prediction.step_seconds},
                           {"speed_up", prediction.speed_up}});
  }
  return {{"measured_seconds", report.measured_seconds},
          {"simulated_seconds", report.simulated_seconds},
          {"base_error", report.base_error()},
          {"link_bytes_per_second", report.link_bytes_per_second},
          {"in_memory", report.in_memory},
          {"lane_bytes_per_second", report.lane_bytes_per_second},
          {"slowdown", report.slowdown},
          {"notes", report.notes},
          {"predictions", predictions}};
}

}  // namespace tug
