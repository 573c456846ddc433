// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu/cpu_affinity.h"
#include "base/files/file_limit.h"
#include "base/log.h"
#include "base/memory/large_blocks.h"
#include "base/memory/process_memory.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "control/control_client.h"
#include "control/heartbeat_loop.h"
#include "control/join_job.h"
#include "control/trace_messages.h"
#include "metrics/metrics_endpoint.h"
#include "metrics/server_metrics.h"
#include "proto/process_name.h"
#include "security/security_rules.h"
#include "server/lane.h"
#include "server/lane_report.h"
#include "server/segments/memory.h"

namespace tug {
namespace {

std::vector<LaneCores> CoresOf(const ClusterConfig& cluster) {
  if (!cluster.pin_threads()) return {};
  return PlanServer(ReadCpuBudget(), static_cast<int>(cluster.lanes_per_server()));
}

std::vector<LaneReport> ReportsOf(const std::vector<std::unique_ptr<LaneThread>>& lanes) {
  std::vector<LaneReport> reports;
  reports.reserve(lanes.size());
  for (const std::unique_ptr<LaneThread>& lane : lanes) reports.push_back(lane->report());
  return reports;
}

ServerFigures FiguresOf(std::vector<LaneReport> reports) {
  ServerFigures figures;
  for (LaneReport& report : reports) figures.lanes.push_back(std::move(report.figures));
  return figures;
}

// Host of an endpoint such as "tcp://10.0.0.2:40001".
absl::StatusOr<std::string> HostOf(const std::string& lane_endpoint) {
  constexpr size_t kScheme = sizeof("tcp://") - 1;
  ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(lane_endpoint.substr(kScheme)));
  return at.host;
}

// A server that has joined a job: its lanes, and its side of the control service.
class Server {
 public:
  Server(const ServerOptions& options, const RegisterReply& registered)
      : options_(options),
        name_(registered.name()),
        job_{.job = registered.job(),
             .server_node_id = registered.node_id(),
             .config = registered.config(),
             .run_dir = registered.run_dir(),
             .cores = CoresOf(registered.config().cluster()),
             .keys = options.keys} {}

  // Binds the lanes; `request` announces their addresses.
  absl::Status BindLanes(RegisterRequest& request) {
    for (uint32_t i = 0; i < job_.config.cluster().lanes_per_server(); ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<LaneThread> lane,
                       LaneThread::Bind(job_, i, options_.listen_host));
      request.add_lane_endpoints(lane->endpoint());
      lanes_.push_back(std::move(lane));
    }
    return absl::OkStatus();
  }

  // With watch.metrics.
  absl::Status StartMetrics() {
    if (!job_.config.watch().metrics()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string host, HostOf(lanes_.front()->endpoint()));
    ASSIGN_OR_RETURN(
        metrics_, OpenMetrics(host, static_cast<uint16_t>(job_.config.watch().metrics_port()),
                              {job_.config.name(), kServerRole, name_}, [this](MetricsText& text) {
                                ServerFigures figures = FiguresOf(ReportsOf(lanes_));
                                figures.predicted_held_bytes = predicted_held_bytes_;
                                text.Add(ServerMetrics(), figures);
                              }));
    metrics_->Start();
    return absl::OkStatus();
  }

  HeartbeatCallbacks Callbacks() {
    HeartbeatCallbacks callbacks;
    callbacks.report = [this](HeartbeatRequest& beat) { Report(beat); };
    callbacks.on_view = [this](const View& view) -> absl::Status {
      RETURN_IF_ERROR(AdoptPlacement(view));
      for (const std::unique_ptr<LaneThread>& lane : lanes_) lane->SetView(view);
      return absl::OkStatus();
    };
    callbacks.on_reply = [this](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
      if (reply.next_view().lanes_size() > 0) placed_.Update(AdoptPlacement(reply.next_view()));
      if (!placed_.ok()) return;
      for (const std::unique_ptr<LaneThread>& lane : lanes_) lane->OnReply(reply, sent);
    };
    callbacks.failure = [this] { return placed_.ok() ? FirstFailure(ReportsOf(lanes_)) : placed_; };
    callbacks.trace = [this] { return trace_.has_value() ? &*trace_ : nullptr; };
    if (options_.leave != nullptr) callbacks.leaving = [this] { return options_.leave->asked(); };
    return callbacks;
  }

 private:
  void Report(HeartbeatRequest& beat) {
    const std::vector<LaneReport> reports = ReportsOf(lanes_);
    AddReports(reports, time_.Now(), beat);
    beat.mutable_counters()->set_peak_memory_bytes(memory_.Sample(SharedBytes(reports)));
    beat.mutable_counters()->set_predicted_memory_bytes(predicted_bytes_);
    beat.mutable_counters()->set_predicted_held_bytes(predicted_held_bytes_);
    if (metrics_ != nullptr) beat.set_metrics_endpoint(metrics_->address());
  }

  // `view`: the current view, or the next one while it is prepared, with its lanes.
  absl::Status AdoptPlacement(const View& view) {
    if (job_.table.size() == 0) {  // the first view; blocks never change
      ASSIGN_OR_RETURN(job_.table,
                       SegmentTable::Create(view.blocks(), job_.config.comm().segment_elements()));
      if (job_.config.trace().steps() > 0) {
        trace_.emplace(RecordedClocks(job_.config.trace(), view.start_version()), time_);
        job_.trace = &*trace_;
      }
    }
    predicted_bytes_ = PredictServerBytes(job_.config, job_.table, view, job_.server_node_id);
    predicted_held_bytes_ =
        PredictServerHeld(job_.config, job_.table, view, job_.server_node_id).total();
    return absl::OkStatus();
  }

  const ServerOptions& options_;
  const std::string name_;  // "server-1"
  LaneJob job_;
  const RealTime time_;
  std::optional<Trace> trace_;  // created with the first view; outlives the lanes
  std::vector<std::unique_ptr<LaneThread>> lanes_;
  PeakMemory memory_;
  uint64_t predicted_bytes_ = 0;
  std::atomic<uint64_t> predicted_held_bytes_ = 0;
  absl::Status placed_;
  std::unique_ptr<HttpServer> metrics_;  // destroyed before what it reads
};

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  KeepLargeBlocksMapped();
  RETURN_IF_ERROR(RaiseFileLimit());
  // The job's mode is that of its members' keys. Checked before joining: the coordinator would
  // count a node that fails later as lost.
  RETURN_IF_ERROR(CheckMayListen(options.keys.mode, options.listen_host));
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(options.coordinator, kJoinTimeout, options.keys));
  RegisterRequest request = ThisProcess(SERVER);
  request.set_spare(options.spare);
  if (options.index.has_value()) request.set_index(*options.index);
  ASSIGN_OR_RETURN(std::optional<RegisterReply> joined, JoinJob(*client, request));
  if (!joined.has_value()) return absl::OkStatus();
  SetLogProcess(joined->name());
  Server server(options, *joined);
  RETURN_IF_ERROR(server.BindLanes(request));
  ASSIGN_OR_RETURN(joined, JoinJob(*client, request));
  if (!joined.has_value()) return absl::OkStatus();
  ArmLeaveSignal(options.leave, joined->config());
  RETURN_IF_ERROR(server.StartMetrics());
  return BeatUntilEnd(*client, *joined, server.Callbacks());
}

}  // namespace tug
