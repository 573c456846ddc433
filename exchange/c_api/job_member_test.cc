// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/job_member.h"

#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// A coordinator with one worker. It answers every heartbeat with the test's current reply.
class Coordinator final : public Control::Service {
 public:
  Coordinator() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Coordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Register(grpc::ServerContext*, const RegisterRequest* request,
                        RegisterReply* reply) override {
    if (request->blocks().blocks().empty()) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "declare blocks");
    }
    reply->set_node_id(7);
    reply->mutable_config()->mutable_fault()->set_heartbeat_ms(10);
    reply->mutable_config()->mutable_fault()->set_failure_timeout_ms(5000);
    reply->mutable_config()->mutable_fault()->set_coordinator_timeout_ms(5000);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    absl::MutexLock lock(&mutex_);
    newest_ = *request;
    steps_ += request->steps_size();
    *reply = answer_;
    if (!request->failure().empty()) reply->set_phase(FAILED);
    return grpc::Status::OK;
  }

  std::unique_ptr<JobMember> Join(std::function<void(const absl::Status&)> on_end) const {
    auto client = ControlClient::Connect(address_, absl::Seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    BlockTable blocks;
    blocks.add_blocks()->set_name("a");
    auto member = JobMember::Join(*std::move(client), blocks, std::move(on_end));
    EXPECT_TRUE(member.ok()) << member.status();
    return *std::move(member);
  }
  void Answer(const HeartbeatReply& answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = answer;
  }
  // Blocks until the newest heartbeat satisfies `holds`.
  void Await(const std::function<bool(const HeartbeatRequest&)>& holds) {
    absl::MutexLock lock(&mutex_);
    const auto said = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return holds(newest_); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&said), absl::Seconds(20)));
  }
  int steps() const {
    absl::MutexLock lock(&mutex_);
    return steps_;
  }
  std::string address() const { return address_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  mutable absl::Mutex mutex_;
  HeartbeatReply answer_ ABSL_GUARDED_BY(mutex_);
  HeartbeatRequest newest_ ABSL_GUARDED_BY(mutex_);
  int steps_ ABSL_GUARDED_BY(mutex_) = 0;
};

HeartbeatReply Running(uint64_t final_version) {
  HeartbeatReply reply;
  reply.set_phase(RUNNING);
  reply.set_go(true);
  reply.set_pause(final_version == 0);
  reply.set_final_version(final_version);
  return reply;
}

HeartbeatReply Ended(Phase phase, const std::string& failure = "") {
  HeartbeatReply reply;
  reply.set_phase(phase);
  reply.set_failure(failure);
  return reply;
}

class JobMemberTest : public ::testing::Test {
 protected:
  Coordinator coordinator_;
  absl::Status end_ = absl::UnknownError("not ended");
  std::unique_ptr<JobMember> member_ =
      coordinator_.Join([this](const absl::Status& end) { end_ = end; });
};

TEST_F(JobMemberTest, KeepsAScheduleUntilANewerOneComes) {
  HeartbeatReply reply = Running(5);
  reply.mutable_schedule()->set_number(2);
  reply.mutable_schedule()->set_partition_bytes(4096);
  coordinator_.Answer(reply);
  EXPECT_TRUE(*member_->BeginStep(0));
  EXPECT_EQ(member_->schedule().number, 2u);
  coordinator_.Answer(Running(0));  // without a schedule
  coordinator_.Await([](const HeartbeatRequest& beat) { return beat.pausing(); });
  coordinator_.Answer(Running(2));
  EXPECT_TRUE(*member_->BeginStep(1));
  EXPECT_EQ(member_->schedule().number, 2u);
  EXPECT_EQ(member_->schedule().partition_bytes, 4096u);
}

