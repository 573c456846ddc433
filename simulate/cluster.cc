#include "simulate/cluster.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "coordinator/recalled_actions.h"
#include "exchange/view_lanes.h"
#include "simulate/coordinator_actions.h"
#include "simulate/program_node.h"
#include "simulate/server_node.h"
#include "simulate/worker_node.h"

namespace tug {
namespace {

// Of what kinds a simulated job has.
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

constexpr uint64_t kMostEvents = 100'000'000;
constexpr absl::Duration kTick = absl::Milliseconds(50);  // of the coordinator

CoordinatorOptions MakeCoordinatorOptions(const SimulationOptions& options,
                                          const SegmentTable& table, const SimulatedStore& store) {
  CoordinatorOptions made;
  made.config = options.config;
  made.layout.blocks = options.blocks;
  for (uint32_t id = 0; id < table.size(); ++id) {
    made.layout.segment_bytes.push_back(table.segment(id).bytes());
  }
  made.job = options.seed;
  made.run_dir = "simulated";
  made.start = StartFrom(store);
  return made;
}

// Nodes and coordinator of one run, and what befalls them.
class ClusterRun {
 public:
  ClusterRun(const SimulationOptions& options, const SegmentTable& table, SimulatedStore& store,
             SimulationResult& result);
  void Run();

 private:
  using Nodes = std::vector<std::unique_ptr<SimulatedNode>>;

  // A process that the supervisor starts.
  struct Process {
    NodeKind kind = SERVER;
    SimulatedNode* node = nullptr;  // null: it does not run, or is the coordinator
    absl::Duration start_takes;     // the next time
    FaultEvent next_kill = {};      // of its replacement; none if it lasts for ever
    uint64_t starts = 0;
    absl::Time started_at;
    int quick_exits = 0;     // in a row
    bool is_missed = false;  // it was lost and its replacement is not up
  };

  Nodes& NodesOf(NodeKind kind) { return kind == SERVER ? servers_ : workers_; }
  void AddNode(NodeKind kind, bool spare = false);
  // Carries out what the supervisor decides.
  void Supervise();
  void Start(const StartProcess& start);
  void BringUp(const StartProcess& start);
  void StartNode(Process& process, bool spare);
  void Interrupt();
  void Stop();
  void End(const EndJob& end);
  void OnExit(const std::string& name, ProcessExit how);
  // Empty: its process has exited.
  std::string NameOf(const SimulatedNode& node) const;
  // Lets the supervisor see the end of the job.
  void EndProcesses();
  bool Answers() const { return coordinator_ != nullptr && !world_.coordinator_frozen; }
  void KillCoordinator(const FaultEvent& fault);
  // Of a process that `fault` kills.
  static void SetNextStart(Process& process, FaultEvent fault);
  void FreezeCoordinator(const FaultEvent& fault);
  void ThawCoordinator();
  void TakeUp();
  void Drain(SimulatedNode& node, const FaultEvent& fault);
  void Befall(const FaultEvent& fault);
  SimulatedNode* Victim(NodeKind kind, const FaultEvent& fault);
  void Kill(SimulatedNode& node, const FaultEvent& fault);
  void Freeze(SimulatedNode& node, const FaultEvent& fault);
  void Cut(SimulatedNode& node, const FaultEvent& fault);
  void LoseKind(SimulatedNode& server, const FaultEvent& fault);
  // A cut until the fault is over.
  void CutFor(const SimulatedWorld::Cut& cut, absl::Duration lasts);
  // What ends a fault that lasts.
  void AfterFault(absl::Duration lasts, std::function<void()> end);
  void Tick();
  void Collect();

