// SPDX-License-Identifier: Apache-2.0
// Faults of a simulated job.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "coordinator/recalled_actions.h"
#include "lab/simulate/cluster_run.h"

namespace tug {
namespace {

// Whether lanes send this kind to each other; lists the kinds that a simulated job has.
bool IsBetweenLanes(MessageKind kind) {
  switch (kind) {
    case MessageKind::kNorms:
    case MessageKind::kNormsWanted:
    case MessageKind::kUpdate:
    case MessageKind::kCopied:
    case MessageKind::kCopyWanted:
    case MessageKind::kCopy:
      return true;
    default:
      return false;
  }
}

}  // namespace

SimulatedNode* ClusterRun::Victim(NodeKind kind, const FaultEvent& fault) {
  std::vector<SimulatedNode*> living;
  for (auto& node : NodesOf(kind)) {
    if (!node->dead() && !node->frozen() && node->node_id() != 0) living.push_back(node.get());
  }
  return living.empty() ? nullptr : living[fault.pick % living.size()];
}

void ClusterRun::Befall(const FaultEvent& fault) {
  if (actions_.ended()) return;
  const bool of_server =
      fault.kind == FaultKind::kKillServer || fault.kind == FaultKind::kFreezeServer ||
      fault.kind == FaultKind::kCutServer || fault.kind == FaultKind::kDrainServer ||
      fault.kind == FaultKind::kLeaveServer || fault.kind == FaultKind::kLoseKind;
  SimulatedNode* const victim = Victim(of_server ? SERVER : WORKER, fault);
  switch (fault.kind) {
    case FaultKind::kJoinWorker:
      AddNode(WORKER);
      break;
    case FaultKind::kJoinServer:
      AddNode(SERVER);
      break;
    case FaultKind::kStop:
      Interrupt();
      break;
    case FaultKind::kKillJob:
      world_.Say("the whole job is killed");
      actions_.Kill(absl::CancelledError("the whole job was killed"));
      break;
    case FaultKind::kKillCoordinator:
      KillCoordinator(fault);
      break;
    case FaultKind::kFreezeCoordinator:
      if (!Answers()) return;
      FreezeCoordinator(fault);
      break;
    default:
      if (victim == nullptr) return;
      world_.Say(absl::StrCat(victim->Name(), ": ", FaultName(fault.kind)));
  }
  ++result_.faults[static_cast<size_t>(fault.kind)];
  actions_.stalls().OnDisturbed(time_.Now());
  switch (fault.kind) {
    case FaultKind::kKillWorker:
    case FaultKind::kKillServer:
      return Kill(*victim, fault);
    case FaultKind::kFreezeWorker:
    case FaultKind::kFreezeServer:
      return Freeze(*victim, fault);
    case FaultKind::kCutWorker:
    case FaultKind::kCutServer:
      return Cut(*victim, fault);
    case FaultKind::kDrainWorker:
    case FaultKind::kDrainServer:
      return Drain(*victim, fault);
    case FaultKind::kLeaveWorker:
    case FaultKind::kLeaveServer:
      return victim->AskToLeave();
    case FaultKind::kLoseKind:
      return LoseKind(*victim, fault);
    default:
      return;
  }
}

void ClusterRun::KillCoordinator(const FaultEvent& fault) {
  world_.Say("the coordinator is killed");
  coordinator_.reset();
  actions_.Drop();
  ThawCoordinator();
  SetNextStart(processes_[kCoordinatorProcess], fault);
  OnExit(kCoordinatorProcess, ProcessExit::kKilled);
}

void ClusterRun::SetNextStart(Process& process, FaultEvent fault) {
  process.start_takes = fault.lasts;
  if (fault.times_more-- > 0) process.next_kill = fault;
}

void ClusterRun::FreezeCoordinator(const FaultEvent& fault) {
  world_.Say("the coordinator is frozen");
  world_.coordinator_frozen = true;
  AfterFault(fault.lasts, [this] { ThawCoordinator(); });
}

// Its next tick may come before the waiting calls.
void ClusterRun::ThawCoordinator() {
  world_.coordinator_frozen = false;
  for (std::function<void()>& call : std::exchange(world_.waiting_calls, {})) {
    const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
    time_.Schedule(options_.max_control_delay * fraction, std::move(call));
  }
}

void ClusterRun::AfterFault(absl::Duration lasts, std::function<void()> end) {
  if (lasts == absl::InfiniteDuration()) return;
  actions_.stalls().OnFault(time_.Now());
  time_.Schedule(lasts, [this, end = std::move(end)] {
    actions_.stalls().OnFaultOver(time_.Now());
    end();
  });
}

void ClusterRun::RecoverState() {
  coordinator_ = std::make_unique<Coordinator>(coordinator_options_);
  RecalledActions recalled;
  for (const JournalRecord& record : journal_.records()) {
    const absl::Status obeyed = coordinator_->Replay(record);
    TUG_CHECK(obeyed.ok()) << obeyed.ToString();
    recalled.Add(record, coordinator_->TakeActions());  // noted when they were carried out
  }
  coordinator_->KeepJournal(&journal_);
  coordinator_->OnTakenUp(time_.Now());
  world_.Say("a new coordinator recovers the job");
  actions_.Run(*coordinator_, recalled.TakeLeft());
}

void ClusterRun::Drain(SimulatedNode& node, const FaultEvent& fault) {
  if (!Answers()) return;
  const absl::StatusOr<DrainReply> reply = coordinator_->OnDrain(node.Name(), time_.Now());
  actions_.Run(*coordinator_);
  if (!reply.ok()) return world_.Say(std::string(reply.status().message()));
  AfterFault(fault.lasts, [this, kind = node.kind()] {
    if (!actions_.ended()) AddNode(kind);
  });
}

void ClusterRun::Kill(SimulatedNode& node, const FaultEvent& fault) {
  const std::string name = NameOf(node);
  node.Die();
  if (fault.seen_at_once && Answers() && node.node_id() != 0) {
    coordinator_->OnGone(node.node_id(), options_.seed, time_.Now());
    actions_.Run(*coordinator_);
  }
  if (name.empty() || fault.lasts == absl::InfiniteDuration()) return;
  SetNextStart(processes_[name], fault);
  OnExit(name, fault.seen_at_once ? ProcessExit::kKilled : ProcessExit::kConnectionLost);
}

void ClusterRun::Freeze(SimulatedNode& node, const FaultEvent& fault) {
  node.Freeze();
  AfterFault(fault.lasts, [this, &node] {
    if (node.dead()) return;
    world_.Say(absl::StrCat(node.Name(), " continues"));
    node.Thaw();
  });
}

void ClusterRun::Cut(SimulatedNode& node, const FaultEvent& fault) {
  SimulatedWorld::Cut cut{.node = node.node_id(), .out = fault.cuts_out, .in = fault.cuts_in};
  if (fault.cut_from == FaultEvent::From::kCoordinator) cut.other = 0;
  if (fault.cut_from == FaultEvent::From::kOneNode) {
    const SimulatedNode* const other = Victim(node.kind() == SERVER ? WORKER : SERVER, fault);
    if (other != nullptr) cut.other = other->node_id();
  }
  CutFor(cut, fault.lasts);
}

// Lanes send some kinds to each other; the others are between lanes and workers.
void ClusterRun::LoseKind(SimulatedNode& server, const FaultEvent& fault) {
  SimulatedWorld::Cut cut{.node = server.node_id(), .kind = fault.loses};
  const SimulatedNode* const other = Victim(IsBetweenLanes(fault.loses) ? SERVER : WORKER, fault);
  if (other != nullptr && other != &server) cut.other = other->node_id();
  CutFor(cut, fault.lasts);
}

void ClusterRun::CutFor(const SimulatedWorld::Cut& cut, absl::Duration lasts) {
  const auto place = world_.cuts.insert(world_.cuts.end(), cut);
  AfterFault(lasts, [this, place] {
    world_.Say(absl::StrCat("the link of node ", place->node, " is restored"));
    world_.cuts.erase(place);
  });
}

}  // namespace tug
