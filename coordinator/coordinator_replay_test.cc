// SPDX-License-Identifier: Apache-2.0
// Tests over random histories that a coordinator rebuilt from its journal equals the one that kept
// it.

#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/coordinator_test_support.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

struct Describe {
  std::string operator()(const CommitCheckpointAction& commit) const {
    return absl::StrCat("commit ", commit.manifest.ShortDebugString(), " held ",
                        absl::StrJoin(commit.held, " "));
  }
  std::string operator()(const StepCompleted& step) const {
    return absl::StrCat("step ", step.metrics.step, " loss ", step.metrics.loss, " targets ",
                        step.metrics.targets, " seconds ", step.metrics.seconds);
  }
  std::string operator()(const EvalCompleted& eval) const {
    return absl::StrCat("eval ", eval.metrics.version, " ", eval.metrics.loss);
  }
  std::string operator()(const NoticeAction& notice) const { return "notice " + notice.text; }
  std::string operator()(const NewBestAction& best) const {
    return absl::StrCat("best ", best.best.version, " ", best.best.loss);
  }
  std::string operator()(const TraceCompleted& trace) const {
    return absl::StrCat("trace ", absl::StrJoin(trace.trace.silent, ", "));
  }
  std::string operator()(const TuningAction& tuning) const {
    return absl::StrCat("tuning ", tuning.event.index());
  }
  std::string operator()(const TimelineBegun& timeline) const {
    return absl::StrCat("timeline ", timeline.number, " ", timeline.version);
  }
  std::string operator()(const JobEnded&) const { return ""; }  // a replay does not end the job
};

std::vector<std::string> Described(std::vector<Action> actions) {
  std::vector<std::string> lines;
  for (const Action& action : actions) {
    if (std::string line = std::visit(Describe(), action); !line.empty()) lines.push_back(line);
  }
  return lines;
}

// Removes the nodes' current state, which is not journaled.
std::string WithoutCounters(StatusReply status) {
  for (NodeStatus& node : *status.mutable_nodes()) {
    node.clear_counters();
    node.clear_seconds_since_heartbeat();
  }
  status.clear_wait();  // for display; depends on the time
  return status.DebugString();
}

// A job with random events: nodes join, send heartbeats, work and are lost, checkpoints are
// committed, the user stops it. Nodes report more than correct ones would.
class RandomJob {
 public:
  explicit RandomJob(uint64_t seed) : random_(seed), options_(RandomOptions()) {
    coordinator_ = std::make_unique<Coordinator>(options_);
    coordinator_->KeepJournal(&journal_);
  }

  void Live(int events) {
    for (int i = 0; i < events; ++i) {
      now_ += absl::Milliseconds(Pick(100));
      OneEvent();
      Take();
    }
  }

  // Rebuilds the coordinator, and compares the output of both.
  void Compare() {
    SendAllHeartbeats();  // a heartbeat is news to leaving nodes
    Coordinator again(options_);
    std::vector<std::string> actions;
    for (const JournalRecord& record : journal_.records()) {
      ASSERT_TRUE(again.Replay(record).ok()) << record.DebugString();
      for (std::string& line : Described(again.TakeActions())) actions.push_back(std::move(line));
    }
    ASSERT_EQ(actions, actions_);
    ASSERT_EQ(WithoutCounters(again.OnStatus(now_)), WithoutCounters(coordinator_->OnStatus(now_)));
    const uint64_t records = journal_.position();
    const StatusReply status = coordinator_->OnStatus(now_);
    for (const NodeStatus& node : status.nodes()) {
      HeartbeatRequest beat;
      beat.set_job(kJob);
      beat.set_node_id(node.node_id());
      const auto expected = coordinator_->OnHeartbeat(beat, now_);
      const auto reply = again.OnHeartbeat(beat, now_);
      ASSERT_TRUE(expected.ok() && reply.ok());
      ASSERT_EQ(reply->DebugString(), expected->DebugString());
    }
    ASSERT_EQ(journal_.position(), records) << "they said nothing new";
    Take();
  }

