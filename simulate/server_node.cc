// The server of a simulated cluster.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "exchange/view_lanes.h"
#include "proto/placement_mode.h"
#include "server/initial_weights.h"
#include "server/view_live_set.h"
#include "simulate/server_node.h"

namespace tug {

std::vector<std::string> SimulatedServer::LaneEndpoints() const {
  return std::vector<std::string>(config_.cluster().lanes_per_server(), "simulated");
}

void SimulatedServer::OnView(const View& view) {
  live_ = LiveSetOf(view, config_, node_id_);
  if (view.timeline() == timeline_) {
    if (view.placement() != placement_) TakePlacement(view);
    return Fence(view.number());
  }
  timeline_ = view.timeline();
  placement_ = view.placement();
  copied_placement_ = 0;
  fence_ = 0;
  schedule_ = 0;
  lanes_.clear();
  for (uint32_t i = 0; i < config_.cluster().lanes_per_server(); ++i) {
    lanes_.push_back(std::make_unique<SimulatedLane>());
    StartLane(*lanes_.back(), i, view);
  }
}

void SimulatedServer::TakePlacement(const View& view) {
  const bool joins = view.timeline() != timeline_;
  if (joins) {
    timeline_ = view.timeline();
    blocks_ = view.blocks();
    live_ = LiveSet(config_.cluster().virtual_workers());
    schedule_ = 0;
    lanes_.clear();
  }
  placement_ = view.placement();
  copied_placement_ = 0;
  world_.Say(absl::StrCat(Name(), " takes up placement ", placement_));
  for (uint32_t i = 0; i < config_.cluster().lanes_per_server(); ++i) {
    if (joins) lanes_.push_back(std::make_unique<SimulatedLane>());
    SimulatedLane& lane = *lanes_[i];
    std::unique_ptr<Shard> before = std::move(lane.shard);
    lane.snapshots.clear();
    lane.parts.Clear();
    if (joins) {
      Bind(lane, i);
    }
    TUG_CHECK(ConnectToLanes(view, LanePeer(lane.number), *lane.transport).ok());
    const ShardOptions options = MakeShardOptions(lane, i, view);
    lane.shard = std::make_unique<Shard>(options, world_.table, MakeSinks(lane));
    const absl::Status taken = lane.shard->TakeFrom(before.get(), world_.time.Now());
    TUG_CHECK(taken.ok()) << taken.ToString();
    if (world_.options.watch != nullptr) {
      for (const uint32_t id : lane.shard->segments()) {
        world_.options.watch->OnTakeover(StateOf(lane), id, lane.shard->Held(id)->clocks);
      }
    }
    if (lane.final_version > 0) SetFinal(lane);
  }
}

void SimulatedServer::Fence(uint32_t view) {
  if (view > fence_) world_.Say(absl::StrCat(Name(), " is in view ", view));
  fence_ = view;
  for (auto& lane : lanes_) {
    lane->view = view;
    if (world_.options.watch != nullptr) world_.options.watch->OnView(StateOf(*lane));
    lane->shard->SetView(view, *live_, world_.time.Now());
  }
}

RunWatch::LaneState SimulatedServer::StateOf(const SimulatedLane& lane) const {
  return {.lane = lane.number,
          .timeline = timeline_,
          .view = lane.view,
          .live = &*live_,
          .final_clocks = lane.final_clocks};
}

ShardOptions SimulatedServer::MakeShardOptions(SimulatedLane& lane, uint32_t index_on_server,
                                               const View& view) {
  for (int i = 0; i < view.lanes_size(); ++i) {
    if (view.lanes(i).server_node_id() == node_id_ &&
        view.lanes(i).index_on_server() == index_on_server) {
      lane.index_in_view = static_cast<uint32_t>(i);
    }
  }
  lane.view = view.number();
  if (world_.options.watch != nullptr) world_.options.watch->OnNewShard(StateOf(lane));
  ShardOptions options;
  options.lane = lane.number;
  options.job = job_;
  options.timeline = view.timeline();
  options.view = view.number();
  options.start_version = view.start_version();
  options.virtual_workers = config_.cluster().virtual_workers();
  options.optimizer = config_.optimizer();
  options.sync = config_.sync();
  options.last_step = config_.train().steps();
  options.placement = view.placement();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.copies = LaneNumbersOfCopies(view);
  for (const BlockSpec& block : blocks_.blocks()) options.block_names.push_back(block.name());
  options.checkpoint_interval = config_.checkpoint().interval();
  options.resend_after = absl::Milliseconds(config_.comm().resend_ms());
  options.parking_bytes = world_.options.parking_bytes;
  options.pull_format = config_.comm().pull_format();
  options.pull_density = config_.comm().pull_density();
  options.seed = config_.seed();
  options.scheduler = config_.comm().scheduler();
  options.pull_credit_bytes = config_.comm().pull_credit_bytes();
  const PlantedBug bug = world_.options.plant;
  if (bug == PlantedBug::kStaleness) {
    options.sync.set_staleness(options.sync.staleness() + 1);
  } else if (bug == PlantedBug::kDuplicateCheck) {
    options.replace_policy_for_test = [bug](std::unique_ptr<const SyncPolicy> policy) {
      return PlantedPolicy(bug, std::move(policy));
    };
  }
  if (config_.placement().host_weight_cache()) {
    options.cached_lanes = CachedLanes(view, lane.number);
  }
  options.senders_let_go = PlacementModeOf(config_).frees_gradients;
  options.sums_of_some = config_.fault().on_worker_loss() == FaultConfig::SHRINK;
  return options;
}

ShardSinks SimulatedServer::MakeSinks(SimulatedLane& lane) {
  return {.send = [this, &lane](Outgoing m) { Send(lane, std::move(m)); },
          .snapshot = [this, &lane](const SegmentSnapshot& s) { OnSnapshot(lane, s); },
          .notice =
              [this](ShardNotice notice) {
                notices_.emplace_back();
                notices_.back().set_key(notice.key);
                notices_.back().set_text(notice.text);
              }};
}

void SimulatedServer::Bind(SimulatedLane& lane, uint32_t index_on_server) {
  lane.number = LaneNumber(node_id_, index_on_server);
  lane.planted = PlantedLane(world_.options.plant);
  lane.transport = world_.network.NewEndpoint(LanePeer(lane.number), [this, &lane] {
    if (frozen()) return;
    lane.transport->Poll(absl::ZeroDuration(),
                         [&](Message message) { OnMessage(lane, std::move(message)); });
  });
}

void SimulatedServer::StartLane(SimulatedLane& lane, uint32_t index_on_server, const View& view) {
  Bind(lane, index_on_server);
  const ShardOptions options = MakeShardOptions(lane, index_on_server, view);
  lane.shard = std::make_unique<Shard>(options, world_.table, MakeSinks(lane));
  Fill(lane, view);
  TUG_CHECK(ConnectToLanes(view, LanePeer(lane.number), *lane.transport).ok());
}

void SimulatedServer::Fill(SimulatedLane& lane, const View& view) {
  for (const uint32_t id : lane.shard->held()) {
    const Segment& segment = world_.table.segment(id);
    if (view.restore_path().empty()) {
      FillInitialWeights(blocks_.blocks(static_cast<int>(segment.block)), segment.block,
                         config_.seed(), segment.begin, lane.shard->weights(id));
      continue;
    }
    const SimulatedStore::Segment& stored = StoredSegment(view.start_version(), id);
    std::copy(stored.weights.begin(), stored.weights.end(), lane.shard->weights(id).begin());
    std::copy(stored.m.begin(), stored.m.end(), lane.shard->m(id).begin());
    std::copy(stored.v.begin(), stored.v.end(), lane.shard->v(id).begin());
    if (stored.clocks.empty()) continue;
    lane.shard->SetClocks(id, stored.clocks);
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
    if (written == world_.store.files.end()) continue;  // of a worker
    const auto& segments = written->second;
    if (const auto stored = segments.find(segment); stored != segments.end()) {
      return stored->second;
    }
  }
  TUG_CHECK(false) << "segment " << segment << " is not in the checkpoint of step " << version;
}

void SimulatedServer::LookForMail() {
  for (auto& lane : lanes_) {
    while (lane->transport->mail() > 0) {
      lane->transport->Poll(absl::ZeroDuration(),
                            [&](Message message) { OnMessage(*lane, std::move(message)); });
    }
  }
}

void SimulatedServer::OnMessage(SimulatedLane& lane, Message message) {
  if (world_.options.shared_memory && message.header.sender % 2 == 0) message.home = Home::kSender;
  const PeerId sender = message.header.sender;
  RunWatch* const watch = world_.options.watch;
  if (watch != nullptr) {
    // Credit that is overdue is taken back, lest the message itself do so.
    if (watch->IsHeld(StateOf(lane), message.header, sender)) lane.shard->OnTick(world_.time.Now());
    watch->BeforeDelivery(StateOf(lane), message.header, sender);
  }
  lane.planted.Change(timeline_, lane.view, message.header);
  if (!lane.planted.Forgets(message.header)) Deliver(lane, std::move(message));
  if (watch != nullptr) watch->AfterDelivery();
  lane.most_held_bytes = std::max(lane.most_held_bytes, lane.shard->held_bytes());
  lane.most_cached_bytes = std::max(lane.most_cached_bytes, lane.shard->most_cached_bytes());
}

// Every node of a simulated cluster is honest.
void SimulatedServer::Deliver(SimulatedLane& lane, Message message) {
  const uint64_t malformed = lane.shard->counters().malformed;
  const WireHeader header = message.header;
  const uint64_t payload_bytes = message.payload.size_bytes();
  lane.shard->OnMessage(std::move(message), world_.time.Now());
  if (world_.options.watch == nullptr || lane.shard->counters().malformed == malformed) return;
  world_.options.watch->OnMalformed(StateOf(lane), header, payload_bytes);
}

void SimulatedServer::Send(SimulatedLane& lane, Outgoing message) {
  if (world_.options.watch != nullptr) world_.options.watch->OnSent(StateOf(lane), message);
  lane.planted.NoteSent(message.header);
  if (const std::optional<Message> forged = lane.planted.Forged(message)) {
    Later(absl::ZeroDuration(), [this, &lane, forged = *forged, timeline = timeline_] {
      if (timeline == timeline_) lane.shard->OnMessage(forged, world_.time.Now());
    });
  }
  lane.transport->Send(std::move(message)).IgnoreError();
}

std::string SimulatedServer::FileOf(const SimulatedLane& lane, uint64_t version) const {
  return absl::StrCat("run ", world_.store.runs, ", timeline ", timeline_, ", placement ",
                      placement_, ", step ", version, ", lane ", lane.number);
}

void SimulatedServer::OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot) {
  const std::span<const float> weights = snapshot.weights.floats();
  world_.store.files[FileOf(lane, snapshot.version)][snapshot.segment] = {
      {weights.begin(), weights.end()},
      {snapshot.m.begin(), snapshot.m.end()},
      {snapshot.v.begin(), snapshot.v.end()},
      {snapshot.clocks.begin(), snapshot.clocks.end()}};
  SimulatedLane::Snapshot& all = lane.snapshots[snapshot.version];
  if (!snapshot.clocks.empty()) {
    const std::span<const uint64_t> clocks = snapshot.clocks.subspan(1);
    all.clocks.resize(clocks.size(), ~uint64_t{0});
    for (size_t v = 0; v < clocks.size(); ++v) all.clocks[v] = std::min(all.clocks[v], clocks[v]);
  }
  if (++all.segments < lane.shard->segments().size()) return;
  CheckpointPart part;
  part.set_lane(lane.index_in_view);
  part.set_version(snapshot.version);
  part.set_file(FileOf(lane, snapshot.version));
  part.set_placement(placement_);
  part.mutable_clocks()->Assign(all.clocks.begin(), all.clocks.end());
  lane.parts.Add(std::move(part));
}

