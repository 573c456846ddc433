#include "simulate/nodes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "exchange/view_lanes.h"
#include "exchange/worker_place.h"
#include "proto/wire.h"
#include "server/initial_weights.h"
#include "worker/orders_gate.h"
#include "worker/straggler.h"

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
}

void SimulatedServer::OnReply(const HeartbeatReply& reply) {
  if (!lanes_.empty() && reply.schedule().number() > schedule_) {
    schedule_ = reply.schedule().number();
    SetPullCredit(reply.schedule().pull_credit_bytes());
  }
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
    const bool differ = counters.updates % segments != 0 ||
                        (result.updates > 0 && result.updates != updates);
    result.updates = differ ? ~uint64_t{0} : updates;
    result.dropped_pushes += counters.dropped_pushes;
    for (size_t t = 0; t < counters.staleness.size(); ++t) {
      if (counters.staleness[t] > 0) result.most_staleness = std::max<uint64_t>(result.most_staleness, t);
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
  WorkerPlace place = PlaceOf(view, node_id_);
  virtual_workers_ = place.virtual_workers;
  steps_taken_.assign(virtual_workers_.size(), 0);
  for (uint32_t b = 0; b < world_.table.num_blocks(); ++b) {
    weights_.emplace_back(world_.table.block_elements(b));
  }
  arrived_.resize(weights_.size());
  evaluated_.resize(weights_.size());
  gradients_.resize(virtual_workers_.size(),
                    std::vector<std::shared_ptr<AlignedBuffer>>(weights_.size()));
  StepMachineOptions machine;
  machine.blocks = world_.table.num_blocks();
  machine.virtual_workers = static_cast<uint32_t>(virtual_workers_.size());
  machine.micro_batches = 2;
  machine.local_steps = std::max(1u, config_.sync().local_steps());
  machine.mode = SyncModeOf(config_.sync().policy());
  machine.start_version = view.start_version();
  machine.start_clocks = place.start_clocks;
  machine.steps = config_.train().steps();
  machine.eval_micro_batches = [](uint32_t virtual_worker, bool last) {
    return last && virtual_worker == 0 ? 1u : 0u;
  };
  machine_ = std::make_unique<StepMachine>(machine);

  ExchangeOptions options;
  options.job = job_;
  options.timeline = view.timeline();
  options.view = view.number();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.comm = config_.comm();
  SetSync(config_.sync(), place, options);
  exchange_ = std::make_unique<Exchange>(
      options, world_.table,
      ExchangeSinks{.send = [this](Outgoing m) { transport_->Send(std::move(m)).IgnoreError(); },
                    .pulled = [this](BlockPulled e) { arrived_[e.block] = e; },
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
  request.set_started(machine_->begun().has_value());
  request.set_clock(machine_->begun().value_or(0));
  request.set_pausing(machine_->paused());
  request.set_finished(machine_->next() == StepMachine::Next::kFinished);
  request.set_schedule(schedule_);
}

void SimulatedWorker::OnReply(const HeartbeatReply& reply) {
  if (machine_ == nullptr || !reply.go()) return;
  if (!std::exchange(pulling_, true)) {
    for (uint32_t b = 0; b < weights_.size(); ++b) Pull({b, machine_->clock(), false});
  }
  orders_ = ControlBoard::OrdersOf(reply, orders_.schedule);
  machine_->SetGate(GateOf(orders_, virtual_workers_));
  Advance();
}

void SimulatedWorker::Tick() {
  if (exchange_ != nullptr) exchange_->OnTick(world_.time.Now());
}

void SimulatedWorker::Advance() {
  if (computing_) return;
  while (true) {
    switch (machine_->next()) {
      case StepMachine::Next::kFinished:
      case StepMachine::Next::kWaitGate:
        return;
      case StepMachine::Next::kPull:
        Pull(machine_->pull());
        machine_->OnPulling();
        break;
      case StepMachine::Next::kWaitWeights: {
        const uint32_t block = machine_->compute().block;
        if (!arrived_[block].has_value()) return;
        const BlockPulled pulled = *std::exchange(arrived_[block], std::nullopt);
        const uint64_t updates = SyncModeOf(config_.sync().policy()).update_per_push
                                     ? config_.cluster().virtual_workers()
                                     : 1;  // in a step
        machine_->OnWeights(block, pulled.version / updates, pulled.newest / updates);
        ReportSkipped();
        break;
      }
      case StepMachine::Next::kCompute:
        computing_ = true;
        After(MostTime(machine_->compute()), [this] {
          computing_ = false;
          Compute();
          Advance();
        });
        return;
    }
  }
}

absl::Duration SimulatedWorker::MostTime(const struct Compute& compute) const {
  const Straggler straggler(config_);
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  const absl::Duration most = world_.options.max_compute;
  absl::Duration time = most + straggler.Slowdown(virtual_worker, most);
  if (compute.phase == ComputePhase::kBackward && compute.block == 0) {
    time += straggler.Pause(compute.clock, virtual_worker);
  }
  return time;
}

void SimulatedWorker::Compute() {
  const struct Compute compute = machine_->compute();
  if (compute.phase == ComputePhase::kEvaluate && machine_->evaluating_last()) {
    evaluated_[compute.block] = weights_[compute.block];
  }
  MayChangeSchedule(compute);
  if (compute.phase == ComputePhase::kBackward) AddGradient(compute);
  const StepEffects effects = machine_->OnComputeDone();
  if (effects.push.has_value()) Push(compute, *effects.push);
  if (effects.pull.has_value()) Pull(*effects.pull);
  if (effects.virtual_worker_done) Report(compute);
  ReportSkipped();
}

void SimulatedWorker::Push(const struct Compute& compute, uint32_t block) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const Lease lease(gradient, std::as_const(*gradient).floats());
  gradient.reset();  // a fresh one next time: repeats under way may still read this one
  const uint64_t tokens = config_.sync().local_steps() > 1 ? 1 : 10;
  exchange_->Push(
      {block, virtual_workers_[compute.virtual_worker], 1, compute.clock, tokens, lease},
      world_.time.Now());
}

void SimulatedWorker::Report(const struct Compute& compute) {
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  world_.clocks[virtual_worker] = compute.clock + 1;
  ++steps_taken_[compute.virtual_worker];
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

void SimulatedWorker::ReportSkipped() {
  for (const SkippedSteps& skipped : machine_->TakeSkipped()) {
    const uint32_t virtual_worker = virtual_workers_[skipped.virtual_worker];
    world_.clocks[virtual_worker] = skipped.end;
    skipped_ += skipped.end - skipped.first;
    loss_ = 0;
    for (uint64_t clock = skipped.first; clock < skipped.end; ++clock) {
      StepReport report;
      report.set_virtual_worker(virtual_worker);
      report.set_clock(clock);
      report.set_skipped(true);
      report.set_schedule(schedule_);
      steps_.push_back(std::move(report));
    }
  }
}

void SimulatedWorker::MayChangeSchedule(const struct Compute& compute) {
  const bool begins = compute.phase == ComputePhase::kForward && compute.micro_batch == 0 &&
                      compute.block == 0 && compute.local_step == 0;
  if (begins) {
    step_began_ = world_.time.Now();
    const uint64_t slowest = *std::min_element(world_.clocks.begin(), world_.clocks.end());
    if (compute.clock > slowest) {
      world_.most_lead = std::max(world_.most_lead, compute.clock - slowest);
    }
  }
  if (begins && orders_.schedule.number != schedule_) {
    schedule_ = orders_.schedule.number;
    exchange_->SetSchedule(orders_.schedule, world_.time.Now());
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

// Pulls weights towards a target that differs by virtual worker and clock; all of it depends on the
// bits of the weights.
void SimulatedWorker::AddGradient(const struct Compute& compute) {
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][compute.block];
  const std::vector<float>& weights = weights_[compute.block];
  if (gradient == nullptr) {
    gradient = std::make_shared<AlignedBuffer>(weights.size() * sizeof(float));
  }
  const uint32_t virtual_worker = virtual_workers_[compute.virtual_worker];
  const float of_weights = world_.options.gradient_of_weights ? 0.5f : 0.0f;
  const std::span<float> out = gradient->floats();
  for (size_t e = 0; e < out.size(); ++e) {
    out[e] += weights[e] * of_weights +
              SimulatedGradient(virtual_worker, compute.clock, compute.block, e);
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
  for (size_t v = 0; v < virtual_workers_.size(); ++v) {
    result.steps[virtual_workers_[v]] = steps_taken_[v];
  }
  result.skipped += skipped_;
  result.evaluated.push_back(evaluated_);
}

void SimulatedWorker::Pull(const PullOrder& order) {
  const SyncMode& mode = SyncModeOf(config_.sync().policy());
  const bool newest = (mode.update_per_push && !order.exact) || mode.skips_steps;
  exchange_->Pull({order.block, newest ? Want::kAtLeast : Want::kExact, order.clock,
                   weights_[order.block]},
                  world_.time.Now());
}

}  // namespace tug
