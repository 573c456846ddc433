#include "simulate/nodes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "exchange/view_lanes.h"
#include "proto/wire.h"
#include "server/initial_weights.h"
#include "server/view_live_set.h"

namespace tug {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(20);

}  // namespace

float SimulatedGradient(uint32_t virtual_worker, uint64_t clock, uint32_t block, uint64_t element) {
  const std::array<uint32_t, 4> bits = Philox4x32(
      {static_cast<uint32_t>(element), block, static_cast<uint32_t>(clock), virtual_worker},
      {17, 23});
  return UniformFromBits(bits[0]) - 0.5f;
}

// ---- any node ----

SimulatedNode::SimulatedNode(SimulatedWorld& world, NodeKind kind, uint64_t incarnation,
                             RegisterCall do_register, HeartbeatCall heartbeat)
    : world_(world),
      kind_(kind),
      incarnation_(incarnation),
      register_(std::move(do_register)),
      heartbeat_(std::move(heartbeat)) {}

void SimulatedNode::After(absl::Duration max, std::function<void()> event) {
  const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(world_.random);
  world_.time.Schedule(max * fraction, [this, event = std::move(event)] {
    if (!dead_) event();
  });
}

void SimulatedNode::Die() {
  dead_ = true;
  OnDeath();
}

std::optional<SchedulePoint> SimulatedNode::RandomSchedule() {
  const double probability = world_.options.schedule_change_probability;
  if (probability == 0) return std::nullopt;
  if (std::uniform_real_distribution<double>(0.0, 1.0)(world_.random) >= probability) {
    return std::nullopt;
  }
  const std::vector<SchedulePoint> points = SchedulePoints(world_.table);
  return points[world_.random() % points.size()];
}

void SimulatedNode::Start() {
  After(world_.options.max_control_delay, [this] { Register(); });
}

void SimulatedNode::Register() {
  RegisterRequest request;
  request.set_protocol_version(kControlVersion);
  request.set_kind(kind_);
  request.set_host("simulated");
  request.set_incarnation(incarnation_);
  absl::StatusOr<RegisterReply> reply = register_(request);
  if (absl::IsResourceExhausted(reply.status())) {  // whose place it is to take is not missed yet
    return world_.time.Schedule(kTickInterval, [this] {
      if (!dead_) Register();
    });
  }
  if (absl::IsFailedPrecondition(reply.status())) return;  // the job has ended
  TUG_CHECK(reply.ok()) << reply.status().ToString();
  node_id_ = reply->node_id();
  job_ = reply->job();
  config_ = reply->config();
  for (std::string& endpoint : LaneEndpoints()) request.add_lane_endpoints(std::move(endpoint));
  if (request.lane_endpoints_size() > 0) {
    TUG_CHECK(register_(request).ok());
  }
  Beat();
}

void SimulatedNode::Beat() {
  HeartbeatRequest request;
  request.set_node_id(node_id_);
  request.set_job(job_);
  request.set_known_view(known_view_);
  Report(request);
  After(world_.options.max_control_delay, [this, request = std::move(request)] {
    const absl::StatusOr<HeartbeatReply> reply = heartbeat_(request);
    TUG_CHECK(reply.ok()) << reply.status().ToString();
    After(world_.options.max_control_delay, [this, reply = *reply] {
      if (reply.has_view() && reply.view().number() > known_view_) {
        blocks_ = reply.view().blocks();
        OnView(reply.view());
        known_view_ = reply.view().number();
      }
      ended_ = reply.phase() == DONE || reply.phase() == FAILED;
      if (ended_) return;
      OnReply(reply);
      Tick();
      world_.time.Schedule(kTickInterval, [this] {
        if (!dead_) Beat();
      });
    });
  });
}

// ---- server ----

std::vector<std::string> SimulatedServer::LaneEndpoints() const {
  return std::vector<std::string>(config_.cluster().lanes_per_server(), "simulated");
}

void SimulatedServer::OnView(const View& view) {
  live_ = LiveSetOf(view, config_);
  if (view.timeline() == timeline_) return Fence(view.number());
  timeline_ = view.timeline();
  fence_ = 0;
  schedule_ = 0;
  lanes_.clear();
  parts_.clear();
  for (uint32_t i = 0; i < config_.cluster().lanes_per_server(); ++i) {
    lanes_.push_back(std::make_unique<SimulatedLane>());
    StartLane(*lanes_.back(), i, view);
  }
}

void SimulatedServer::Fence(uint32_t view) {
  fence_ = view;
  for (auto& lane : lanes_) lane->shard->SetView(view, *live_, world_.time.Now());
}

