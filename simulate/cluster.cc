#include "simulate/cluster.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <variant>

#include "base/check.h"
#include "simulate/nodes.h"

namespace tug {
namespace {

constexpr absl::Duration kLongestJob = absl::Hours(10);

// Carries out what the coordinator asks for.
class Actions {
 public:
  Actions(Coordinator& coordinator, SimulatedTime& time, SimulationResult& result)
      : coordinator_(coordinator), time_(time), result_(result) {}

  void Run() {
    // What is done may ask for more.
    for (auto actions = coordinator_.TakeActions(); !actions.empty();
         actions = coordinator_.TakeActions()) {
      for (Action& action : actions) std::visit([this](auto& a) { Do(a); }, action);
    }
  }
  bool ended() const { return ended_; }

 private:
  void Do(const CommitCheckpointAction& commit) {
    result_.checkpoints.push_back(commit.manifest.version());
    coordinator_.OnCheckpointCommitted(commit.manifest.version(), absl::OkStatus(), time_.Now());
  }
  void Do(const StepCompleted& step) { result_.losses.push_back(step.metrics.loss); }
  void Do(const EvalCompleted&) {}
  void Do(const NewBestAction&) {}
  void Do(const TraceCompleted&) {}
  void Do(const TuningAction& tuning) {
    result_.trials += std::holds_alternative<TrialMetrics>(tuning.event) ? 1 : 0;
  }
  void Do(const TimelineBegun& timeline) {
    ++result_.timelines;
    result_.losses.resize(std::min<size_t>(result_.losses.size(), timeline.version));
  }
  void Do(const NoticeAction& notice) { result_.notices.push_back(notice.text); }
  void Do(const JobEnded& end) {
    result_.status = end.status;
    ended_ = true;
  }

  Coordinator& coordinator_;
  SimulatedTime& time_;
  SimulationResult& result_;
  bool ended_ = false;
};

CoordinatorOptions MakeCoordinatorOptions(const SimulationOptions& options,
                                          const SegmentTable& table) {
  CoordinatorOptions made;
  made.config = options.config;
  made.layout.blocks = options.blocks;
  for (uint32_t id = 0; id < table.size(); ++id) {
    made.layout.segment_bytes.push_back(table.segment(id).bytes());
  }
  made.job = options.seed;
  made.run_dir = "simulated";
  return made;
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
  SimulatedTime time;
  std::mt19937_64 random(options.seed);
  SimulatedNetwork network(options.seed, options.network, time);
  Coordinator coordinator(MakeCoordinatorOptions(options, *table));
  Actions actions(coordinator, time, result);
  result.steps.assign(options.config.cluster().virtual_workers(), 0);
  SimulatedWorld world{options, *table, time, network, random, {}};
  world.clocks.assign(options.config.cluster().virtual_workers(), 0);

  const auto do_register = [&](const RegisterRequest& request) {
    absl::StatusOr<RegisterReply> reply = coordinator.OnRegister(request, time.Now());
    actions.Run();
    return reply;
  };
  const auto heartbeat = [&](const HeartbeatRequest& request) {
    absl::StatusOr<HeartbeatReply> reply = coordinator.OnHeartbeat(request, time.Now());
    actions.Run();
    return reply;
  };
  std::vector<std::unique_ptr<SimulatedServer>> servers;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
  uint64_t incarnation = 1;
  const auto start_server = [&] {
    servers.push_back(
        std::make_unique<SimulatedServer>(world, SERVER, incarnation++, do_register, heartbeat));
    servers.back()->Start();
  };
  const auto start_worker = [&] {
    workers.push_back(
        std::make_unique<SimulatedWorker>(world, WORKER, incarnation++, do_register, heartbeat));
    workers.back()->Start();
  };
  for (uint32_t i = 0; i < options.config.cluster().servers(); ++i) start_server();
  for (uint32_t i = 0; i < options.config.cluster().workers(); ++i) start_worker();

  // Of its own, so that a run without deaths stays the same.
  std::mt19937_64 deaths(options.seed + 1);
  const auto within = [&](absl::Duration most) {
    return most * std::uniform_real_distribution<double>(0.0, 1.0)(deaths);
  };
  const SimulationOptions::Kills& kills = options.kills;
  const auto kill = [&](auto& nodes, const std::function<void()>& start_another) {
    std::vector<SimulatedNode*> living;
    for (auto& node : nodes) {
      if (!node->dead()) living.push_back(node.get());
    }
    if (living.empty() || actions.ended()) return;
    SimulatedNode& victim = *living[deaths() % living.size()];
    victim.Die();
    ++result.kills;
    if (within(absl::Seconds(1)) < absl::Seconds(kills.seen_at_once)) {
      coordinator.OnGone(victim.node_id(), options.seed, time.Now());
      actions.Run();
    }
    time.Schedule(within(kills.most_restart), start_another);
  };
  for (uint32_t i = 0; i < kills.workers; ++i) {
    time.Schedule(within(kills.within), [&] { kill(workers, start_worker); });
  }
  for (uint32_t i = 0; i < kills.servers; ++i) {
    time.Schedule(within(kills.within), [&] { kill(servers, start_server); });
  }
  constexpr absl::Duration kTick = absl::Milliseconds(50);
  std::function<void()> tick = [&] {
    coordinator.OnTick(time.Now());
    actions.Run();
    time.Schedule(kTick, tick);
  };
  if (kills.workers + kills.servers > 0) tick();
  if (options.stop_after < absl::InfiniteDuration()) {
    time.Schedule(options.stop_after, [&] {
      coordinator.OnStop(time.Now());
      actions.Run();
    });
  }
  const bool ended =
      time.RunUntil([&] { return actions.ended(); }, absl::UnixEpoch() + kLongestJob);
  if (!ended) result.status = absl::DeadlineExceededError("the simulated job does not end");
  result.most_lead = world.most_lead;
  for (auto& server : servers) {
    if (!server->dead()) server->Collect(result);
  }
  for (auto& worker : workers) {
    if (!worker->dead()) worker->Collect(result);
  }
  result.messages = network.sent_messages();
  result.virtual_time = time.Now() - absl::UnixEpoch();
  return result;
}

}  // namespace tug
