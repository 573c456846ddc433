#ifndef TUG_METRICS_METRIC_ROW_H_
#define TUG_METRICS_METRIC_ROW_H_

// What Prometheus is told of a process, as tables: a metric is one row of one of them
// (process_metrics.h, worker_metrics.h, server_metrics.h, coordinator_metrics.h):
//
//   {"tug_push_bytes_total", MetricType::kCounter, "bytes", "", "Payloads pushed, repeats
//   included",
//    Field<&WorkerFigures::pushed_bytes>},
//
// To add one: a row, the figure it reads if that is new, a line of docs/metrics.md (a test says
// which). Names are those of Prometheus' conventions: "tug_", base units, "_total" for counters.
// Rows of several tables may have one name; then type, unit, label and help are the same.
//
// Nothing is kept for a metric beside what the process counts anyway: figures are read when
// somebody asks, so counting costs no more than before, and takes no lock of a hot path.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace tug {

enum class MetricType { kCounter, kGauge, kHistogram };

// How many values there were up to each bound, those up to smaller ones left out; one count more
// than bounds, of what is larger.
struct HistogramFigures {
  std::span<const double> bounds;  // ascending; of static storage
  std::vector<uint64_t> counts;
  double sum = 0;
};

// The values of one metric of one process, as they are read.
class MetricSamples {
 public:
  // REQUIRES: `family` outlives it. `label`: the metric's own; may be empty.
  MetricSamples(prometheus::MetricFamily& family, const std::string& label,
                std::span<const prometheus::ClientMetric::Label> labels)
      : family_(family), label_(label), labels_(labels) {}

  void Add(double value) { Add("", value); }
  // One of several, told apart by the metric's label.
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
  const char* unit;   // "seconds", "bytes", "ratio"; what is counted, where there is none
  const char* label;  // told apart by this, beside job, role and rank; may be empty
  const char* help;
  // Adds nothing where there is nothing to say.
  void (*read)(const Figures& figures, MetricSamples& samples);
};

// Reads a number or histogram as it stands in the figures.
template <auto member, typename Figures>
void Field(const Figures& figures, MetricSamples& samples) {
  if constexpr (requires { (figures.*member).bounds; }) {
    samples.Add(figures.*member);
  } else {
    samples.Add(static_cast<double>(figures.*member));
  }
}

// Which process it is.
struct MetricLabels {
  std::string job;    // JobConfig.name
  std::string role;   // "coordinator", "server", "worker"
  uint32_t rank = 0;  // its node id, as `tug status` has it; 0: the coordinator
};

// What a process answers, in Prometheus' text format, made of one or more tables. Not thread-safe.
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