TEST_F(JobMemberTest, RunsFromTheViewToTheEnd) {
  EXPECT_EQ(member_->registered().node_id(), 7u);
  HeartbeatReply waiting;
  waiting.set_phase(WAITING);
  waiting.mutable_view()->set_number(1);
  waiting.mutable_view()->set_start_version(3);
  coordinator_.Answer(waiting);
  const auto view = member_->WaitForView();
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->start_version(), 3u);
  constexpr uint64_t kShared = uint64_t{1} << 40;
  member_->SetReady([] { return kShared; },
                    [](NodeCounters& counters) { counters.set_most_outstanding_bytes(77); });
  coordinator_.Await([](const HeartbeatRequest& beat) {
    return beat.ready() && beat.counters().peak_memory_bytes() > kShared &&
           beat.counters().most_outstanding_bytes() == 77;
  });
  coordinator_.Await([](const HeartbeatRequest& beat) { return beat.ready(); });

  coordinator_.Answer(Running(5));
  EXPECT_TRUE(member_->WaitForGo().ok());
  for (const uint64_t clock : {3, 4}) {
    EXPECT_TRUE(*member_->BeginStep(clock));
    coordinator_.Await([&](const auto& beat) { return beat.started() && beat.clock() == clock; });
    StepReport report;
    report.set_clock(clock);
    member_->ReportStep(report);
  }
  EXPECT_FALSE(*member_->BeginStep(5));
  std::thread finishing([&] { EXPECT_TRUE(member_->Finish().ok()); });
  coordinator_.Await([](const HeartbeatRequest& beat) { return beat.finished(); });
  EXPECT_GE(coordinator_.steps(), 2);
  coordinator_.Answer(Ended(DONE));
  finishing.join();
  member_.reset();
  EXPECT_TRUE(end_.ok()) << end_;
}

TEST_F(JobMemberTest, APauseIsAcknowledgedWhileAStepGoesOnAndHoldsTheNext) {
  coordinator_.Answer(Running(100));
  EXPECT_TRUE(*member_->BeginStep(0));
  coordinator_.Answer(Running(0));
  coordinator_.Await([](const HeartbeatRequest& beat) { return beat.pausing(); });
  std::thread next([&] { EXPECT_TRUE(*member_->BeginStep(1)); });
  coordinator_.Await([](const auto& beat) { return beat.pausing() && beat.clock() == 0; });
  coordinator_.Answer(Running(2));  // a worker ahead of us has begun step 1
  next.join();
  EXPECT_FALSE(*member_->BeginStep(2));
  coordinator_.Answer(Ended(DONE));
  EXPECT_TRUE(member_->Finish().ok());
}

TEST_F(JobMemberTest, AFailureOfTheJobEndsEveryWait) {
  coordinator_.Answer(Running(0));
  std::thread waiting([&] {
    EXPECT_THAT(std::string(member_->BeginStep(0).status().message()), HasSubstr("server lost"));
  });
  coordinator_.Await([](const HeartbeatRequest& beat) { return beat.pausing(); });
  coordinator_.Answer(Ended(FAILED, "server lost"));
  waiting.join();
  EXPECT_EQ(member_->Finish().code(), absl::StatusCode::kAborted);
}

TEST_F(JobMemberTest, AStopBeforeTheStartLeavesNothingToDo) {
  coordinator_.Answer(Ended(DONE));
  EXPECT_THAT(std::string(member_->WaitForView().status().message()),
              HasSubstr("stopped before it started"));
  EXPECT_FALSE(member_->WaitForGo().ok());
  EXPECT_FALSE(*member_->BeginStep(0));
}

TEST_F(JobMemberTest, AbandonedMemberReportsFailureToCoordinator) {
  coordinator_.Answer(Running(100));
  EXPECT_TRUE(*member_->BeginStep(0));
  member_.reset();
  coordinator_.Await([](const HeartbeatRequest& beat) {
    return beat.failure().find("before the job's last step") != std::string::npos;
  });
  EXPECT_FALSE(end_.ok());
}

TEST(JobMember, ReportsARefusal) {
  Coordinator coordinator;
  auto client = ControlClient::Connect(coordinator.address(), absl::Seconds(10));
  const auto refused = JobMember::Join(*std::move(client), {}, [](const absl::Status&) {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tug