  const SimulationOptions& options_;
  SimulationResult& result_;
  SimulatedTime time_;
  std::mt19937_64 random_;
  SimulatedNetwork network_;
  const CoordinatorOptions coordinator_options_;
  MemoryJournal journal_;
  std::unique_ptr<Coordinator> coordinator_;  // null while there is none
  SimulatedWorld world_;
  CoordinatorActions actions_;
  SupervisorCore supervisor_;
  std::map<std::string, Process> processes_;
  std::optional<EndJob> end_;  // the supervisor's
  Nodes servers_;
  Nodes workers_;
  uint64_t incarnation_ = 1;
};

// Node ids of endpoints: what a link is cut between.
uint32_t NodeOf(PeerId peer) {
  return IsWorker(peer) ? peer & ~kWorkerBit : (peer - LanePeer(0)) / kMaxLanesPerServer;
}

ClusterRun::ClusterRun(const SimulationOptions& options, const SegmentTable& table,
                       SimulatedStore& store, SimulationResult& result)
    : options_(options),
      result_(result),
      random_(options.seed),
      network_(options.seed, options.network, time_),
      coordinator_options_(MakeCoordinatorOptions(options, table, store)),
      coordinator_(std::make_unique<Coordinator>(coordinator_options_)),
      world_{options, table, time_, network_, store, random_, {}},
      actions_(world_, result),
      supervisor_(options.supervision) {
  coordinator_->KeepJournal(&journal_);
  world_.clocks.assign(options.config.cluster().virtual_workers(), 0);
  world_.on_exit = [this](SimulatedNode& node, ProcessExit how) {
    if (const std::string name = NameOf(node); !name.empty()) OnExit(name, how);
  };
  network_.set_cut([this](PeerId from, PeerId to, MessageKind kind) {
    return !world_.cuts.empty() && world_.IsCut(NodeOf(from), NodeOf(to), kind);
  });
}

// ---- processes ----

void ClusterRun::AddNode(NodeKind kind, bool spare) {
  const std::string name = absl::StrCat(kind == SERVER ? "server-" : "worker-", processes_.size());
  processes_[name].kind = kind;
  supervisor_.AddNode(name, kind == SERVER, spare, time_.Now());
  Supervise();
}

void ClusterRun::Supervise() {
  for (const SupervisorAction& action : supervisor_.TakeActions()) {
    if (const auto* start = std::get_if<StartProcess>(&action)) Start(*start);
    if (std::holds_alternative<StopCoordinator>(action)) Stop();
    if (const auto* end = std::get_if<EndJob>(&action)) End(*end);
  }
  if (supervisor_.NextDeadline() == absl::InfiniteFuture()) return;
  time_.Schedule(supervisor_.NextDeadline() - time_.Now(), [this] {
    supervisor_.OnTick(time_.Now());
    Supervise();
  });
}

void ClusterRun::Start(const StartProcess& start) {
  Process& process = processes_[start.name];
  process.started_at = time_.Now();
  ++process.starts;
  if (process.start_takes == absl::ZeroDuration()) return BringUp(start);
  time_.Schedule(process.start_takes, [this, start, &process, starts = process.starts] {
    if (process.starts == starts) BringUp(start);
  });
}

void ClusterRun::BringUp(const StartProcess& start) {
  Process& process = processes_[start.name];
  if (std::exchange(process.is_missed, false)) actions_.stalls().OnFaultOver(time_.Now());
  if (start.name != kCoordinatorProcess) {
    StartNode(process, start.spare);
  } else {
    if (start.again) TakeUp();
    supervisor_.OnReady(time_.Now());
    Supervise();
  }
  process.start_takes = absl::ZeroDuration();
  const FaultEvent kill = std::exchange(process.next_kill, {});
  if (kill.lasts == absl::InfiniteDuration()) return;
  time_.Schedule(kill.up, [this, kill, &process, starts = process.starts] {
    if (process.starts != starts || actions_.ended()) return;
    if (kill.kind == FaultKind::kKillCoordinator) return KillCoordinator(kill);
    if (process.node != nullptr) Kill(*process.node, kill);
  });
}

void ClusterRun::Interrupt() {
  world_.Say("the user interrupts the job");
  supervisor_.OnInterrupt(time_.Now());
  Supervise();
}

// A signal to a frozen coordinator is handled when that continues.
void ClusterRun::Stop() {
  if (coordinator_ == nullptr) return;
  if (world_.coordinator_frozen) {
    world_.waiting_calls.emplace_back([this] { Stop(); });
    return;
  }
  result_.stopped_waiting |= coordinator_->phase() == WAITING;
  actions_.told().OnStopAnswer(coordinator_->OnStop(time_.Now()).message());
  actions_.Run(*coordinator_);
}

void ClusterRun::End(const EndJob& end) {
  end_ = end;
  if (actions_.ended()) return;
  const bool lost = end.why == EndJob::Why::kProcessLost;
  const std::string text = lost ? absl::StrCat(end.process, " ended, so the job was ended")
                                : "interrupted twice: all processes were killed";
  const bool is_so = lost ? processes_[end.process].quick_exits >= kMostQuickDeaths
                          : end.why == EndJob::Why::kInterruptedTwice &&
                                result_.faults[static_cast<size_t>(FaultKind::kStop)] > 0;
  const bool done = lost && coordinator_ != nullptr && coordinator_->phase() == DONE;
  if (!is_so || done)
    result_.untrue.push_back(
        absl::StrCat("people are told \"", text, "\"", done ? ", and it was done" : ""));
  world_.Say(text);
  actions_.Kill(absl::AbortedError(text));
}

void ClusterRun::OnExit(const std::string& name, ProcessExit how) {
  Process& process = processes_[name];
  process.node = nullptr;
  const bool quick = time_.Now() - process.started_at < options_.supervision.quick_death;
  process.quick_exits = quick ? process.quick_exits + 1 : 0;
  if (how != ProcessExit::kZero && !std::exchange(process.is_missed, true)) {
    actions_.stalls().OnFault(time_.Now());
  }
  supervisor_.OnExit(name, how, time_.Now());
  Supervise();
}

std::string ClusterRun::NameOf(const SimulatedNode& node) const {
  for (const auto& [name, process] : processes_) {
    if (process.node == &node) return name;
  }
  return "";
}

void ClusterRun::StartNode(Process& process, bool spare) {
  const auto do_register = [this](const RegisterRequest& request) -> absl::StatusOr<RegisterReply> {
    if (!Answers()) return absl::UnavailableError("no coordinator answers");
    absl::StatusOr<RegisterReply> reply = coordinator_->OnRegister(request, time_.Now());
    actions_.Run(*coordinator_);
    return reply;
  };
  const auto heartbeat = [this](const HeartbeatRequest& request) -> absl::StatusOr<HeartbeatReply> {
    if (!Answers()) return absl::UnavailableError("no coordinator answers");
    absl::StatusOr<HeartbeatReply> reply = coordinator_->OnHeartbeat(request, time_.Now());
    actions_.Run(*coordinator_);
    return reply;
  };
  std::unique_ptr<SimulatedNode> node;
  const NodeKind kind = process.kind;
  if (kind == SERVER) {
    node = std::make_unique<SimulatedServer>(world_, kind, incarnation_++, do_register, heartbeat,
                                             spare);
  } else if (options_.config.model().external()) {
    node = std::make_unique<SimulatedProgram>(world_, kind, incarnation_++, do_register, heartbeat);
  } else {
    node = std::make_unique<SimulatedWorker>(world_, kind, incarnation_++, do_register, heartbeat);
  }
  NodesOf(kind).push_back(std::move(node));
  process.node = NodesOf(kind).back().get();
  process.node->Start();
}

// ---- faults ----

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
  world_.Say("the coordinator stands still");
  world_.coordinator_frozen = true;
  AfterFault(fault.lasts, [this] { ThawCoordinator(); });
}

// Its next tick may come before the calls that waited.
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

void ClusterRun::TakeUp() {
  coordinator_ = std::make_unique<Coordinator>(coordinator_options_);
  RecalledActions recalled;
  for (const JournalRecord& record : journal_.records()) {
    const absl::Status obeyed = coordinator_->Replay(record);
    TUG_CHECK(obeyed.ok()) << obeyed.ToString();
    recalled.Add(record, coordinator_->TakeActions());  // noted when they were carried out
  }
  coordinator_->KeepJournal(&journal_);
  coordinator_->OnTakenUp(time_.Now());
  world_.Say("another coordinator takes the job up");
  actions_.Run(*coordinator_, recalled.TakeLeft());
}

void ClusterRun::Drain(SimulatedNode& node, const FaultEvent& fault) {
  if (!Answers()) return;
  const absl::StatusOr<DrainReply> reply = coordinator_->OnDrain(node.node_id(), time_.Now());
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
    world_.Say(absl::StrCat(node.Name(), " goes on"));
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

// Lanes send some kinds to each other, the others are between lanes and workers.
void ClusterRun::LoseKind(SimulatedNode& server, const FaultEvent& fault) {
  SimulatedWorld::Cut cut{.node = server.node_id(), .kind = fault.loses};
  const SimulatedNode* const other = Victim(IsBetweenLanes(fault.loses) ? SERVER : WORKER, fault);
  if (other != nullptr && other != &server) cut.other = other->node_id();
  CutFor(cut, fault.lasts);
}

void ClusterRun::CutFor(const SimulatedWorld::Cut& cut, absl::Duration lasts) {
  const auto place = world_.cuts.insert(world_.cuts.end(), cut);
  AfterFault(lasts, [this, place] {
    world_.Say(absl::StrCat("the link of node ", place->node, " is whole again"));
    world_.cuts.erase(place);
  });
}

// ---- the run ----

void ClusterRun::Tick() {
  if (Answers()) {
    coordinator_->OnTick(time_.Now());
    actions_.Run(*coordinator_);
  }
  time_.Schedule(kTick, [this] { Tick(); });
}

void ClusterRun::Run() {
  if (options_.watch != nullptr) options_.watch->Begin(time_);
  const ClusterConfig& cluster = options_.config.cluster();
  for (uint32_t i = 0; i < cluster.servers(); ++i) AddNode(SERVER);
  for (uint32_t i = 0; i < cluster.workers(); ++i) AddNode(WORKER);
  for (uint32_t i = 0; i < cluster.spare_servers(); ++i) AddNode(SERVER, true);
  supervisor_.Begin(time_.Now());
  Supervise();
  for (const FaultEvent& fault : options_.faults) {
    time_.Schedule(fault.at, [this, &fault] { Befall(fault); });
  }
  if (!options_.faults.empty()) Tick();
  if (options_.stop_after < absl::InfiniteDuration()) {
    time_.Schedule(options_.stop_after, [this] { Interrupt(); });
  }
  uint64_t events = 0;
  const auto done = [&] { return actions_.ended() || ++events > kMostEvents; };
  const bool ended = time_.RunUntil(done, absl::UnixEpoch() + options_.longest) && actions_.ended();
  if (!ended) result_.status = absl::DeadlineExceededError("the simulated job does not end");
  Collect();
  if (ended && !result_.killed) EndProcesses();
}

void ClusterRun::EndProcesses() {
  const bool done = result_.status.ok();
  coordinator_.reset();
  actions_.Drop();
  OnExit(kCoordinatorProcess, done ? ProcessExit::kZero : ProcessExit::kError);
  const absl::Time latest = time_.Now() + options_.supervision.exit_time;
  time_.RunUntil([this] { return end_.has_value(); }, latest);
  const auto why = done ? EndJob::Why::kDone : EndJob::Why::kCoordinatorFailed;
  if (!end_.has_value() || end_->why != why) {
    result_.untrue.emplace_back("the supervisor reports another end than the coordinator");
  }
}

void ClusterRun::Collect() {
  result_.most_lead = world_.most_lead;
  result_.fenced = world_.fenced;
  // Who has been left behind knows nothing of the end.
  std::set<uint32_t> members;
  if (coordinator_ != nullptr) {
    StatusReply status = coordinator_->OnStatus(time_.Now());
    if (options_.plant == PlantedBug::kStatus) {
      status.set_step(result_.first_step + result_.losses.size());
    }
    for (const NodeStatus& node : status.nodes()) members.insert(node.node_id());
    if (status.phase() == DONE && actions_.ended()) actions_.told().OnDone(status);
  }
  for (const Nodes* nodes : {&servers_, &workers_}) {
    for (const auto& node : *nodes) {
      if (!node->dead() && members.contains(node->node_id())) node->Collect(result_);
    }
  }
  result_.longest_stall = actions_.stalls().longest();
  result_.messages = network_.sent_messages();
  result_.virtual_time = time_.Now() - absl::UnixEpoch();
}

}  // namespace

SimulationResult Simulate(const SimulationOptions& options) {
  SimulationResult result;
  absl::StatusOr<SegmentTable> table =
      SegmentTable::Create(options.blocks, options.config.comm().segment_elements());
  TUG_CHECK(table.ok()) << table.status().ToString();
  for (uint32_t b = 0; b < table->num_blocks(); ++b) {
    result.weights.emplace_back(table->block_elements(b));
  }
  result.steps.assign(options.config.cluster().virtual_workers(), 0);
  SimulatedStore own;
  SimulatedStore& store = options.store != nullptr ? *options.store : own;
  ++store.runs;
  result.first_step = StartFrom(store).version;
  result.start_version = result.first_step;
  ClusterRun(options, *table, store, result).Run();
  return result;
}

}  // namespace tug
