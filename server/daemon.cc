#include "server/daemon.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
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
#include "server/memory.h"

namespace tug {
namespace {

// What the first view adds to what a server knows since it joined.
absl::Status TakeBlocks(const View& view, LaneJob& job) {
  ASSIGN_OR_RETURN(job.table,
                   SegmentTable::Create(view.blocks(), job.config.comm().segment_elements()));
  job.blocks = view.blocks();
  return absl::OkStatus();
}

std::vector<LaneCores> CoresOf(const ClusterConfig& cluster) {
  if (!cluster.pin_threads()) return {};
  return PlanServer(ReadCpuBudget(), static_cast<int>(cluster.lanes_per_server()));
}

// Up to the last entry that is not 0.
void AddStaleness(std::span<const uint64_t> staleness, NodeCounters& counters) {
  size_t entries = staleness.size();
  while (entries > 0 && staleness[entries - 1] == 0) --entries;
  while (counters.staleness_size() < static_cast<int>(entries)) counters.add_staleness(0);
  for (size_t t = 0; t < entries; ++t) {
    const auto i = static_cast<int>(t);
    counters.set_staleness(i, counters.staleness(i) + staleness[t]);
  }
}

using LaneReports = std::vector<LaneThread::Report>;

LaneReports ReportsOf(const std::vector<std::unique_ptr<LaneThread>>& lanes) {
  LaneReports reports;
  reports.reserve(lanes.size());
  for (const std::unique_ptr<LaneThread>& lane : lanes) reports.push_back(lane->report());
  return reports;
}

// The least of all lanes, once all have them of the same view.
void AddClocks(const LaneReports& reports, HeartbeatRequest& request) {
  std::vector<uint64_t> least;
  uint32_t view = 0;
  for (const LaneThread::Report& report : reports) {
    if (report.clocks.empty() || (view != 0 && report.clocks_of_view != view)) return;
    view = report.clocks_of_view;
    if (least.empty()) least = report.clocks;
    for (size_t vw = 0; vw < least.size(); ++vw) least[vw] = std::min(least[vw], report.clocks[vw]);
  }
  request.mutable_clocks()->Assign(least.begin(), least.end());
  request.set_clocks_of_view(view);
}

// Of all lanes: the one that has waited longest, or else one that updates.
NodeActivity ActivityOf(const LaneReports& reports, absl::Time now) {
  using Doing = ShardActivity::Doing;
  NodeActivity told;
  told.set_doing(NodeActivity::RESTING);
  for (const LaneThread::Report& report : reports) {
    const ShardActivity& activity = report.activity;
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - report.active_since));
    const bool waits = activity.doing == Doing::kWaiting;
    if (activity.doing == Doing::kResting) continue;
    if (told.doing() == NodeActivity::WAITING_FOR_SUM && (!waits || told.seconds() >= seconds)) {
      continue;
    }
    told.set_doing(waits ? NodeActivity::WAITING_FOR_SUM : NodeActivity::UPDATING);
    told.set_block(activity.block);
    told.set_clock(activity.clock);
    told.set_seconds(seconds);
    told.mutable_late()->Assign(activity.late.begin(), activity.late.end());
  }
  return told;
}

// All lanes' reports in one heartbeat.
void AddReports(const LaneReports& reports, PeakMemory& memory, HeartbeatRequest& request) {
  bool ready = true;
  uint32_t copied_placement = std::numeric_limits<uint32_t>::max();
  uint32_t schedule = std::numeric_limits<uint32_t>::max();
  uint64_t shared_bytes = 0;
  NodeCounters& counters = *request.mutable_counters();
  for (const LaneThread::Report& report : reports) {
    const LaneFigures& figures = report.figures;
    ready = ready && report.ready;
    schedule = std::min(schedule, report.schedule);
    copied_placement = std::min(copied_placement, report.copied_placement);
    for (const CheckpointPart& part : report.parts) *request.add_parts() = part;
    for (const ShardNotice& notice : report.notices) {
      Notice* added = request.add_notices();
      added->set_key(notice.key);
      added->set_text(notice.text);
    }
    counters.set_messages_dropped(counters.messages_dropped() + figures.messages_dropped);
    counters.set_messages_refused(counters.messages_refused() + figures.messages_refused);
    counters.set_most_outstanding_bytes(
        std::max(counters.most_outstanding_bytes(), figures.most_outstanding_bytes));
    shared_bytes += figures.shared_bytes;
    counters.set_socket_bytes(counters.socket_bytes() + figures.socket_bytes);
    counters.set_updates(counters.updates() + figures.updates);
    counters.set_dropped_pushes(counters.dropped_pushes() + figures.dropped_pushes);
    counters.set_decode_seconds(counters.decode_seconds() + figures.sum_seconds);
    counters.set_weight_bytes(counters.weight_bytes() + figures.weight_bytes);
    counters.set_optimizer_bytes(counters.optimizer_bytes() + figures.optimizer_bytes);
    counters.set_sum_bytes(counters.sum_bytes() + figures.sum_bytes);
    counters.set_cached_bytes(counters.cached_bytes() + figures.cached_bytes);
    AddStaleness(figures.staleness, counters);
  }
  AddClocks(reports, request);
  request.set_ready(ready);
  request.set_schedule(schedule);
  request.set_copied_placement(copied_placement);
  counters.set_peak_memory_bytes(memory.Sample(shared_bytes));
}

absl::Status FirstFailure(const LaneReports& reports) {
  for (const LaneThread::Report& report : reports) {
    if (!report.failure.ok()) return report.failure;
  }
  return absl::OkStatus();
}

ServerFigures FiguresOf(LaneReports reports) {
  ServerFigures figures;
  for (LaneThread::Report& report : reports) figures.lanes.push_back(std::move(report.figures));
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
  LaneJob job{registered.job(),
              registered.node_id(),
              registered.config(),
              BlockTable(),
              registered.run_dir(),
              SegmentTable(),
              CoresOf(registered.config().cluster())};

  job.keys = options.keys;

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
    const LaneReports reports = ReportsOf(lanes);
    AddReports(reports, memory, beat);
    *beat.mutable_activity() = ActivityOf(reports, time.Now());
    beat.mutable_counters()->set_predicted_memory_bytes(predicted_bytes);
    beat.mutable_counters()->set_predicted_held_bytes(predicted_held_bytes);
    if (metrics != nullptr) beat.set_metrics_endpoint(metrics->address());
  };
  // Of a view, or of one that is being prepared, with its lanes.
  const auto take_placement = [&](const View& view) -> absl::Status {
    if (job.table.size() == 0) {  // the first one: what is exchanged stays the same
      RETURN_IF_ERROR(TakeBlocks(view, job));
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
    if (reply.has_next_view() && reply.next_view().lanes_size() > 0) {
      placed.Update(take_placement(reply.next_view()));
    }
    for (const std::unique_ptr<LaneThread>& lane : lanes) {
      lane->OnHeard(sent);
      if (reply.has_next_view() && placed.ok()) lane->SetNextView(reply.next_view());
      lane->SetFinal(reply.final_version(),
                     {reply.final_clocks().begin(), reply.final_clocks().end()});
      if (reply.has_schedule()) lane->SetSchedule(reply.schedule());
    }
  };
  callbacks.failure = [&] { return placed.ok() ? FirstFailure(ReportsOf(lanes)) : placed; };
  callbacks.trace = [&] { return trace.has_value() ? &*trace : nullptr; };
  if (options.leave != nullptr) callbacks.leaving = [&] { return options.leave->asked(); };
  return BeatUntilEnd(*client, registered, callbacks);
}

}  // namespace tug
