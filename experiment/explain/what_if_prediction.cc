// SPDX-License-Identifier: Apache-2.0
#include "experiment/explain/what_if_prediction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "experiment/explain/what_if.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Limit over all predictions: about 15 s.
constexpr double kMaxChunks = 1e8;

// Subtracts the simulated chunks from `chunks_left`.
absl::StatusOr<double> StepSeconds(const JobConfig& job, const SimulatedHosts& hosts,
                                   double& chunks_left) {
  ASSIGN_OR_RETURN(const double chunks, SimulatedChunks(job, hosts));
  if (chunks > chunks_left) {
    return absl::UnimplementedError(
        absl::StrCat("no what-if: the simulation would take too long (", chunks,
                     " message chunks; the limit over all predictions is ", kMaxChunks,
                     ", of which ", chunks_left, " are left)"));
  }
  chunks_left -= chunks;
  ASSIGN_OR_RETURN(const SchedulingPrediction prediction, PredictScheduling(job, hosts));
  return prediction.step_seconds;
}

}  // namespace

absl::StatusOr<WhatIfReport> PredictWhatIfs(const TracedProfile& traced, double measured_seconds) {
  WhatIfReport report{.measured_seconds = measured_seconds,
                      .link_bytes_per_second = traced.hosts.link_bytes_per_second,
                      .lane_bytes_per_second = traced.hosts.server_bytes_per_second,
                      .slowdown = traced.slowdown,
                      .notes = traced.notes};
  double chunks_left = kMaxChunks;
  ASSIGN_OR_RETURN(report.simulated_seconds, StepSeconds(traced.job, traced.hosts, chunks_left));
  for (const WhatIf& change : WhatIfsFor(traced.job, traced.slowdown)) {
    ASSIGN_OR_RETURN(const JobConfig job, Changed(traced.job, change));
    const SimulatedHosts hosts = HostsWith(traced.hosts, traced.job, job, change);
    const absl::StatusOr<double> seconds = StepSeconds(job, hosts, chunks_left);
    if (!seconds.ok()) {
      report.notes.push_back(absl::StrCat(change.name, ": ", seconds.status().message()));
      continue;
    }
    report.predictions.push_back(
        {change.name, change.sets, change.link, *seconds, report.simulated_seconds / *seconds});
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
                           {"link", prediction.link},
                           {"step_seconds", prediction.step_seconds},
                           {"speed_up", prediction.speed_up}});
  }
  return {{"measured_seconds", report.measured_seconds},
          {"simulated_seconds", report.simulated_seconds},
          {"base_error", report.base_error()},
          {"link_bytes_per_second", report.link_bytes_per_second},
          {"lane_bytes_per_second", report.lane_bytes_per_second},
          {"slowdown", report.slowdown},
          {"notes", report.notes},
          {"predictions", predictions}};
}

}  // namespace tug
