// SPDX-License-Identifier: Apache-2.0
// Server of a simulated cluster.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "blocks/view_lanes.h"
#include "lab/simulate/server_node.h"

namespace tug {

std::vector<std::string> SimulatedServer::LaneEndpoints() const {
  return std::vector<std::string>(config_.cluster().lanes_per_server(), "simulated");
}

void SimulatedServer::BindLanes() {
  for (uint32_t i = 0; i < config_.cluster().lanes_per_server(); ++i) {
    const LaneCore::Job job{job_, LaneNumber(node_id_, i), config_};
    lanes_.push_back(std::make_unique<SimulatedLane>(job, node_id_, world_.table,
                                                     world_.options.plant, MakeSinks(i)));
    SimulatedLane& lane = *lanes_.back();
    lane.transport =
        world_.network.NewEndpoint(LanePeer(lane.number), [this, &lane] { PollLane(lane); });
  }
  Later(LaneCore::kTick, [this] { TickLanes(); });
}

LaneCore::Sinks SimulatedServer::MakeSinks(size_t index) {
  const auto lane = [this, index]() -> SimulatedLane& { return *lanes_[index]; };
  LaneCore::Sinks sinks;
  sinks.send = [this, lane](Outgoing m) { Send(lane(), std::move(m)); };
  sinks.connect = [lane](const View& view) {
    return ConnectToLanes(view, LanePeer(lane().number), *lane().transport);
  };
  sinks.shares_memory = [](PeerId) { return false; };
  sinks.equip = [this, lane](ShardOptions& options) { Equip(lane(), options); };
  sinks.fill = [this, lane](const View& view, Shard& shard) {
    Restore(lane(), view, shard);
    return absl::OkStatus();
  };
  sinks.place = [lane](const LanePlace& place) {
    lane().filling.SetPlace(place);
    lane().parts.SetPlace(place);
  };
  sinks.snapshot = [this, lane](const SegmentSnapshot& s) { OnSnapshot(lane(), s); };
  sinks.notice = [lane](ShardNotice n) { lane().report.AddNotice(std::move(n)); };
  sinks.wake = [lane] { lane().transport->Wake(); };
  return sinks;
}

// ---- control plane ----

void SimulatedServer::OnView(const View& view) {
  for (auto& lane : lanes_) {
    const bool begins = lane->orders.Begins(view);
    lane->orders.OnView(view);
    if (begins) Begin(*lane, view, /*joins=*/false);
    Obey(*lane);
  }
}

void SimulatedServer::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  for (auto& lane : lanes_) {
    lane->parts.OnHeard(sent);
    const bool joins = lane->orders.Joins(reply.next_view());
    if (!lane->orders.OnReply(reply)) continue;
    if (joins) Begin(*lane, reply.next_view(), /*joins=*/true);
    Obey(*lane);
  }
}

void SimulatedServer::Begin(SimulatedLane& lane, const View& view, bool joins) {
  lane.report = {};
  const absl::Status begun = lane.core.Begin(view, joins, world_.time.Now());
  if (Check(lane, begun) && joins) NoteTakeover(lane);
}

void SimulatedServer::Obey(SimulatedLane& lane) {
  if (!lane.core.begun() || !lane.report.failure.ok()) return;
  const uint32_t view = lane.core.progress().view;
  const uint32_t schedule = lane.core.progress().schedule;
  const uint32_t placement = lane.core.place().placement;
  const absl::Status obeyed = lane.core.Obey(lane.orders.wanted(), world_.time.Now());
  if (!Check(lane, obeyed)) return;
  if (lane.core.place().placement != placement) NoteTakeover(lane);
  if (lane.core.progress().schedule > schedule && &lane == lanes_.front().get()) {
    ++schedule_changes_;
  }
  if (lane.core.progress().view == view) return;
  world_.Say(absl::StrCat(Name(), " is in view ", lane.core.progress().view));
  if (world_.options.watch != nullptr) world_.options.watch->OnView(StateOf(lane));
}

void SimulatedServer::NoteTakeover(SimulatedLane& lane) {
  world_.Say(absl::StrCat(Name(), " adopts placement ", lane.core.place().placement));
  if (world_.options.watch == nullptr) return;
  const Shard& shard = lane.core.shard();
  for (const uint32_t id : shard.segments()) {
    world_.options.watch->OnTakeover(StateOf(lane), id, shard.Held(id)->clocks);
  }
}

bool SimulatedServer::Check(SimulatedLane& lane, const absl::Status& status) {
  lane.report.failure.Update(status);
  return lane.report.failure.ok();
}

