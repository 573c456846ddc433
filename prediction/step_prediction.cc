// SPDX-License-Identifier: Apache-2.0
#include "prediction/step_prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "config/largest_payload.h"

namespace tug {
namespace {

// Range of the search for the link, bytes/s: from useless to beyond any machine's memory.
constexpr double kSlowestLink = 1e5;
constexpr double kFastestLink = 1e11;
constexpr int kHalvings = 16;  // of the logarithm of that range: to 0.02%

// Messages of a worker per step that are quick to simulate.
constexpr uint64_t kMaxMessages = 4000;

// Messages of a worker per step, both ways.
uint64_t MessagesOf(const JobConfig& job, const SchedulePoint& point) {
  uint64_t messages = 0;
  for (const ReplayBlock& block : job.replay().resolved_profile().blocks()) {
    messages += block.parameters() * sizeof(float) / point.partition_bytes + 1;
  }
  const uint64_t workers = std::max(job.cluster().workers(), 1u);
  return messages * 2 * ((job.cluster().virtual_workers() + workers - 1) / workers);
}

absl::StatusOr<double> SecondsAt(const JobConfig& job, const SchedulePoint& point, double link) {
  SimulatedHosts hosts = kUsualHosts;
  hosts.link_bytes_per_second = link;
  ASSIGN_OR_RETURN(const SchedulingPrediction prediction,
                   PredictScheduling(WithSchedule(job, point), hosts));
  return prediction.step_seconds;
}

// The point with the smallest partition, from its own on, that is quick to simulate.
SchedulePoint Simulated(const JobConfig& job, SchedulePoint point) {
  while (MessagesOf(job, point) > kMaxMessages && point.partition_bytes < kMaxTunedPartitionBytes) {
    point.partition_bytes *= 2;
  }
  point.credit_bytes = std::max(point.credit_bytes, point.partition_bytes);
  return point;
}

absl::StatusOr<double> SlowestLink(const JobConfig& job, const MeasuredStep& measured,
                                   const std::function<bool()>& stopped) {
  double slow = kSlowestLink, fast = kFastestLink;
  for (int i = 0; i < kHalvings; ++i) {
    if (stopped()) return absl::CancelledError("the prediction was stopped");
    const double middle = std::sqrt(slow * fast);
    ASSIGN_OR_RETURN(const double seconds, SecondsAt(job, Simulated(job, measured.point), middle));
    (seconds > measured.seconds ? slow : fast) = middle;
  }
  return fast;
}

}  // namespace

JobConfig WithSchedule(const JobConfig& job, const SchedulePoint& point) {
  JobConfig changed = job;
  CommConfig& comm = *changed.mutable_comm();
  comm.set_pull_credit_bytes(PullCreditBytes(point, job.comm()));
  comm.set_partition_bytes(point.partition_bytes);
  comm.set_credit_bytes(point.credit_bytes);
  return changed;
}

absl::StatusOr<std::vector<double>> PredictSteps(const JobConfig& job, const MeasuredStep& measured,
                                                 const std::vector<SchedulePoint>& points,
                                                 const std::function<bool()>& stopped) {
  ASSIGN_OR_RETURN(const double link, SlowestLink(job, measured, stopped));
  std::map<std::pair<uint64_t, uint64_t>, double> simulated;  // by partition and credit
  std::vector<double> predicted;
  for (const SchedulePoint& point : points) {
    if (stopped()) return absl::CancelledError("the prediction was stopped");
    const SchedulePoint stand_in = Simulated(job, point);
    const auto [found, fresh] =
        simulated.try_emplace({stand_in.partition_bytes, stand_in.credit_bytes}, 0.0);
    if (fresh) {
      ASSIGN_OR_RETURN(found->second, SecondsAt(job, stand_in, link));
    }
    const double messages =
        static_cast<double>(MessagesOf(job, point)) * kUsualHosts.message_seconds;
    predicted.push_back(std::max(found->second, messages));
  }
  return predicted;
}

}  // namespace tug