void SimulatedServer::Report(HeartbeatRequest& request) {
  request.set_ready(!lanes_.empty());
  for (const auto& lane : lanes_) {
    for (const CheckpointPart& part : lane->parts.parts()) *request.add_parts() = part;
  }
  for (const Notice& notice : notices_) *request.add_notices() = notice;
  request.set_schedule(schedule_);
  const bool in_sync = std::all_of(lanes_.begin(), lanes_.end(),
                                   [](const auto& lane) { return lane->shard->CopiesInSync(); });
  if (!lanes_.empty() && in_sync) copied_placement_ = placement_;
  request.set_copied_placement(copied_placement_);
  if (fence_ == 0) return;
  std::vector<uint64_t> clocks = lanes_.front()->shard->Clocks();
  for (const auto& lane : lanes_) {
    const std::vector<uint64_t> of_lane = lane->shard->Clocks();
    for (size_t v = 0; v < clocks.size(); ++v) clocks[v] = std::min(clocks[v], of_lane[v]);
  }
  request.set_clocks_of_view(fence_);
  request.mutable_clocks()->Assign(clocks.begin(), clocks.end());
}

void SimulatedServer::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  for (const CheckpointPart& part : sent.parts()) {
    if (part.placement() != placement_) continue;
    for (const auto& lane : lanes_) {
      if (part.lane() == lane->index_in_view) lane->parts.OnHeard(part.version());
    }
  }
  if (!lanes_.empty() && reply.schedule().number() > schedule_) {
    schedule_ = reply.schedule().number();
    SetPullCredit(reply.schedule().pull_credit_bytes());
  }
  const View& next_view = reply.next_view();
  if (next_view.number() > fence_) {
    if (next_view.lanes_size() > 0 && next_view.placement() != placement_) {
      TakePlacement(next_view);
    }
    live_ = LiveSet(config_.cluster().virtual_workers());
    if (!lanes_.empty()) Fence(next_view.number());
  }
  if (reply.final_version() == 0) return;
  const std::vector<uint64_t> final_clocks(reply.final_clocks().begin(),
                                           reply.final_clocks().end());
  for (auto& lane : lanes_) {
    lane->final_version = reply.final_version();
    lane->final_clocks = final_clocks;
    SetFinal(*lane);
  }
}

