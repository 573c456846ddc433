#include "simulate/nodes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "exchange/view_lanes.h"
#include "proto/wire.h"
#include "server/initial_weights.h"

namespace tug {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(20);

// Pulls weights towards a target that differs by virtual worker and clock; all of it depends on the
// bits of the weights.
float SimulatedGradient(float weight, uint32_t virtual_worker, uint64_t clock, uint32_t block,
                        uint64_t element) {
  const std::array<uint32_t, 4> bits = Philox4x32(
      {static_cast<uint32_t>(element), block, static_cast<uint32_t>(clock), virtual_worker},
      {17, 23});
  return weight * 0.5f + UniformFromBits(bits[0]) - 0.5f;
}

}  // namespace

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
  world_.time.Schedule(max * fraction, std::move(event));
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
  After(world_.options.max_control_delay, [this] {
    RegisterRequest request;
    request.set_protocol_version(kControlVersion);
    request.set_kind(kind_);
    request.set_host("simulated");
    request.set_incarnation(incarnation_);
    absl::StatusOr<RegisterReply> reply = register_(request);
    TUG_CHECK(reply.ok()) << reply.status().ToString();
    node_id_ = reply->node_id();
    job_ = reply->job();
    config_ = reply->config();
    for (std::string& endpoint : LaneEndpoints()) request.add_lane_endpoints(std::move(endpoint));
    if (request.lane_endpoints_size() > 0) {
      TUG_CHECK(register_(request).ok());
    }
    Beat();
  });
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
      world_.time.Schedule(kTickInterval, [this] { Beat(); });
    });
  });
}

// ---- server ----

std::vector<std::string> SimulatedServer::LaneEndpoints() const {
  return std::vector<std::string>(config_.cluster().lanes_per_server(), "simulated");
}

void SimulatedServer::OnView(const View& view) {
  for (uint32_t i = 0; i < config_.cluster().lanes_per_server(); ++i) {
    lanes_.push_back(std::make_unique<SimulatedLane>());
    StartLane(*lanes_.back(), i, view);
  }
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
  options.lane_of_segment = LaneNumberOfSegment(view);
  for (const BlockSpec& block : blocks_.blocks()) options.block_names.push_back(block.name());
  options.checkpoint_interval = config_.checkpoint().interval();
  options.resend_after = absl::Milliseconds(config_.comm().resend_ms());
  options.parking_bytes = world_.options.parking_bytes;
  options.pull_format = config_.comm().pull_format();
  options.scheduler = config_.comm().scheduler();
  options.pull_credit_bytes = config_.comm().pull_credit_bytes();
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
  for (uint32_t id : lane.shard->segments()) {
    const Segment& segment = world_.table.segment(id);
    FillInitialWeights(blocks_.blocks(static_cast<int>(segment.block)), segment.block,
                       config_.seed(), segment.begin, lane.shard->weights(id));
  }
  const PeerId self = LanePeer(options.lane);
  lane.transport = world_.network.NewEndpoint(self, [this, &lane] {
    lane.transport->Poll(absl::ZeroDuration(),
                         [&](Message message) { OnMessage(lane, std::move(message)); });
  });
  TUG_CHECK(ConnectToLanes(view, self, *lane.transport).ok());
}

void SimulatedServer::OnMessage(SimulatedLane& lane, Message message) {
  if (world_.options.shared_memory && message.header.sender % 2 == 0) message.home = Home::kSender;
  lane.shard->OnMessage(message, world_.time.Now());
  lane.most_held_bytes = std::max(lane.most_held_bytes, lane.shard->held_bytes());
}

void SimulatedServer::OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot) {
  if (++lane.snapshot[snapshot.version] < lane.shard->segments().size()) return;
  CheckpointPart part;
  part.set_lane(lane.index_in_view);
  part.set_version(snapshot.version);
  part.set_file("simulated");
  parts_.push_back(std::move(part));
}

void SimulatedServer::Report(HeartbeatRequest& request) {
  request.set_ready(!lanes_.empty());
  for (const CheckpointPart& part : parts_) *request.add_parts() = part;
  for (const Notice& notice : notices_) *request.add_notices() = notice;
  request.set_schedule(schedule_);
}

void SimulatedServer::OnReply(const HeartbeatReply& reply) {
  if (!lanes_.empty() && reply.schedule().number() > schedule_) {
    schedule_ = reply.schedule().number();
    SetPullCredit(reply.schedule().pull_credit_bytes());
  }
  if (reply.final_version() == 0) return;
  for (auto& lane : lanes_) lane->shard->SetFinalVersion(reply.final_version());
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
    result.repeats += lane->shard->counters().repeats;
    result.deferred += lane->shard->counters().deferred;
    result.most_held_bytes = std::max(result.most_held_bytes, lane->most_held_bytes);
    result.most_answer_bytes =
        std::max(result.most_answer_bytes, lane->shard->counters().most_answer_bytes);
    TUG_CHECK_EQ(lane->shard->counters().malformed, 0u);
  }
}

// ---- worker ----