void SimulatedServer::Report(HeartbeatRequest& request) {
  if (lanes_.empty()) BindLanes();
  std::vector<LaneReport> reports;
  for (const auto& lane : lanes_) {
    LaneReport& report = reports.emplace_back(lane->report);
    report.progress = lane->core.progress();
    report.ready = report.progress.Serves(lane->orders.wanted());
    report.parts = lane->parts.parts();
  }
  AddReports(reports, world_.time.Now(), request);
  if (const absl::Status failure = FirstFailure(reports); !failure.ok()) {
    request.set_failure(std::string(failure.message()));
  }
}

// ---- data plane ----

void SimulatedServer::Tick() {
  const std::optional<SchedulePoint> point = RandomSchedule();
  if (!point.has_value()) return;
  ++schedule_changes_;
  for (auto& lane : lanes_) {
    if (!lane->core.begun()) continue;
    lane->core.shard().SetPullCredit(point->credit_bytes, world_.time.Now());
  }
}

void SimulatedServer::TickLanes() {
  absl::Duration next = LaneCore::kTick;
  for (auto& lane : lanes_) {
    if (!lane->core.begun() || !lane->report.failure.ok()) continue;
    lane->core.OnTick(world_.time.Now());
    PollLane(*lane);
    if (lane->core.reduces()) next = RankGroup::kTick;
  }
  Later(next, [this] { TickLanes(); });
}

void SimulatedServer::LookForMail() {
  for (auto& lane : lanes_) PollLane(*lane);
}

void SimulatedServer::PollLane(SimulatedLane& lane) {
  if (frozen() || !lane.core.begun()) return;
  while (lane.report.failure.ok()) {
    const size_t mail = lane.transport->mail();
    lane.transport->Poll(absl::ZeroDuration(),
                         [&](Message message) { OnMessage(lane, std::move(message)); });
    const bool busy = lane.core.Reduce(world_.time.Now());
    Check(lane, lane.core.status());
    if (!busy && mail == 0) return;
  }
}

RunWatch::LaneState SimulatedServer::StateOf(const SimulatedLane& lane) const {
  return {.lane = lane.number,
          .timeline = lane.core.place().timeline,
          .view = lane.core.progress().view,
          .live = &lane.core.live(),
          .final_clocks = lane.orders.wanted().final_clocks};
}

void SimulatedServer::OnMessage(SimulatedLane& lane, Message message) {
  if (world_.options.shared_memory && message.header.sender % 2 == 0) message.home = Home::kSender;
  const PeerId sender = message.header.sender;
  RunWatch* const watch = world_.options.watch;
  if (watch != nullptr) {
    // Reclaims overdue credit first; otherwise the message itself would.
    if (watch->IsHeld(StateOf(lane), message.header, sender)) lane.core.OnTick(world_.time.Now());
    watch->BeforeDelivery(StateOf(lane), message.header, sender);
  }
  lane.planted.Change(lane.core.place().timeline, lane.core.progress().view, message.header);
  if (!lane.planted.Forgets(message.header)) Deliver(lane, std::move(message));
  if (watch != nullptr) watch->AfterDelivery();
  lane.peak_held_bytes = std::max(lane.peak_held_bytes, lane.core.shard().held_bytes());
  lane.peak_cached_bytes = std::max(lane.peak_cached_bytes, lane.core.shard().peak_cached_bytes());
}

// All nodes of a simulated cluster are honest, so a malformed message is a violation.
void SimulatedServer::Deliver(SimulatedLane& lane, Message message) {
  const uint64_t malformed = lane.core.shard().counters().malformed;
  const WireHeader header = message.header;
  const uint64_t payload_bytes = message.payload.size_bytes();
  lane.core.shard().OnMessage(std::move(message), world_.time.Now());
  if (world_.options.watch == nullptr || lane.core.shard().counters().malformed == malformed)
    return;
  world_.options.watch->OnMalformed(StateOf(lane), header, payload_bytes);
}

void SimulatedServer::Send(SimulatedLane& lane, Outgoing message) {
  if (world_.options.watch != nullptr) world_.options.watch->OnSent(StateOf(lane), message);
  lane.planted.NoteSent(message.header);
  if (const std::optional<Message> forged = lane.planted.Forged(message)) {
    const uint32_t timeline = lane.core.place().timeline;
    Later(absl::ZeroDuration(), [this, &lane, forged = *forged, timeline] {
      if (timeline == lane.core.place().timeline) lane.core.OnMessage(forged, world_.time.Now());
    });
  }
  lane.transport->Send(std::move(message)).IgnoreError();
}

void SimulatedServer::Equip(SimulatedLane& lane, ShardOptions& options) {
  if (world_.options.watch != nullptr) world_.options.watch->OnNewShard(StateOf(lane));
  options.parking_bytes = world_.options.parking_bytes;
  const PlantedBug bug = world_.options.plant;
  if (bug == PlantedBug::kStaleness) {
    options.sync.set_staleness(options.sync.staleness() + 1);
  } else if (bug == PlantedBug::kDuplicateCheck) {
    options.replace_policy_for_test = [bug](std::unique_ptr<const SyncPolicy> policy) {
      return PlantedPolicy(bug, std::move(policy));
    };
  }
}

