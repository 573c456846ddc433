// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_METRIC_ROW_H_
#define TUG_METRICS_METRIC_ROW_H_

// Metrics that a process exports to Prometheus, as tables: a metric is one row of a table
// (process_metrics.h, worker_metrics.h, server_metrics.h, coordinator_metrics.h):
//
//   {"tug_push_bytes_total", MetricType::kCounter, "bytes", "",
//    "Payload bytes pushed, including resent ones",
//    Field<&WorkerFigures::pushed_bytes>},
//
// To add a metric, add a row, the figure it reads if that is new, and a line of docs/metrics.md
// (metrics_test.cc prints the expected table). Names follow Prometheus' conventions: "tug_", base
// units, "_total" for counters. Several tables may have a row of the same name; type, unit, label
// and help must then be equal.
//
// A metric keeps no state of its own: figures the process counts anyway are read when Prometheus
// scrapes. Counting costs no more than before and takes no lock of a hot path.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace tug {

enum class MetricType { kCounter, kGauge, kHistogram };

// A histogram, not cumulative: counts[i] is the number of values above bounds[i - 1] and up to
// bounds[i]. The last count, one more than there are bounds, is of larger values.
struct HistogramFigures {
  std::span<const double> bounds;  // ascending; static storage
  std::vector<uint64_t> counts;
  double sum = 0;
};

// Collects the values of one metric of one process.
class MetricSamples {
 public:
  // REQUIRES: `family` and `label` outlive this object. `label`: the metric's own label, or empty.
  MetricSamples(prometheus::MetricFamily& family, const std::string& label,
                std::span<const prometheus::ClientMetric::Label> labels)
      : family_(family), label_(label), labels_(labels) {}

  void Add(double value) { Add("", value); }
  // Adds one of several values; `of` is the value of the metric's label.
  void Add(const std::string& of, double value);
  void Add(const HistogramFigures& figures);

 private:
  prometheus::ClientMetric& New(const std::string& of);

  prometheus::MetricFamily& family_;
  const std::string& label_;
  std::span<const prometheus::ClientMetric::Label> labels_;
};

template <typename Figures>
struct MetricRow {
  const char* name;
  MetricType type;
  const char* unit;   // "seconds", "bytes", "ratio"; for plain counts, the noun counted
  const char* label;  // label in addition to job, role and process; may be empty
  const char* help;
  // Reads the values. Adds none if the metric is not available.
  void (*read)(const Figures& figures, MetricSamples& samples);
};

// Reads a number or histogram member of the figures unchanged.
template <auto member, typename Figures>
void Field(const Figures& figures, MetricSamples& samples) {
  if constexpr (requires { (figures.*member).bounds; }) {
    samples.Add(figures.*member);
  } else {
    samples.Add(static_cast<double>(figures.*member));
  }
}

// Identifies the process.
struct MetricLabels {
  std::string job;      // JobConfig.name
  std::string role;     // "coordinator", "server", "worker"
  std::string process;  // its name: "coordinator", "server-1" (proto/process_name.h)
};

// Text of GET /metrics in Prometheus' format, built from one or more tables. Not thread-safe.
class MetricsText {
 public:
  explicit MetricsText(const MetricLabels& labels);

  template <typename Figures>
  void Add(std::span<const MetricRow<Figures>> rows, const Figures& figures) {
    for (const MetricRow<Figures>& row : rows) {
      prometheus::MetricFamily family = NewFamily(row.name, row.type, row.help);
      const std::string label = row.label;
      MetricSamples samples(family, label, labels_);
      row.read(figures, samples);
      if (!family.metric.empty()) families_.push_back(std::move(family));
    }
  }

  std::string Text() const;

 private:
  static prometheus::MetricFamily NewFamily(const char* name, MetricType type, const char* help);

  const std::vector<prometheus::ClientMetric::Label> labels_;
  std::vector<prometheus::MetricFamily> families_;
};

// "counter", "gauge", "histogram".
const char* MetricTypeName(MetricType type);

}  // namespace tug

#endif  // TUG_METRICS_METRIC_ROW_H_
