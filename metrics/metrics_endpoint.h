// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_METRICS_ENDPOINT_H_
#define TUG_METRICS_METRICS_ENDPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/net/http_server.h"
#include "metrics/metric_row.h"
#include "proto/control.pb.h"

namespace tug {

// Opens GET /metrics for Prometheus: what `add` adds, and the kernel's figures of the process
// (process_metrics.h). Any client that can connect may read it; on loopback, only a request that
// names this host.
//
//   ASSIGN_OR_RETURN(auto endpoint, OpenMetrics("127.0.0.1", 0, labels, [&](MetricsText& text) {
//     text.Add(WorkerMetrics(), figures());
//   }));
//   endpoint->Start();
//
// `host`: a numeric address. `port`: 0 for any free one. If it is in use, any free port is taken
// instead: several processes on a host run the same job, and /targets lists their ports. `add`:
// called from the server's threads, concurrently, until the result is destroyed. Errors: as
// HttpServer::Listen.
absl::StatusOr<std::unique_ptr<HttpServer>> OpenMetrics(const std::string& host, uint16_t port,
                                                        const MetricLabels& labels,
                                                        std::function<void(MetricsText&)> add);

// Targets for http_sd_configs of Prometheus, with labels job, role and rank: the coordinator at
// `coordinator`, and the nodes that report a metrics endpoint. JSON:
// https://prometheus.io/docs/prometheus/latest/http_sd/
std::string TargetsJson(const std::string& coordinator, const StatusReply& status);

}  // namespace tug

#endif  // TUG_METRICS_METRICS_ENDPOINT_H_
