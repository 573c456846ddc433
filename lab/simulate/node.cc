// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "control/control_client.h"
#include "coordinator/membership/node_names.h"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(20);

ProcessExit ExitOf(const absl::Status& end) {
  return end.ok() ? ProcessExit::kZero : ProcessExit::kError;
}

}  // namespace

float SimulatedGradient(uint32_t virtual_worker, uint64_t clock, uint32_t block, uint64_t element) {
  return SimulatedGradients(virtual_worker, clock, block)[element];
}

bool SimulatedWorld::IsCut(uint32_t from, uint32_t to, std::optional<MessageKind> kind) const {
  return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
    if (cut.kind.has_value() && cut.kind != kind) return false;
    const bool out = cut.node == from && cut.out && cut.other.value_or(to) == to;
    const bool in = cut.node == to && cut.in && cut.other.value_or(from) == from;
    return out || in;
  });
}

void SimulatedWorld::Say(const std::string& text) const {
  if (options.say) options.say(time.Now() - absl::UnixEpoch(), text);
}

// ---- any node ----

SimulatedNode::SimulatedNode(SimulatedWorld& world, NodeKind kind, uint64_t incarnation,
                             RegisterCall do_register, HeartbeatCall heartbeat, bool spare)
    : world_(world),
      kind_(kind),
      incarnation_(incarnation),
      spare_(spare),
      register_(std::move(do_register)),
      heartbeat_(std::move(heartbeat)) {}

void SimulatedNode::After(absl::Duration max, std::function<void()> event) {
  const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(world_.random);
  Later(max * fraction, std::move(event));
}

void SimulatedNode::Later(absl::Duration delay, std::function<void()> event) {
  world_.time.Schedule(delay, [this, event = std::move(event)]() mutable {
    if (dead_) return;
    if (frozen_) {
      held_.push_back(std::move(event));
    } else {
      event();
    }
  });
}

void SimulatedNode::Freeze() { frozen_ = true; }

void SimulatedNode::Thaw() {
  frozen_ = false;
  for (std::function<void()>& event : std::exchange(held_, {})) {
    Later(absl::ZeroDuration(), std::move(event));
  }
  Later(absl::ZeroDuration(), [this] { LookForMail(); });
}

void SimulatedNode::Die() {
  dead_ = true;
  held_.clear();
  OnDeath();
}

void SimulatedNode::Exit(const std::string& why, ProcessExit how) {
  world_.Say(absl::StrCat(Name(), why));
  Die();
  world_.on_exit(*this, how);
}

void SimulatedNode::End(ProcessExit how) {
  ended_ = true;
  world_.on_exit(*this, how);
}

std::string SimulatedNode::Name() const { return name_.empty() ? KindName(kind_) : name_; }

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
    join_.emplace(kJoinTimeout, world_.time.Now());
    Register(/*joined=*/false);
  });
}

// `joined`: it has a node id, and reports its endpoints.
void SimulatedNode::Register(bool joined) {
  RegisterRequest request;
  request.set_protocol_version(kControlVersion);
  request.set_kind(kind_);
  request.set_host("simulated");
  const uint32_t hosts = world_.options.hosts;
  if (hosts > 0) request.set_host_id(1 + incarnation_ % hosts);
  request.set_incarnation(incarnation_);
  request.set_spare(spare_);
  if (kind_ == WORKER && world_.options.config.model().external()) {
    *request.mutable_blocks() = world_.options.blocks;
  }
  if (joined) {
    for (std::string& endpoint : LaneEndpoints()) request.add_lane_endpoints(std::move(endpoint));
  }
  const absl::StatusOr<RegisterReply> reply = register_(request);
  switch (join_->OnReply(reply.status(), world_.time.Now())) {
    case JoinCore::Next::kAskAgain:
      return Later(kTickInterval, [this, joined] { Register(joined); });
    case JoinCore::Next::kNotNeeded:
      return End(ProcessExit::kZero);
    case JoinCore::Next::kFail:
      return Exit(absl::StrCat(" cannot join: ", reply.status().message()), ProcessExit::kError);
    case JoinCore::Next::kJoined:
      break;
  }
  if (!joined) {
    node_id_ = reply->node_id();
    name_ = reply->name();
    job_ = reply->job();
    config_ = reply->config();
    world_.Say(absl::StrCat(Name(), " joins"));
    if (!LaneEndpoints().empty()) return Register(/*joined=*/true);
  }
  core_.emplace(*reply, kControlCallTimeout, world_.time.Now());
  Beat();
}

void SimulatedNode::Beat() {
  HeartbeatRequest request = core_->Begin();
  Report(request);
  core_->Complete(asks_to_leave_, absl::OkStatus(), request);
  const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(world_.random);
  // In flight, the heartbeat does not depend on the node: a frozen or dead node does not delay it.
  world_.time.Schedule(world_.options.max_control_delay * fraction,
                       [this, request = std::move(request)] { SendBeat(request); });
}

// Handles the request at the coordinator.
void SimulatedNode::SendBeat(const HeartbeatRequest& request) {
  absl::StatusOr<HeartbeatReply> reply = absl::UnavailableError("the link is cut");
  if (!world_.IsCut(node_id_, 0)) {
    if (world_.coordinator_frozen) {
      world_.waiting_calls.emplace_back([this, request] { SendBeat(request); });
      return;
    }
    reply = heartbeat_(request);
  }
  if (reply.ok() && world_.IsCut(0, node_id_)) reply = absl::UnavailableError("the link is cut");
  After(world_.options.max_control_delay,
        [this, request, reply = std::move(reply)] { OnBeatReply(request, reply); });
}

void SimulatedNode::OnBeatReply(const HeartbeatRequest& sent,
                                const absl::StatusOr<HeartbeatReply>& reply) {
  const BeatCore::Verdict verdict = core_->OnReply(reply, world_.time.Now());
  if (verdict.end.has_value()) {
    if (absl::IsNotFound(*verdict.end)) ++world_.fenced;
    if (reply.ok() && !reply->leave()) return End(ExitOf(*verdict.end));
    const bool unmissed = reply.ok() && world_.options.plant == PlantedBug::kSupervisor;
    return Exit(absl::StrCat(" ends: ", verdict.end->message()),
                unmissed ? ProcessExit::kZero : ExitOf(*verdict.end));
  }
  if (verdict.running) {
    if (core_->TakesView(*reply)) {
      blocks_ = reply->view().blocks();
      OnView(reply->view());
    }
    OnReply(*reply, sent);
    Tick();
  }
  Later(world_.options.beat_interval, [this] { Beat(); });
}

}  // namespace tug
