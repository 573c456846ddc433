// SPDX-License-Identifier: Apache-2.0
#include "metrics/metric_row.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "prometheus/text_serializer.h"

namespace tug {
namespace {

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    default:
      return prometheus::MetricType::Histogram;
  }
}

}  // namespace

const char* MetricTypeName(MetricType type) {
  constexpr const char* kNames[] = {"counter", "gauge", "histogram"};
  return kNames[static_cast<size_t>(type)];
}

prometheus::ClientMetric& MetricSamples::New(const std::string& of) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  metric.label.assign(labels_.begin(), labels_.end());
  if (!label_.empty() && !of.empty()) metric.label.push_back({label_, of});
  return metric;
}

void MetricSamples::Add(const std::string& of, double value) {
  prometheus::ClientMetric& metric = New(of);
  if (family_.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void MetricSamples::Add(const HistogramFigures& figures) {
  prometheus::ClientMetric::Histogram& histogram = New("").histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < figures.counts.size(); ++i) {
    count += figures.counts[i];
    const double bound =
        i < figures.bounds.size() ? figures.bounds[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({.cumulative_count = count, .upper_bound = bound});
  }
  histogram.sample_count = count;
  histogram.sample_sum = figures.sum;
}

MetricsText::MetricsText(const MetricLabels& labels)
    : labels_{{"job", labels.job}, {"role", labels.role}, {"process", labels.process}} {}

prometheus::MetricFamily MetricsText::NewFamily(const char* name, MetricType type,
                                                const char* help) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = TypeOf(type);
  return family;
}

std::string MetricsText::Text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace tug