void SimulatedServer::SetFinal(SimulatedLane& lane) {
  lane.shard->SetFinalVersion(lane.final_version);
  lane.shard->SetFinalClocks(lane.final_clocks, lane.final_version, world_.time.Now());
}

void SimulatedServer::SetPullCredit(uint64_t bytes) {
  for (auto& lane : lanes_) lane->shard->SetPullCredit(bytes, world_.time.Now());
  ++schedule_changes_;
}

void SimulatedServer::Tick() {
  if (const std::optional<SchedulePoint> point = RandomSchedule()) {
    SetPullCredit(point->credit_bytes);
  }
  for (auto& lane : lanes_) lane->shard->OnTick(world_.time.Now());
}

void SimulatedServer::Collect(SimulationResult& result) {
  result.schedule_changes += schedule_changes_;
  for (auto& lane : lanes_) {
    if (lane->shard->segments().empty()) continue;
    for (uint32_t id : lane->shard->segments()) {
      const Segment& segment = world_.table.segment(id);
      const std::span<const float> weights = lane->shard->weights(id);
      std::copy(weights.begin(), weights.end(),
                result.weights[segment.block].begin() + static_cast<ptrdiff_t>(segment.begin));
      result.final_version = lane->shard->version(id);
    }
    const ShardCounters& counters = lane->shard->counters();
    const size_t segments = lane->shard->segments().size();
    const uint64_t updates = counters.updates / segments;
    const bool differ =
        counters.updates % segments != 0 || (result.updates > 0 && result.updates != updates);
    result.updates = differ ? ~uint64_t{0} : updates;
    result.dropped_pushes += counters.dropped_pushes;
    for (size_t t = 0; t < counters.staleness.size(); ++t) {
      if (counters.staleness[t] > 0)
        result.most_staleness = std::max<uint64_t>(result.most_staleness, t);
    }
    result.repeats += lane->shard->counters().repeats;
    result.deferred += lane->shard->counters().deferred;
    result.most_held_bytes = std::max(result.most_held_bytes, lane->most_held_bytes);
    result.most_cached_bytes = std::max(result.most_cached_bytes, lane->most_cached_bytes);
    uint64_t allowed = world_.options.parking_bytes;
    for (const uint32_t id : lane->shard->segments()) allowed += world_.table.segment(id).bytes();
    if (lane->most_held_bytes > allowed) {
      result.most_held_beyond_bytes =
          std::max(result.most_held_beyond_bytes, lane->most_held_bytes - allowed);
    }
    result.most_answer_bytes =
        std::max(result.most_answer_bytes, lane->shard->counters().most_answer_bytes);
  }
}

}  // namespace tug
