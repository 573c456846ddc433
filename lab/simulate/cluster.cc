// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/cluster.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "blocks/view_lanes.h"
#include "coordinator/membership/node_names.h"
#include "lab/simulate/checks/given_name.h"
#include "lab/simulate/cluster_run.h"
#include "lab/simulate/program_node.h"
#include "lab/simulate/server_node.h"
#include "lab/simulate/worker_node.h"
#include "proto/process_name.h"

namespace tug {
namespace {

constexpr uint64_t kEventLimit = 100'000'000;
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

// Node id of an endpoint; links are cut between nodes.
uint32_t NodeOf(PeerId peer) {
  return IsWorker(peer) ? peer & ~kWorkerBit : (peer - LanePeer(0)) / kMaxLanesPerServer;
}

}  // namespace

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
  const uint32_t index = added_[kind]++;
  const std::string name = ProcessName(KindName(kind), index);
  processes_[name].kind = kind;
  processes_[name].index = index;
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
    if (start.again) RecoverState();
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

// A frozen coordinator handles the signal when it continues.
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
  const std::string text = lost ? absl::StrCat(end.process, " exited; the job was stopped")
                                : "interrupted twice: all processes were killed";
  const bool is_so = lost ? processes_[end.process].quick_exits >= kMaxQuickDeaths
                          : end.why == EndJob::Why::kInterruptedTwice &&
                                result_.faults[static_cast<size_t>(FaultKind::kStop)] > 0;
  const bool done = lost && coordinator_ != nullptr && coordinator_->phase() == DONE;
  if (!is_so || done)
    result_.untrue.push_back(
        absl::StrCat("the user is told \"", text, "\"", done ? ", but the job was done" : ""));
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

void ClusterRun::CheckName(const RegisterRequest& request,
                           const absl::StatusOr<RegisterReply>& reply) {
  const bool again = request.lane_endpoints_size() > 0;
  if (again || !reply.ok()) return;
  const std::string wrong = WrongName(request, *reply, coordinator_->OnStatus(time_.Now()));
  if (!wrong.empty()) result_.untrue.push_back(wrong);
}

void ClusterRun::StartNode(Process& process, bool spare) {
  const auto do_register =
      [this, index = process.index](const RegisterRequest& sent) -> absl::StatusOr<RegisterReply> {
    if (!Answers()) return absl::UnavailableError("the coordinator does not reply");
    RegisterRequest request = sent;
    request.set_index(index);
    absl::StatusOr<RegisterReply> reply = coordinator_->OnRegister(request, time_.Now());
    CheckName(request, reply);
    actions_.Run(*coordinator_);
    return reply;
  };
  const auto heartbeat = [this](const HeartbeatRequest& request) -> absl::StatusOr<HeartbeatReply> {
    if (!Answers()) return absl::UnavailableError("the coordinator does not reply");
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
  const auto done = [&] { return actions_.ended() || ++events > kEventLimit; };
  const bool ended = time_.RunUntil(done, absl::UnixEpoch() + options_.longest) && actions_.ended();
  if (!ended) result_.status = absl::DeadlineExceededError("the simulated job did not end");
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
    result_.untrue.emplace_back("the supervisor reports a different end than the coordinator");
  }
}

void ClusterRun::Collect() {
  result_.max_lead = world_.max_lead;
  result_.fenced = world_.fenced;
  // Nodes that were left behind do not know of the end.
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