// ---- disk ----

void SimulatedServer::Restore(SimulatedLane& lane, const View& view, Shard& shard) {
  for (const uint32_t id : shard.held()) {
    const SimulatedStore::Segment& stored = StoredSegment(view.start_version(), id);
    std::copy(stored.weights.begin(), stored.weights.end(), shard.weights(id).begin());
    std::copy(stored.m.begin(), stored.m.end(), shard.m(id).begin());
    std::copy(stored.v.begin(), stored.v.end(), shard.v(id).begin());
    if (stored.clocks.empty()) continue;
    shard.SetClocks(id, stored.clocks);
    if (world_.options.watch != nullptr) {
      world_.options.watch->OnFilled(StateOf(lane), id, std::span(stored.clocks).subspan(1));
    }
  }
}

const SimulatedStore::Segment& SimulatedServer::StoredSegment(uint64_t version,
                                                              uint32_t segment) const {
  const auto& checkpoints = world_.store.checkpoints;
  const bool older =
      world_.options.plant == PlantedBug::kResume && world_.store.runs > 1 && segment == 0;
  const Manifest& manifest = older ? checkpoints.begin()->second : checkpoints.at(version);
  for (const ManifestFile& file : manifest.files()) {
    const auto written = world_.store.files.find(file.name());
    if (written == world_.store.files.end()) continue;  // a worker's file
    const auto& segments = written->second;
    if (const auto stored = segments.find(segment); stored != segments.end()) {
      return stored->second;
    }
  }
  TUG_CHECK(false) << "segment " << segment << " is not in the checkpoint of step " << version;
}

void SimulatedServer::OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot) {
  auto* const part = lane.filling.Lacking(snapshot.segment, snapshot.version);
  if (part == nullptr) return;
  const std::span<const float> weights = snapshot.weights.floats();
  part->copies.push_back({snapshot.segment,
                          {weights.begin(), weights.end()},
                          {snapshot.m.begin(), snapshot.m.end()},
                          {snapshot.v.begin(), snapshot.v.end()},
                          {snapshot.clocks.begin(), snapshot.clocks.end()}});
  if (!lane.filling.IsComplete(*part)) return;
  auto complete = lane.filling.Take(part);
  CheckpointPart report = ReportOf(complete);
  // Name of a lane's file of a checkpoint: files with other bytes get another name.
  report.set_file(absl::StrCat("run ", world_.store.runs, ", timeline ", complete.place.timeline,
                               ", placement ", complete.place.placement, ", step ",
                               complete.version, ", lane ", lane.number));
  for (SimulatedStore::Segment& segment : complete.copies) {
    const uint32_t id = segment.segment;
    world_.store.files[report.file()][id] = std::move(segment);
  }
  lane.parts.Add(std::move(report));
}

void SimulatedServer::Collect(SimulationResult& result) {
  result.schedule_changes += schedule_changes_;
  for (auto& lane : lanes_) {
    if (!lane->core.begun() || lane->core.shard().segments().empty()) continue;
    Shard& shard = lane->core.shard();
    for (uint32_t id : shard.segments()) {
      const Segment& segment = world_.table.segment(id);
      const std::span<const float> weights = shard.weights(id);
      std::copy(weights.begin(), weights.end(),
                result.weights[segment.block].begin() + static_cast<ptrdiff_t>(segment.begin));
      result.final_version = shard.version(id);
    }
    const ShardCounters& counters = shard.counters();
    const size_t segments = shard.segments().size();
    const uint64_t updates = counters.updates / segments;
    const bool differ =
        counters.updates % segments != 0 || (result.updates > 0 && result.updates != updates);
    result.updates = differ ? ~uint64_t{0} : updates;
    result.dropped_pushes += counters.dropped_pushes;
    for (size_t t = 0; t < counters.staleness.size(); ++t) {
      if (counters.staleness[t] > 0)
        result.most_staleness = std::max<uint64_t>(result.most_staleness, t);
    }
    result.repeats += shard.counters().repeats;
    result.deferred += shard.counters().deferred;
    result.peak_held_bytes = std::max(result.peak_held_bytes, lane->peak_held_bytes);
    result.peak_cached_bytes = std::max(result.peak_cached_bytes, lane->peak_cached_bytes);
    uint64_t allowed = world_.options.parking_bytes;
    for (const uint32_t id : shard.segments()) allowed += world_.table.segment(id).bytes();
    if (lane->peak_held_bytes > allowed) {
      result.peak_held_beyond_bytes =
          std::max(result.peak_held_beyond_bytes, lane->peak_held_bytes - allowed);
    }
    result.peak_answer_bytes =
        std::max(result.peak_answer_bytes, shard.counters().peak_answer_bytes);
  }
}

}  // namespace tug