void SimulatedWorker::OnView(const View& view) {
  for (const WorkerAssignment& assignment : view.workers()) {
    if (assignment.node_id() != node_id_) continue;
    virtual_workers_.assign(assignment.virtual_workers().begin(),
                            assignment.virtual_workers().end());
  }
  for (uint32_t b = 0; b < world_.table.num_blocks(); ++b) {
    weights_.emplace_back(world_.table.block_elements(b));
  }
  gradients_.resize(virtual_workers_.size(),
                    std::vector<std::shared_ptr<AlignedBuffer>>(weights_.size()));
  StepMachineOptions machine;
  machine.blocks = world_.table.num_blocks();
  machine.virtual_workers = static_cast<uint32_t>(virtual_workers_.size());
  machine.micro_batches = 2;
  machine.start_version = view.start_version();
  machine_ = std::make_unique<StepMachine>(machine);

  ExchangeOptions options;
  options.job = job_;
  options.timeline = view.timeline();
  options.view = view.number();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.comm = config_.comm();
  exchange_ = std::make_unique<Exchange>(
      options, world_.table,
      ExchangeSinks{.send = [this](Outgoing m) { transport_->Send(std::move(m)).IgnoreError(); },
                    .pulled = [this](BlockPulled e) { machine_->OnWeights(e.block, e.version); },
                    .committed = [](PushCommitted) {}});
  const PeerId self = WorkerPeer(node_id_);
  transport_ = world_.network.NewEndpoint(self, [this] {
    transport_->Poll(absl::ZeroDuration(),
                     [&](Message message) { exchange_->OnMessage(message, world_.time.Now()); });
    Advance();
  });
  TUG_CHECK(ConnectToLanes(view, self, *transport_).ok());
}

void SimulatedWorker::Report(HeartbeatRequest& request) {
  request.set_ready(machine_ != nullptr);
  for (const StepReport& step : steps_) *request.add_steps() = step;
  if (machine_ == nullptr) return;
  request.set_started(machine_->in_step() || machine_->clock() > 0);
  request.set_clock(machine_->in_step() ? machine_->clock() : machine_->clock() - 1);
  request.set_pausing(machine_->paused());
  request.set_finished(machine_->next() == StepMachine::Next::kFinished);
  request.set_schedule(schedule_);
}

void SimulatedWorker::OnReply(const HeartbeatReply& reply) {
  if (machine_ == nullptr || !reply.go()) return;
  if (!std::exchange(pulling_, true)) {
    for (uint32_t b = 0; b < weights_.size(); ++b) Pull(b, machine_->clock());
  }
  ordered_ = ControlBoard::OrdersOf(reply, ordered_).schedule;
  machine_->SetGate(reply.pause(), reply.final_version());
  Advance();
}

void SimulatedWorker::Tick() {
  if (exchange_ != nullptr) exchange_->OnTick(world_.time.Now());
}

void SimulatedWorker::Advance() {
  if (computing_ || machine_->next() != StepMachine::Next::kCompute) return;
  computing_ = true;
  After(world_.options.max_compute, [this] {
    computing_ = false;
    Compute();
    Advance();
  });
}

void SimulatedWorker::Compute() {
  const struct Compute compute = machine_->compute();
  MayChangeSchedule(compute);
  if (compute.phase == ComputePhase::kBackward) AddGradient(compute);
  const StepEffects effects = machine_->OnComputeDone();
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  if (effects.push.has_value()) {
    std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][*effects.push];
    const Lease lease(gradient, std::as_const(*gradient).floats());
    gradient.reset();  // a fresh one next time: repeats under way may still read this one
    exchange_->Push({*effects.push, virtual_worker, 1, compute.clock, 10, lease},
                    world_.time.Now());
  }
  if (effects.pull.has_value()) Pull(*effects.pull, compute.clock + 1);
  if (!effects.virtual_worker_done) return;
  StepReport report;
  report.set_virtual_worker(virtual_worker);
  report.set_clock(compute.clock);
  report.set_loss_sum(std::exchange(loss_, 0.0));
  report.set_tokens(10);
  report.set_targets(10);
  report.set_step_seconds(absl::ToDoubleSeconds(world_.time.Now() - step_began_));
  report.set_schedule(schedule_);
  steps_.push_back(std::move(report));
}

void SimulatedWorker::MayChangeSchedule(const struct Compute& compute) {
  const bool begins = compute.phase == ComputePhase::kForward && compute.virtual_worker == 0 &&
                      compute.micro_batch == 0 && compute.block == 0;
  if (begins) step_began_ = world_.time.Now();
  if (begins && ordered_.number != schedule_) {
    schedule_ = ordered_.number;
    exchange_->SetSchedule(ordered_, world_.time.Now());
    ++schedule_changes_;
  }
  if (const std::optional<SchedulePoint> point = RandomSchedule()) {
    exchange_->SetSchedule({.number = schedule_,
                            .partition_bytes = point->partition_bytes,
                            .credit_bytes = point->credit_bytes},
                           world_.time.Now());
    ++schedule_changes_;
  }
}

void SimulatedWorker::AddGradient(const struct Compute& compute) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][compute.block];
  const std::vector<float>& weights = weights_[compute.block];
  if (gradient == nullptr) {
    gradient = std::make_shared<AlignedBuffer>(weights.size() * sizeof(float));
  }
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  const std::span<float> out = gradient->floats();
  for (size_t e = 0; e < out.size(); ++e) {
    out[e] += SimulatedGradient(weights[e], virtual_worker, compute.clock, compute.block, e);
  }
  loss_ += out[0];
  const bool poisoned = compute.block == 0 && compute.clock == world_.options.poisoned_clock &&
                        virtual_worker == world_.options.poisoned_virtual_worker;
  if (poisoned) out[out.size() / 2] = std::numeric_limits<float>::quiet_NaN();
}

void SimulatedWorker::Collect(SimulationResult& result) {
  result.schedule_changes += schedule_changes_;
  result.resent += exchange_->counters().resent;
  result.most_push_bytes =
      std::max(result.most_push_bytes, exchange_->counters().most_outstanding_bytes);
}

void SimulatedWorker::Pull(uint32_t block, uint64_t version) {
  exchange_->Pull({block, Want::kExact, version, weights_[block]}, world_.time.Now());
}

}  // namespace tug
