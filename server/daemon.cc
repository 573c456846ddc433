#include "server/daemon.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_affinity.h"
#include "base/file_limit.h"
#include "base/large_blocks.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "metrics/metrics_endpoint.h"
#include "metrics/server_metrics.h"
#include "proto/control_client.h"
#include "proto/heartbeat_loop.h"
#include "proto/join_job.h"
#include "proto/sync_mode.h"
#include "proto/trace_messages.h"
#include "security/security_rules.h"
#include "server/lane.h"
#include "server/lane_report.h"
#include "server/memory.h"

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

// Of "tcp://10.0.0.2:40001".
absl::StatusOr<std::string> HostOf(const std::string& lane_endpoint) {
  constexpr size_t kScheme = sizeof("tcp://") - 1;
  ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(lane_endpoint.substr(kScheme)));
  return at.host;
}

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  KeepLargeBlocksMapped();
  RETURN_IF_ERROR(RaiseFileLimit());
  // A job is of the mode of its members' keys. Before it has joined: it would be missed.
  RETURN_IF_ERROR(CheckMayListen(options.keys.mode, options.listen_host));
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(options.coordinator, kJoinTimeout, options.keys));
  RegisterRequest request = ThisProcess(SERVER);
  request.set_spare(options.spare);
  ASSIGN_OR_RETURN(std::optional<RegisterReply> joined, JoinJob(*client, request));
  if (!joined.has_value()) return absl::OkStatus();
  RegisterReply& registered = *joined;
  SetLogProcess("server", registered.node_id());
  LaneJob job{.job = registered.job(),
              .server_node_id = registered.node_id(),
              .config = registered.config(),
              .run_dir = registered.run_dir(),
              .cores = CoresOf(registered.config().cluster()),
              .keys = options.keys};

  const RealTime time;
  std::optional<Trace> trace;  // with the view; outlives the lanes
  std::vector<std::unique_ptr<LaneThread>> lanes;
  for (uint32_t i = 0; i < job.config.cluster().lanes_per_server(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<LaneThread> lane,
                     LaneThread::Bind(job, i, options.listen_host));
    request.add_lane_endpoints(lane->endpoint());
    lanes.push_back(std::move(lane));
  }
  ASSIGN_OR_RETURN(joined, JoinJob(*client, request));
  if (!joined.has_value()) return absl::OkStatus();
  if (options.leave != nullptr) {
    options.leave->Arm(GoesOnWithoutANode(job.config) ? LeaveSignal::Rule::kLeave
                                                      : LeaveSignal::Rule::kAwaitEnd);
  }

  PeakMemory memory;
  uint64_t predicted_bytes = 0;
  std::atomic<uint64_t> predicted_held_bytes = 0;
  std::unique_ptr<HttpServer> metrics;  // after what it reads
  if (job.config.watch().metrics()) {
    ASSIGN_OR_RETURN(const std::string host, HostOf(lanes.front()->endpoint()));
    ASSIGN_OR_RETURN(
        metrics,
        OpenMetrics(host, static_cast<uint16_t>(job.config.watch().metrics_port()),
                    {job.config.name(), "server", registered.node_id()}, [&](MetricsText& text) {
                      ServerFigures figures = FiguresOf(ReportsOf(lanes));
                      figures.predicted_held_bytes = predicted_held_bytes;
                      text.Add(ServerMetrics(), figures);
                    }));
    metrics->Start();
  }
  HeartbeatCallbacks callbacks;
  callbacks.report = [&](HeartbeatRequest& beat) {
    const std::vector<LaneReport> reports = ReportsOf(lanes);
    AddReports(reports, time.Now(), beat);
    beat.mutable_counters()->set_peak_memory_bytes(memory.Sample(SharedBytes(reports)));
    beat.mutable_counters()->set_predicted_memory_bytes(predicted_bytes);
    beat.mutable_counters()->set_predicted_held_bytes(predicted_held_bytes);
    if (metrics != nullptr) beat.set_metrics_endpoint(metrics->address());
  };
  // Of a view, or of one that is being prepared, with its lanes.
  const auto take_placement = [&](const View& view) -> absl::Status {
    if (job.table.size() == 0) {  // the first one: what is exchanged stays the same
      ASSIGN_OR_RETURN(job.table,
                       SegmentTable::Create(view.blocks(), job.config.comm().segment_elements()));
      if (job.config.trace().steps() > 0) {
        trace.emplace(RecordedClocks(job.config.trace(), view.start_version()), time);
        job.trace = &*trace;
      }
    }
    predicted_bytes = PredictServerBytes(job.config, job.table, view, job.server_node_id);
    predicted_held_bytes =
        PredictServerHeld(job.config, job.table, view, job.server_node_id).total();
    return absl::OkStatus();
  };
  callbacks.on_view = [&](const View& view) -> absl::Status {
    RETURN_IF_ERROR(take_placement(view));
    for (const std::unique_ptr<LaneThread>& lane : lanes) lane->SetView(view);
    return absl::OkStatus();
  };
  absl::Status placed;
  callbacks.on_reply = [&](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    if (reply.next_view().lanes_size() > 0) {
      placed.Update(take_placement(reply.next_view()));
    }
    if (!placed.ok()) return;
    for (const std::unique_ptr<LaneThread>& lane : lanes) lane->OnReply(reply, sent);
  };
  callbacks.failure = [&] { return placed.ok() ? FirstFailure(ReportsOf(lanes)) : placed; };
  callbacks.trace = [&] { return trace.has_value() ? &*trace : nullptr; };
  if (options.leave != nullptr) callbacks.leaving = [&] { return options.leave->asked(); };
  return BeatUntilEnd(*client, registered, callbacks);
}

}  // namespace tug
