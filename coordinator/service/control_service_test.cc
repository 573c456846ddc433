// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/control_service.h"

#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "control/control_client.h"
#include "coordinator/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kJob = 5;

CoordinatorOptions Options(uint32_t workers, uint64_t steps) {
  CoordinatorOptions options;
  ClusterConfig& cluster = *options.config.mutable_cluster();
  cluster.set_servers(1);
  cluster.set_workers(workers);
  cluster.set_lanes_per_server(1);
  cluster.set_virtual_workers(workers);
  options.config.mutable_sync()->set_replicas(1);
  options.config.mutable_train()->set_steps(steps);
  options.config.mutable_fault()->set_failure_timeout_ms(20000);
  options.layout.segment_bytes = {16};
  options.job = kJob;
  options.run_dir = "run";
  return options;
}

std::unique_ptr<ControlService> StartService(uint32_t workers, uint64_t steps) {
  auto service = ControlService::Start(Options(workers, steps), HostPort{"127.0.0.1", 0});
  EXPECT_TRUE(service.ok()) << service.status();
  return *std::move(service);
}

std::unique_ptr<ControlClient> Connect(const ControlService& service) {
  auto client = ControlClient::Connect(service.address(), absl::Seconds(10));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

RegisterRequest Node(NodeKind kind, uint64_t incarnation) {
  RegisterRequest request;
  request.set_protocol_version(kControlVersion);
  request.set_kind(kind);
  request.set_incarnation(incarnation);
  return request;
}

// A node that reports `steps` steps, one per heartbeat, or a server that writes the final
// checkpoint.
void LiveAsNode(const ControlService& service, NodeKind kind, uint64_t incarnation,
                uint64_t steps) {
  const auto client = Connect(service);
  RegisterRequest join = Node(kind, incarnation);
  if (kind == SERVER) join.add_lane_endpoints("tcp://127.0.0.1:1");
  const auto reply = client->Register(join);
  ASSERT_TRUE(reply.ok()) << reply.status();
  HeartbeatRequest beat;
  beat.set_node_id(reply->node_id());
  beat.set_job(reply->job());
  std::vector<uint32_t> virtual_workers;
  uint64_t clock = 0;
  while (true) {
    const auto answer = client->Heartbeat(beat);
    ASSERT_TRUE(answer.ok()) << answer.status();
    if (answer->phase() == DONE) return;
    ASSERT_NE(answer->phase(), FAILED) << answer->failure();
    if (answer->has_view()) {
      beat.set_known_view(answer->view().number());
      beat.set_ready(true);
      for (const WorkerAssignment& assignment : answer->view().workers()) {
        if (assignment.node_id() == beat.node_id()) {
          virtual_workers.assign(assignment.virtual_workers().begin(),
                                 assignment.virtual_workers().end());
        }
      }
    }
    if (!answer->go()) continue;
    beat.clear_steps();
    beat.clear_parts();
    if (kind == SERVER) {
      CheckpointPart* part = beat.add_parts();
      part->set_version(steps);
      part->set_placement(1);
      part->set_file("lane-0");
      continue;
    }
    if (clock == steps) {
      beat.set_finished(true);
      continue;
    }
    beat.set_started(true);
    beat.set_clock(clock);
    for (const uint32_t virtual_worker : virtual_workers) {
      StepReport* report = beat.add_steps();
      report->set_virtual_worker(virtual_worker);
      report->set_clock(clock);
      report->set_tokens(1);
      report->set_targets(1);
    }
    ++clock;
  }
}

TEST(ControlService, CarriesAJobFromJoiningToDone) {
  constexpr uint64_t kSteps = 20;
  constexpr uint32_t kWorkers = 3;
  const auto service = StartService(kWorkers, kSteps);
  std::vector<std::thread> nodes;
  nodes.emplace_back([&] { LiveAsNode(*service, SERVER, 1, kSteps); });
  for (uint32_t i = 0; i < kWorkers; ++i) {
    nodes.emplace_back([&, i] { LiveAsNode(*service, WORKER, 2 + i, kSteps); });
  }
  uint64_t steps = 0;
  bool ended = false;
  while (!ended) {
    for (const Action& action : service->NextActions(absl::Seconds(1))) {
      if (const auto* step = std::get_if<StepCompleted>(&action)) {
        EXPECT_EQ(step->metrics.step, ++steps);
      } else if (const auto* commit = std::get_if<CommitCheckpointAction>(&action)) {
        EXPECT_EQ(commit->manifest.version(), kSteps);
        service->OnCheckpointCommitted(kSteps, absl::OkStatus());
      } else if (const auto* end = std::get_if<JobEnded>(&action)) {
        EXPECT_TRUE(end->status.ok());
        ended = true;
      }
    }
  }
  EXPECT_EQ(steps, kSteps);
  for (std::thread& node : nodes) node.join();
}

TEST(ControlService, TellsWhereItsPageIs) {
  const auto service = StartService(1, 5);
  EXPECT_EQ(service->Status().page(), "");
  service->SetPage("http://127.0.0.1:1/");
  EXPECT_EQ(service->Status().page(), "http://127.0.0.1:1/");
}

TEST(ControlService, ANodeWhoseConnectionBreaksOffIsLostAtOnce) {
  const auto service = StartService(1, 5);
  const auto client = Connect(*service);
  const auto first = client->Register(Node(WORKER, 1));
  ASSERT_TRUE(first.ok());
  ASSERT_FALSE(client->Register(Node(WORKER, 2)).ok()) << "there is one place";
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  bool free = false;
  while (!free && absl::Now() < deadline) {
    auto present = client->StayPresent(first->node_id(), first->job());
    // Calls that the coordinator answers meanwhile: a call cancelled before it has begun does not
    // count.
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Status().ok());
    present.reset();
    free = client->Register(Node(WORKER, 2)).ok();
  }
  EXPECT_TRUE(free);
}

