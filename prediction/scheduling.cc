// SPDX-License-Identifier: Apache-2.0
#include "prediction/scheduling.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "prediction/replay_cluster.h"
#include "prediction/replay_traffic.h"

namespace tug {
namespace {

// The first steps begin with all weights present. The effects are gone after a few steps: all
// communication of a step ends within the next one.
constexpr uint32_t kWarmUpSteps = 3;
// Steps differ where streams share links unevenly.
constexpr uint32_t kMeasuredUnevenSteps = 16;
constexpr uint32_t kMeasuredEvenSteps = 4;

absl::Status CheckHosts(const SimulatedHosts& hosts) {
  RETURN_IF_ERROR(CheckLinkRate(hosts.link_bytes_per_second));
  for (const double value :
       {hosts.latency_seconds, hosts.message_seconds, hosts.server_bytes_per_second,
        hosts.encode_bytes_per_second, hosts.decode_bytes_per_second, hosts.queue_seconds}) {
    if (value >= 0 && std::isfinite(value)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "times and rates of simulated hosts must be finite and at least 0, not ", value));
  }
  if (!(hosts.unevenness >= 1 && std::isfinite(hosts.unevenness))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the unevenness of simulated links must be finite and at least 1, not ", hosts.unevenness));
  }
  return absl::OkStatus();
}

uint32_t MeasuredSteps(const SimulatedHosts& hosts) {
  return hosts.unevenness == 1 ? kMeasuredEvenSteps : kMeasuredUnevenSteps;
}

}  // namespace

absl::StatusOr<SchedulingPrediction> PredictScheduling(const JobConfig& job,
                                                       const SimulatedHosts& hosts) {
  RETURN_IF_ERROR(CheckHosts(hosts));
  ASSIGN_OR_RETURN(const ReplayTraffic traffic, ReplayTrafficOf(job));
  ReplayCluster cluster(job, traffic, hosts);
  const uint32_t measured = MeasuredSteps(hosts);
  cluster.Run(kWarmUpSteps + measured);
  const std::vector<double>& begins = cluster.begins();
  SchedulingPrediction prediction;
  prediction.step_seconds = (begins.back() - begins[kWarmUpSteps]) / measured;
  prediction.compute_seconds = traffic.compute_seconds();
  prediction.exposed_seconds = prediction.step_seconds - prediction.compute_seconds;
  prediction.spans = cluster.spans();
  return prediction;
}

absl::StatusOr<double> SimulatedChunks(const JobConfig& job, const SimulatedHosts& hosts) {
  RETURN_IF_ERROR(CheckHosts(hosts));
  ASSIGN_OR_RETURN(const ReplayTraffic traffic, ReplayTrafficOf(job));
  return ReplayCluster::ChunksPerStep(job, traffic, hosts) * (kWarmUpSteps + MeasuredSteps(hosts));
}

}  // namespace tug
