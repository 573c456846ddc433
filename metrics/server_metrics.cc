// SPDX-License-Identifier: Apache-2.0
#include "metrics/server_metrics.h"

#include <algorithm>
#include <array>
#include <string>

#include "metrics/shared_rows.h"

namespace tug {
namespace {

using F = ServerFigures;
using S = MetricSamples;
using shared_rows::Row;

// Adds a number for each lane.
template <auto member>
void OfLanes(const F& figures, S& samples) {
  for (size_t lane = 0; lane < figures.lanes.size(); ++lane) {
    samples.Add(std::to_string(lane), static_cast<double>(figures.lanes[lane].*member));
  }
}

template <auto member>
double Sum(const F& figures) {
  double sum = 0;
  for (const LaneFigures& lane : figures.lanes) sum += static_cast<double>(lane.*member);
  return sum;
}

constexpr std::array<double, 10> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 64, 128, 254};

// The value 255 stands for 255 or more; it adds 255 to the sum.
HistogramFigures StalenessOf(const F& figures) {
  HistogramFigures histogram{.bounds = kStalenessBounds};
  histogram.counts.resize(kStalenessBounds.size() + 1);
  for (const LaneFigures& lane : figures.lanes) {
    for (size_t staleness = 0; staleness < lane.staleness.size(); ++staleness) {
      const auto value = static_cast<double>(staleness);
      const auto* const bound =
          std::lower_bound(kStalenessBounds.begin(), kStalenessBounds.end(), value);
      histogram.counts[static_cast<size_t>(bound - kStalenessBounds.begin())] +=
          lane.staleness[staleness];
      histogram.sum += value * static_cast<double>(lane.staleness[staleness]);
    }
  }
  return histogram;
}

constexpr MetricRow<F> kRows[] = {
    {"tug_lane_sum_seconds_total", MetricType::kCounter, "seconds", "lane",
     "Time spent decoding and summing pushes", OfLanes<&LaneFigures::sum_seconds>},
    {"tug_lane_optimizer_seconds_total", MetricType::kCounter, "seconds", "lane",
     "Time spent updating weights", OfLanes<&LaneFigures::optimizer_seconds>},
    {"tug_lane_serve_seconds_total", MetricType::kCounter, "seconds", "lane",
     "Time spent answering pulls", OfLanes<&LaneFigures::serve_seconds>},
    {"tug_lane_cpu_seconds_total", MetricType::kCounter, "seconds", "lane",
     "CPU time of the lane's thread, including receiving messages and polling for them",
     OfLanes<&LaneFigures::cpu_seconds>},
    {"tug_updates_total", MetricType::kCounter, "updates", "lane", "Segment updates applied",
     OfLanes<&LaneFigures::updates>},
    {"tug_staleness_updates", MetricType::kHistogram, "updates", "",
     "Staleness of segment updates; 255 means 255 or more",
     [](const F& f, S& s) { s.Add(StalenessOf(f)); }},
    {"tug_messages_repeated_total", MetricType::kCounter, "messages", "lane",
     "Duplicate messages received by a lane", OfLanes<&LaneFigures::repeated_messages>},
    Row<F>(shared_rows::kWaitingBytes, OfLanes<&LaneFigures::waiting_bytes>),
    Row<F>(shared_rows::kOutstandingBytes, OfLanes<&LaneFigures::outstanding_bytes>),
    Row<F>(shared_rows::kPeakOutstandingBytes, OfLanes<&LaneFigures::most_outstanding_bytes>),
    Row<F>(shared_rows::kSocketBytes, OfLanes<&LaneFigures::socket_bytes>),
    Row<F>(shared_rows::kSentBytes, OfLanes<&LaneFigures::sent_bytes>),
    Row<F>(shared_rows::kReceivedBytes, OfLanes<&LaneFigures::received_bytes>),
    Row<F>(shared_rows::kDroppedMessages, OfLanes<&LaneFigures::messages_dropped>),
    Row<F>(shared_rows::kRefusedMessages, OfLanes<&LaneFigures::messages_refused>),
    Row<F>(shared_rows::kDroppedPushes, OfLanes<&LaneFigures::dropped_pushes>),
    Row<F>(shared_rows::kDeferredPushes, OfLanes<&LaneFigures::deferred_pushes>),
    Row<F>(shared_rows::kHeldBytes,
           [](const F& f, S& s) {
             s.Add("weights", Sum<&LaneFigures::weight_bytes>(f));
             s.Add("optimizer", Sum<&LaneFigures::optimizer_bytes>(f));
             s.Add("sums", Sum<&LaneFigures::sum_bytes>(f));
             s.Add("cached", Sum<&LaneFigures::cached_bytes>(f));
             s.Add("shared", Sum<&LaneFigures::shared_bytes>(f));
           }),
    Row<F>(shared_rows::kPredictedHeldBytes, Field<&F::predicted_held_bytes>),
};

}  // namespace

std::span<const MetricRow<ServerFigures>> ServerMetrics() { return kRows; }

}  // namespace tug