TEST(ControlService, PassesErrorsWithTheirCodeAndText) {
  const auto service = StartService(1, 5);
  const auto client = Connect(*service);
  ASSERT_TRUE(client->Register(Node(WORKER, 1)).ok());
  const auto full = client->Register(Node(WORKER, 2));
  EXPECT_EQ(full.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(full.status().message()), HasSubstr("raise cluster.workers"));
  HeartbeatRequest stranger;
  stranger.set_node_id(99);
  EXPECT_EQ(client->Heartbeat(stranger).status().code(), absl::StatusCode::kNotFound);
}

TEST(ControlService, DrainsANodeOverTheWire) {
  const auto service = StartService(1, 5);
  const auto client = Connect(*service);
  const auto worker = client->Register(Node(WORKER, 1));
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(client->Drain("worker-99").status().code(), absl::StatusCode::kNotFound);
  const auto drained = client->Drain(worker->name());
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_THAT(drained->message(), HasSubstr("leaves"));
  HeartbeatRequest beat;
  beat.set_node_id(worker->node_id());
  beat.set_job(worker->job());
  EXPECT_TRUE(client->Heartbeat(beat)->leave());
}

TEST(ControlService, StopsAndReportsStatusOverTheWire) {
  const auto service = StartService(1, 5);
  const auto client = Connect(*service);
  ASSERT_TRUE(client->Register(Node(WORKER, 1)).ok());
  auto status = client->Status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->phase(), WAITING);
  EXPECT_EQ(status->nodes_size(), 1);
  EXPECT_TRUE(client->Stop().ok());
  EXPECT_EQ(client->Status()->phase(), DONE);
}

// A journal on a slow or full disk.
class SlowJournal final : public Journal {
 public:
  void Append(const JournalRecord&) override {
    absl::MutexLock lock(&mutex_);
    ++position_;
  }
  uint64_t position() const override {
    absl::MutexLock lock(&mutex_);
    return position_;
  }
  absl::Status Sync(uint64_t position) override {
    absl::MutexLock lock(&mutex_);
    ++waiting_;
    const auto there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return durable_ >= position || !error_.ok();
    };
    mutex_.Await(absl::Condition(&there));
    --waiting_;
    return error_;
  }
  void LetGo() {
    absl::MutexLock lock(&mutex_);
    durable_ = std::numeric_limits<uint64_t>::max();
  }
  void Break() {
    absl::MutexLock lock(&mutex_);
    error_ = absl::ResourceExhaustedError("cannot write the journal: no space; free some");
  }
  void AwaitWaiting() {
    const auto waits = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return waiting_ > 0; };
    absl::MutexLock lock(&mutex_, absl::Condition(&waits));
  }

 private:
  mutable absl::Mutex mutex_;
  uint64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t durable_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<ControlService> StartWith(Journal& journal) {
  auto coordinator = std::make_unique<Coordinator>(Options(1, 5));
  coordinator->KeepJournal(&journal);
  auto service = ControlService::Start(std::move(coordinator), &journal, {"127.0.0.1", 0});
  EXPECT_TRUE(service.ok()) << service.status();
  return *std::move(service);
}

TEST(ControlService, RepliesWaitForDurabilityWithoutBlockingOthers) {
  SlowJournal journal;
  const auto service = StartWith(journal);
  const auto client = Connect(*service);
  std::atomic<bool> answered = false;
  std::thread node([&] {
    EXPECT_TRUE(client->Register(Node(WORKER, 1)).ok());
    answered = true;
  });
  journal.AwaitWaiting();
  const auto status = client->Status();  // the mutex is free meanwhile
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->nodes_size(), 1);
  EXPECT_FALSE(answered);
  journal.LetGo();
  node.join();
}

TEST(ControlService, AJournalThatCannotBeWrittenFailsTheJob) {
  SlowJournal journal;
  journal.Break();
  const auto service = StartWith(journal);
  const auto client = Connect(*service);
  EXPECT_EQ(client->Register(Node(WORKER, 1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client->Status()->phase(), FAILED);
  EXPECT_THAT(client->Status()->failure(), HasSubstr("cannot write the journal"));
  HeartbeatRequest beat;
  beat.set_node_id(1);
  beat.set_job(kJob);
  const auto reply = client->Heartbeat(beat);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->phase(), FAILED) << "and who asks again learns it";
}

TEST(ControlService, RefusesAPortInUseAtOnce) {
  const auto service = StartService(1, 5);
  const auto address = ParseHostPort(service->address());
  ASSERT_TRUE(address.ok());
  const auto second = ControlService::Start(Options(1, 5), *address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Address already in use"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--listen"));
}

TEST(ControlService, RefusesAnAddressOfAnotherMachine) {
  const auto service = ControlService::Start(Options(1, 5), HostPort{"192.0.2.1", 0});
  EXPECT_EQ(service.status().code(), absl::StatusCode::kUnavailable);
}

TEST(ControlClient, SaysWhenTheCoordinatorIsGone) {
  auto service = StartService(1, 5);
  const auto client = Connect(*service);
  service.reset();
  const auto status = client->Status();
  EXPECT_EQ(status.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.status().message()), HasSubstr("cannot reach the coordinator"));
}

}  // namespace
}  // namespace tug