  void SendAllHeartbeats() {
    const StatusReply status = coordinator_->OnStatus(now_);
    for (const NodeStatus& node : status.nodes()) {
      HeartbeatRequest beat;
      beat.set_job(kJob);
      beat.set_node_id(node.node_id());
      ASSERT_TRUE(coordinator_->OnHeartbeat(beat, now_).ok());
    }
    Take();
  }

  // Another coordinator recovers the job.
  void RecoverState() {
    auto another = std::make_unique<Coordinator>(options_);
    for (const JournalRecord& record : journal_.records()) {
      ASSERT_TRUE(another->Replay(record).ok());
      another->TakeActions();
    }
    coordinator_ = std::move(another);
    coordinator_->KeepJournal(&journal_);
    coordinator_->OnTakenUp(now_);
    Take();
  }

  const MemoryJournal& journal() const { return journal_; }
  const Coordinator& coordinator() const { return *coordinator_; }
  size_t actions() const { return actions_.size(); }

 private:
  struct Node {
    NodeKind kind = SERVER;
    uint32_t id = 0;
    View view;
    uint32_t next_view = 0;
    uint64_t clock = 0;
    bool started = false;
    bool leaving = false;
    HeartbeatReply reply;  // newest
    HeartbeatRequest last;
  };

  uint64_t Pick(uint64_t count) { return random_() % count; }
  bool Happens(int percent) { return Pick(100) < static_cast<uint64_t>(percent); }

  CoordinatorOptions RandomOptions() {
    const auto servers = static_cast<uint32_t>(1 + Pick(2));
    const auto workers = static_cast<uint32_t>(1 + Pick(3));
    CoordinatorOptions options = JobUnderTest::Options(servers, workers, 8 + Pick(80), 0,
                                                       workers + static_cast<uint32_t>(Pick(3)));
    JobConfig& config = options.config;
    constexpr SyncConfig::Policy kPolicies[] = {SyncConfig::BSP, SyncConfig::SSP, SyncConfig::ASP};
    config.mutable_sync()->set_policy(kPolicies[Pick(3)]);
    config.mutable_sync()->set_staleness(static_cast<uint32_t>(Pick(4)));
    config.mutable_sync()->set_replicas(static_cast<uint32_t>(1 + Pick(2)));
    config.mutable_cluster()->set_spare_servers(static_cast<uint32_t>(Pick(2)));
    constexpr FaultConfig::WorkerLoss kLosses[] = {FaultConfig::REASSIGN, FaultConfig::WAIT,
                                                   FaultConfig::SHRINK};
    config.mutable_fault()->set_on_worker_loss(kLosses[Pick(3)]);
    config.mutable_fault()->set_max_rollbacks(static_cast<uint32_t>(Pick(4)));
    config.mutable_checkpoint()->set_keep_best(Happens(50));
    config.mutable_train()->set_eval_interval(static_cast<uint32_t>(Pick(4)));
    config.mutable_train()->set_patience(static_cast<uint32_t>(Pick(3)));
    if (Happens(30)) {
      config.mutable_trace()->set_steps(2);
      config.mutable_trace()->set_first_step(2);
    }
    return options;
  }

  void Take() {
    for (Action& action : coordinator_->TakeActions()) {
      if (const auto* commit = std::get_if<CommitCheckpointAction>(&action)) {
        commits_.push_back(commit->manifest.version());
      }
      if (std::string line = std::visit(Describe(), action); !line.empty()) {
        actions_.push_back(line);
      }
    }
  }

  void OneEvent() {
    const uint64_t event = Pick(100);
    if (event < 8) return Join();
    if (event < 70 && !nodes_.empty()) return Beat(nodes_[Pick(nodes_.size())]);
    if (event < 80 && !commits_.empty()) return AnswerCommit();
    if (event < 82 && !nodes_.empty()) return Lose();
    if (event == 82) return Silence();
    if (event == 83 && Happens(8)) {
      coordinator_->OnStop(now_);
      return;
    }
    if (event == 84 && !nodes_.empty()) {
      coordinator_->OnDrain(NameOf(nodes_[Pick(nodes_.size())].id), now_).IgnoreError();
      return;
    }
    if (event == 85 && Happens(5)) return coordinator_->OnTrouble("the disk is full", now_);
    coordinator_->OnTick(now_);
  }

