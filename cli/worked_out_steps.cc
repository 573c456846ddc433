#include "cli/worked_out_steps.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cli/experiment_job.h"
#include "simulate/scheduling.h"
#include "simulate/step_prediction.h"

namespace tug {
namespace {

Timeline AsTimeline(const SchedulingPrediction& prediction) {
  Timeline timeline{.seconds = prediction.step_seconds};
  for (const SimulatedSpan& span : prediction.spans) {
    TimelineSpan::Row row = TimelineSpan::Row::kForward;
    switch (span.kind) {
      case SimulatedSpan::Kind::kForward:
        row = TimelineSpan::Row::kForward;
        break;
      case SimulatedSpan::Kind::kBackward:
        row = TimelineSpan::Row::kBackward;
        break;
      case SimulatedSpan::Kind::kPush:
        row = TimelineSpan::Row::kPush;
        break;
      case SimulatedSpan::Kind::kPull:
        row = TimelineSpan::Row::kPull;
        break;
    }
    timeline.spans.push_back({row, span.block, span.begin_seconds, span.end_seconds});
  }
  return timeline;
}

// The bound's schedule is of one direction of the busiest link. In the other as many bytes cross,
// and in the fluid schedule at the same time: a gradient is pulled as weights the moment it is
// pushed.
Timeline BothWays(Timeline timeline) {
  using Row = TimelineSpan::Row;
  const std::vector<TimelineSpan> one_way = timeline.spans;
  for (const auto& [from, to] : {std::pair{Row::kPush, Row::kPull}, {Row::kPull, Row::kPush}}) {
    for (TimelineSpan span : one_way) {
      if (span.row != from) continue;
      span.row = to;
      timeline.spans.push_back(span);
    }
  }
  return timeline;
}

}  // namespace

absl::Status WorkOutSteps(const std::string& run_dir, double link_bytes_per_second,
                          SchedulingCase& c, PolicyResult& policy) {
  ASSIGN_OR_RETURN(JobConfig config, ReadRunConfig(run_dir));
  ASSIGN_OR_RETURN(const SchedulingPrediction bound, FluidBound(config, link_bytes_per_second));
  c.bound = WorkedOutStep{bound.step_seconds, bound.exposed_seconds, BothWays(AsTimeline(bound))};
  if (policy.policy == kAutoPolicy) {
    if (!policy.tuned.has_value()) return absl::OkStatus();
    config = WithSchedule(config, {policy.tuned->partition_bytes, policy.tuned->credit_bytes});
  }
  ASSIGN_OR_RETURN(const SchedulingPrediction predicted,
                   PredictScheduling(config, TestbedHosts(link_bytes_per_second)));
  policy.predicted = WorkedOutStep{predicted.step_seconds, predicted.exposed_seconds, {}};
  return absl::OkStatus();
}

}  // namespace tug