void SimulatedServer::StartLane(SimulatedLane& lane, uint32_t index_on_server, const View& view) {
  for (int i = 0; i < view.lanes_size(); ++i) {
    if (view.lanes(i).server_node_id() == node_id_ &&
        view.lanes(i).index_on_server() == index_on_server) {
      lane.index_in_view = static_cast<uint32_t>(i);
    }
  }
  ShardOptions options;
  options.lane = LaneNumber(node_id_, index_on_server);
  options.job = job_;
  options.timeline = view.timeline();
  options.view = view.number();
  options.start_version = view.start_version();
  options.virtual_workers = config_.cluster().virtual_workers();
  options.optimizer = config_.optimizer();
  options.sync = config_.sync();
  options.last_step = config_.train().steps();
  options.lane_of_segment = LaneNumberOfSegment(view);
  for (const BlockSpec& block : blocks_.blocks()) options.block_names.push_back(block.name());
  options.checkpoint_interval = config_.checkpoint().interval();
  options.resend_after = absl::Milliseconds(config_.comm().resend_ms());
  options.parking_bytes = world_.options.parking_bytes;
  options.pull_format = config_.comm().pull_format();
  options.scheduler = config_.comm().scheduler();
  options.pull_credit_bytes = config_.comm().pull_credit_bytes();
  options.sums_of_some = config_.fault().on_worker_loss() == FaultConfig::SHRINK;
  lane.shard = std::make_unique<Shard>(
      options, world_.table,
      ShardSinks{.send = [&lane](Outgoing m) { lane.transport->Send(std::move(m)).IgnoreError(); },
                 .snapshot = [this, &lane](const SegmentSnapshot& s) { OnSnapshot(lane, s); },
                 .notice =
                     [this](ShardNotice notice) {
                       notices_.emplace_back();
                       notices_.back().set_key(notice.key);
                       notices_.back().set_text(notice.text);
                     }});
  Fill(lane, view);
  const PeerId self = LanePeer(options.lane);
  lane.transport = world_.network.NewEndpoint(self, [this, &lane] {
    lane.transport->Poll(absl::ZeroDuration(),
                         [&](Message message) { OnMessage(lane, std::move(message)); });
  });
  TUG_CHECK(ConnectToLanes(view, self, *lane.transport).ok());
}

void SimulatedServer::Fill(SimulatedLane& lane, const View& view) {
  for (const uint32_t id : lane.shard->segments()) {
    const Segment& segment = world_.table.segment(id);
    if (view.restore_path().empty()) {
      FillInitialWeights(blocks_.blocks(static_cast<int>(segment.block)), segment.block,
                         config_.seed(), segment.begin, lane.shard->weights(id));
      continue;
    }
    const SimulatedWorld::Stored& stored = world_.checkpoints.at(view.start_version()).at(id);
    std::copy(stored.weights.begin(), stored.weights.end(), lane.shard->weights(id).begin());
    std::copy(stored.m.begin(), stored.m.end(), lane.shard->m(id).begin());
    std::copy(stored.v.begin(), stored.v.end(), lane.shard->v(id).begin());
    if (!stored.clocks.empty()) lane.shard->SetClocks(id, stored.clocks);
  }
}

void SimulatedServer::OnMessage(SimulatedLane& lane, Message message) {
  if (world_.options.shared_memory && message.header.sender % 2 == 0) message.home = Home::kSender;
  lane.shard->OnMessage(message, world_.time.Now());
  lane.most_held_bytes = std::max(lane.most_held_bytes, lane.shard->held_bytes());
}

void SimulatedServer::OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot) {
  const std::span<const float> weights = snapshot.weights.floats();
  world_.checkpoints[snapshot.version][snapshot.segment] = {
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
  part.set_file("simulated");
  part.mutable_clocks()->Assign(all.clocks.begin(), all.clocks.end());
  parts_.push_back(std::move(part));
}

void SimulatedServer::Report(HeartbeatRequest& request) {
  request.set_ready(!lanes_.empty());
  for (const CheckpointPart& part : parts_) *request.add_parts() = part;
  for (const Notice& notice : notices_) *request.add_notices() = notice;
  request.set_schedule(schedule_);
  if (fence_ == 0) return;
  std::vector<uint64_t> clocks = lanes_.front()->shard->Clocks();
  for (const auto& lane : lanes_) {
    const std::vector<uint64_t> of_lane = lane->shard->Clocks();
    for (size_t v = 0; v < clocks.size(); ++v) clocks[v] = std::min(clocks[v], of_lane[v]);
  }
  request.set_clocks_of_view(fence_);
  request.mutable_clocks()->Assign(clocks.begin(), clocks.end());
}

void SimulatedServer::OnReply(const HeartbeatReply& reply) {
  if (!lanes_.empty() && reply.schedule().number() > schedule_) {
    schedule_ = reply.schedule().number();
    SetPullCredit(reply.schedule().pull_credit_bytes());
  }
  const uint32_t next_view = reply.next_view().number();
  if (next_view > fence_ && !lanes_.empty()) Fence(next_view);
  if (reply.final_version() == 0) return;
  const std::vector<uint64_t> final_clocks(reply.final_clocks().begin(),
                                           reply.final_clocks().end());
  for (auto& lane : lanes_) {
    lane->shard->SetFinalVersion(reply.final_version());
    lane->shard->SetFinalClocks(final_clocks, reply.final_version(), world_.time.Now());
  }
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
    result.most_answer_bytes =
        std::max(result.most_answer_bytes, lane->shard->counters().most_answer_bytes);
    TUG_CHECK_EQ(lane->shard->counters().malformed, 0u);
  }
}

}  // namespace tug
