// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "metrics/process_metrics.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"
#include "security/security_rules.h"

namespace tug {
namespace {

using Json = nlohmann::ordered_json;

Json Target(const std::string& address, const MetricLabels& labels) {
  return {{"targets", {address}},
          {"labels", {{"job", labels.job}, {"role", labels.role}, {"process", labels.process}}}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> OpenMetrics(const std::string& host, uint16_t port,
                                                        const MetricLabels& labels,
                                                        std::function<void(MetricsText&)> add) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen(host, port);
  if (absl::IsUnavailable(server.status()) && port != 0) server = HttpServer::Listen(host, 0);
  if (!server.ok()) {
    return absl::Status(
        server.status().code(),
        absl::StrCat(server.status().message(), "; set watch.metrics=false to run without it"));
  }
  if (IsLoopback(host)) (*server)->AnswerToLoopbackNamesOnly();
  (*server)->Add("/metrics", [labels, add = std::move(add)]() -> absl::StatusOr<HttpReply> {
    MetricsText text(labels);
    add(text);
    text.Add(ProcessMetrics(), ReadProcessFigures());
    return HttpReply{.type = "text/plain; version=0.0.4; charset=utf-8", .body = text.Text()};
  });
  return server;
}

std::string TargetsJson(const std::string& coordinator, const StatusReply& status) {
  Json targets = Json::array();
  targets.push_back(
      Target(coordinator,
             {.job = status.name(), .role = kCoordinatorProcess, .process = kCoordinatorProcess}));
  for (const NodeStatus& node : status.nodes()) {
    if (node.metrics_endpoint().empty()) continue;
    targets.push_back(
        Target(node.metrics_endpoint(),
               {.job = status.name(), .role = KindName(node.kind()), .process = node.name()}));
  }
  return targets.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tug
