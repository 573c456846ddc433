#ifndef TUG_METRICS_METRICS_ENDPOINT_H_
#define TUG_METRICS_METRICS_ENDPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/http_server.h"
#include "metrics/metric_row.h"
#include "proto/control.pb.h"

namespace tug {

// Where a process answers GET /metrics for Prometheus: what `add` says of it, and what the kernel
// does (process_metrics.h). Whoever can connect may read it; on loopback, who asks by a name that
// means this host.
//
//   ASSIGN_OR_RETURN(auto endpoint, OpenMetrics("127.0.0.1", 0, labels, [&](MetricsText& text) {
//     text.Add(WorkerMetrics(), figures());
//   }));
//   endpoint->Start();
//
// `host`: a numeric address; `port`: 0 for any free one, and any free one too where it is in use:
// several processes of a host have the same job, and are found by /targets. `add`: called from the
// server's threads, several at once, until the result is destroyed. Errors: as HttpServer::Listen.
absl::StatusOr<std::unique_ptr<HttpServer>> OpenMetrics(const std::string& host, uint16_t port,
                                                        const MetricLabels& labels,
                                                        std::function<void(MetricsText&)> add);

// Whose metrics are where, for http_sd_configs of Prometheus: the coordinator at `coordinator`, and
// the nodes that say where they answer, with labels job, role and rank. JSON:
// https://prometheus.io/docs/prometheus/latest/http_sd/
std::string TargetsJson(const std::string& coordinator, const StatusReply& status);

}  // namespace tug

#endif  // TUG_METRICS_METRICS_ENDPOINT_H_
