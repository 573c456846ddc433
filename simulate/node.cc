#include "simulate/node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(20);
// After a heartbeat that nobody answered.
constexpr absl::Duration kAskAgain = absl::Milliseconds(100);

// Whether that is why a node cannot join the job.
bool HasEnded(const absl::Status& refusal) {
  return absl::IsOutOfRange(refusal) || absl::IsFailedPrecondition(refusal);
}

// How a node that HasEnded keeps out of the job exits: with an error if the job has failed.
ProcessExit ExitAfter(const absl::Status& refusal) {
  return absl::IsOutOfRange(refusal) ? ProcessExit::kZero : ProcessExit::kError;
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

std::string SimulatedNode::Name() const {
  return absl::StrCat(kind_ == SERVER ? "server " : "worker ", node_id_);
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
  const uint32_t hosts = world_.options.hosts;
  if (hosts > 0) request.set_host_id(1 + incarnation_ % hosts);
  request.set_incarnation(incarnation_);
  request.set_spare(spare_);
  if (kind_ == WORKER && world_.options.config.model().external()) {
    *request.mutable_blocks() = world_.options.blocks;
  }
  absl::StatusOr<RegisterReply> reply = register_(request);
  // Whose place it is to take is not missed yet, or it has waited for that in vain and is started
  // again, or there is no coordinator.
  if (absl::IsAborted(reply.status()) || absl::IsResourceExhausted(reply.status()) ||
      absl::IsUnavailable(reply.status())) {
    return Later(kTickInterval, [this] { Register(); });
  }
  if (HasEnded(reply.status())) return End(ExitAfter(reply.status()));
  TUG_CHECK(reply.ok()) << reply.status().ToString();
  node_id_ = reply->node_id();
  job_ = reply->job();
  config_ = reply->config();
  for (std::string& endpoint : LaneEndpoints()) request.add_lane_endpoints(std::move(endpoint));
  world_.Say(absl::StrCat(Name(), " joins"));
  if (request.lane_endpoints_size() > 0) {
    reply = register_(request);
    if (HasEnded(reply.status())) return End(ExitAfter(reply.status()));
    TUG_CHECK(reply.ok()) << reply.status().ToString();
  }
  Beat();
}

void SimulatedNode::Beat() {
  HeartbeatRequest request;
  request.set_node_id(node_id_);
  request.set_job(job_);
  request.set_known_view(known_view_);
  request.set_leaving(asks_to_leave_);
  Report(request);
  const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(world_.random);
  // On its way it needs nobody: neither a node that stands still nor one that dies holds it up.
  world_.time.Schedule(world_.options.max_control_delay * fraction,
                       [this, request = std::move(request)] { SendBeat(request); });
}

// The request is where the coordinator is.
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
  if (dead_) return;
  if (absl::IsUnavailable(reply.status())) return Later(kAskAgain, [this] { Beat(); });
  After(world_.options.max_control_delay, [this, request, reply = std::move(reply)] {
    if (absl::IsNotFound(reply.status())) {
      ++world_.fenced;
      return Exit(absl::StrCat(" ends: ", reply.status().message()), ProcessExit::kError);
    }
    TUG_CHECK(reply.ok()) << reply.status().ToString();
    OnBeatReply(request, *reply);
  });
}

void SimulatedNode::OnBeatReply(const HeartbeatRequest& sent, const HeartbeatReply& reply) {
  if (reply.has_view() && reply.view().number() > known_view_) {
    blocks_ = reply.view().blocks();
    OnView(reply.view());
    known_view_ = reply.view().number();
  }
  if (reply.phase() == DONE) return End(ProcessExit::kZero);
  if (reply.phase() == FAILED) return End(ProcessExit::kError);
  if (reply.leave()) {
    const bool missed = reply.replace() && world_.options.plant != PlantedBug::kSupervisor;
    return Exit(" leaves", missed ? ProcessExit::kError : ProcessExit::kZero);
  }
  OnReply(reply, sent);
  Tick();
  Later(world_.options.beat_interval, [this] { Beat(); });
}

}  // namespace tug