  // Empty: not a member.
  std::string NameOf(uint32_t id) const {
    const StatusReply status = coordinator_->OnStatus(now_);
    for (const NodeStatus& node : status.nodes()) {
      if (node.node_id() == id) return node.name();
    }
    return "";
  }

  void Join() {
    RegisterRequest request;
    request.set_protocol_version(kControlVersion);
    request.set_kind(Happens(50) ? SERVER : WORKER);
    request.set_host("host");
    request.set_incarnation(++incarnation_);
    if (incarnation_ % 2 == 0) request.set_index(static_cast<uint32_t>(incarnation_ % 5));
    request.set_spare(request.kind() == SERVER && Happens(30));
    const auto reply = coordinator_->OnRegister(request, now_);
    if (!reply.ok()) return;
    if (request.kind() == SERVER && Happens(90)) {
      for (int lane = 0; lane < 2; ++lane) {
        request.add_lane_endpoints(absl::StrCat("tcp://", incarnation_, ":", lane));
      }
      EXPECT_TRUE(coordinator_->OnRegister(request, now_).ok());
      EXPECT_TRUE(coordinator_->OnRegister(request, now_).ok()) << "again";
    }
    nodes_.push_back({.kind = request.kind(), .id = reply->node_id()});
  }

  void Beat(Node& node) {
    HeartbeatRequest beat;
    beat.set_job(kJob);
    beat.set_node_id(node.id);
    beat.set_known_view(node.view.number());
    beat.set_ready(node.view.number() > 0 && Happens(80));
    node.leaving |= Happens(1) && Happens(30);
    beat.set_leaving(node.leaving);
    beat.mutable_counters()->set_peak_memory_bytes(Pick(1000));
    beat.mutable_counters()->set_predicted_memory_bytes(1000 * node.id);
    beat.set_trace_sent(node.reply.trace_wanted() && Happens(50));
    if (Happens(5)) {
      Notice* notice = beat.add_notices();
      notice->set_key(absl::StrCat("key ", Pick(10)));
      notice->set_text("something happened");
    }
    if (node.kind == SERVER) {
      AddServersPart(node, beat);
    } else {
      AddWorkersPart(node, beat);
    }
    if (Happens(10)) beat = node.last.job() == kJob ? node.last : beat;  // a delayed heartbeat
    if (Happens(1) && Happens(10)) beat.set_failure("out of memory");
    const auto reply = coordinator_->OnHeartbeat(beat, now_);
    node.last = beat;
    if (!reply.ok())
      return std::erase_if(nodes_, [&](auto& each) { return &each == &node; }), void();
    node.reply = *reply;
    if (reply->has_view()) {
      if (reply->view().timeline() != node.view.timeline()) {
        node.started = false;
        node.clock = reply->view().start_version();
      }
      node.view = reply->view();
    }
    node.next_view = reply->next_view().number();
  }

  void AddServersPart(const Node& node, HeartbeatRequest& beat) {
    if (Happens(60)) beat.set_copied_placement(node.view.placement());
    if (node.next_view > 0 && Happens(80)) {
      beat.set_clocks_of_view(node.next_view);
      for (uint32_t v = 0; v < options_.config.cluster().virtual_workers(); ++v) {
        beat.add_clocks(max_clock_ > 0 ? max_clock_ - 1 : 0);
      }
    }
    for (int lane = 0; lane < node.view.lanes_size(); ++lane) {
      if (node.view.lanes(lane).server_node_id() != node.id) continue;
      for (uint64_t version = node.view.start_version() + 1;
           version <= std::max(max_clock_, node.reply.final_version()); ++version) {
        if (version % 3 != 0 && version != node.reply.final_version()) continue;
        if (Happens(30)) continue;
        CheckpointPart* part = beat.add_parts();
        part->set_lane(static_cast<uint32_t>(lane));
        part->set_version(version);
        part->set_placement(Happens(95) ? node.view.placement() : 0);
        part->set_file(absl::StrCat("lane-", lane));
        for (uint32_t v = 0; v < options_.config.cluster().virtual_workers(); ++v) {
          part->add_clocks(version);
        }
        if (Happens(1) && Happens(10)) part->set_error("no space");
      }
    }
  }

