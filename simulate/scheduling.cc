#include "simulate/scheduling.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "simulate/replay_cluster.h"
#include "simulate/replay_traffic.h"

namespace tug {
namespace {

// The first steps begin with all weights there. What they leave behind is gone after a few: all
// communication of a step ends within the next one.
constexpr uint32_t kWarmUpSteps = 3;
// Steps differ where streams share links unevenly.
constexpr uint32_t kMeasuredSteps = 16;
constexpr uint32_t kMeasuredEvenSteps = 4;

absl::Status CheckHosts(const SimulatedHosts& hosts) {
  if (!(hosts.link_bytes_per_second > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a link of ", hosts.link_bytes_per_second, " bytes a second carries nothing"));
  }
  if (!(hosts.latency_seconds >= 0 && hosts.message_seconds >= 0 &&
        hosts.server_bytes_per_second >= 0 && hosts.queue_seconds >= 0 && hosts.unevenness >= 1)) {
    return absl::InvalidArgumentError(
        "times and rates of simulated hosts are not negative, and unevenness is at least 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SchedulingPrediction> PredictScheduling(const JobConfig& job,
                                                       const SimulatedHosts& hosts) {
  RETURN_IF_ERROR(CheckHosts(hosts));
  ASSIGN_OR_RETURN(const ReplayTraffic traffic, ReplayTrafficOf(job));
  ReplayCluster cluster(job, traffic, hosts);
  const uint32_t measured = hosts.unevenness == 1 ? kMeasuredEvenSteps : kMeasuredSteps;
  cluster.Run(kWarmUpSteps + measured);
  const std::vector<double>& begins = cluster.begins();
  SchedulingPrediction prediction;
  prediction.step_seconds = (begins.back() - begins[kWarmUpSteps]) / measured;
  prediction.compute_seconds = traffic.compute_seconds();
  prediction.exposed_seconds = prediction.step_seconds - prediction.compute_seconds;
  prediction.spans = cluster.spans();
  return prediction;
}

}  // namespace tug