  void AddWorkersPart(Node& node, HeartbeatRequest& beat) {
    if (!node.reply.go()) return;
    std::vector<uint32_t> carried;
    for (const WorkerAssignment& place : node.view.workers()) {
      if (place.node_id() != node.id) continue;
      carried.assign(place.virtual_workers().begin(), place.virtual_workers().end());
    }
    if (node.reply.pause()) beat.set_pausing(true);
    const bool known = node.reply.final_version() > 0;
    const bool over = known && node.clock >= node.reply.final_version();
    if (over) beat.set_finished(Happens(70));
    if (!over && (!node.reply.pause() || known)) {
      for (uint64_t more = Pick(3); more > 0; --more) {
        for (const uint32_t v : carried) AddStep(beat, v, node.clock);
        node.started = true;
        ++node.clock;
      }
    }
    beat.set_started(node.started);
    beat.set_clock(node.clock > 0 ? node.clock - 1 : 0);
    if (Happens(20)) {
      for (const uint32_t v : carried) AddEval(beat, v, node.clock);
    }
    max_clock_ = std::max(max_clock_, node.clock);
  }

  void AddStep(HeartbeatRequest& beat, uint32_t virtual_worker, uint64_t clock) {
    StepReport* step = beat.add_steps();
    step->set_virtual_worker(virtual_worker);
    step->set_clock(clock);
    step->set_loss_sum(static_cast<double>(Pick(1000)) / 7);
    step->set_tokens(3);
    step->set_targets(3);
    step->set_step_seconds(0.01 * static_cast<double>(1 + Pick(5)));
  }

  void AddEval(HeartbeatRequest& beat, uint32_t virtual_worker, uint64_t version) {
    EvalReport* eval = beat.add_evals();
    eval->set_virtual_worker(virtual_worker);
    eval->set_version(version);
    eval->set_loss_sum(static_cast<double>(Pick(1000)) / 7);
    eval->set_targets(3);
  }

  void AnswerCommit() {
    const uint64_t version = commits_.front();
    commits_.erase(commits_.begin());
    const bool fails = Happens(2);
    coordinator_->OnCheckpointCommitted(
        version, fails ? absl::ResourceExhaustedError("disk full") : absl::OkStatus(), now_);
  }

  void Lose() {
    const auto lost = nodes_.begin() + static_cast<std::ptrdiff_t>(Pick(nodes_.size()));
    coordinator_->OnGone(lost->id, kJob, now_);
    nodes_.erase(lost);
  }

  // All nodes but one are silent for too long.
  void Silence() {
    now_ += absl::Seconds(3);
    if (!nodes_.empty()) Beat(nodes_[Pick(nodes_.size())]);
    now_ += absl::Seconds(3);
    coordinator_->OnTick(now_);
  }

  std::mt19937_64 random_;
  const CoordinatorOptions options_;
  MemoryJournal journal_;
  std::unique_ptr<Coordinator> coordinator_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::vector<Node> nodes_;
  uint64_t incarnation_ = 0;
  uint64_t max_clock_ = 0;
  std::vector<uint64_t> commits_;     // without a result yet
  std::vector<std::string> actions_;  // all so far
};

TEST(CoordinatorReplay, EndsInTheSameStateWithTheSameActionsAndReplies) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  size_t actions = 0, records = 0;
  std::map<Phase, int> phases;
  for (uint64_t job = 0; job < 1000; ++job) {
    SCOPED_TRACE(absl::StrCat("seed ", seed + job));
    RandomJob random(seed + job);
    for (int part = 0; part < 6; ++part) {
      random.Live(100);
      ASSERT_NO_FATAL_FAILURE(random.Compare());
      if (part % 2 == 0) continue;
      ASSERT_NO_FATAL_FAILURE(random.RecoverState());
    }
    actions += random.actions();
    records += random.journal().position();
    ++phases[random.coordinator().phase()];
  }
  std::cout << records << " records, " << actions << " actions; waiting " << phases[WAITING]
            << ", running " << phases[RUNNING] << ", done " << phases[DONE] << ", failed "
            << phases[FAILED] << std::endl;
  EXPECT_GT(phases[DONE], 0);
  EXPECT_GT(phases[FAILED], 0);
}

}  // namespace
}  // namespace tug
