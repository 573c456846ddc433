// SPDX-License-Identifier: Apache-2.0
#include "control/join_job.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/time_source.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"

namespace tug {
namespace {

const grpc::Status kFull(grpc::StatusCode::ABORTED, "the job has its 2 workers: waiting");

// A coordinator whose replies to the n-th registration, counted from 0, are set by the test.
class Coordinator final : public Control::Service {
 public:
  using Answer = std::function<grpc::Status(int n)>;

  explicit Coordinator(Answer answer, const std::string& address = "127.0.0.1:0")
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Coordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  const std::string& address() const { return address_; }
  int asked() const {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }

  grpc::Status Register(grpc::ServerContext*, const RegisterRequest* request,
                        RegisterReply* reply) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(request->incarnation(), 5u);
    reply->set_node_id(7);
    return answer_(asked_++);
  }

 private:
  const Answer answer_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  mutable absl::Mutex mutex_;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::unique_ptr<ControlClient> Connect(const Coordinator& coordinator) {
  auto client = ControlClient::Connect(coordinator.address(), absl::Seconds(10));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

absl::StatusOr<std::optional<RegisterReply>> Join(ControlClient& client,
                                                  absl::Duration timeout = kJoinTimeout) {
  RegisterRequest request;
  request.set_incarnation(5);
  return JoinJob(client, request, timeout);
}

// Standard error while `run` runs.
template <typename Run>
std::string Said(Run run) {
  testing::internal::CaptureStderr();
  run();
  return testing::internal::GetCapturedStderr();
}

TEST(JoinJob, JoinsAtOnceWhereThereIsRoomAndSaysNothing) {
  const Coordinator coordinator([](int) { return grpc::Status::OK; });
  const auto client = Connect(coordinator);
  const std::string said = Said([&] { EXPECT_EQ(Join(*client).value()->node_id(), 7u); });
  EXPECT_EQ(said, "");
  EXPECT_EQ(coordinator.asked(), 1);
}

TEST(JoinJob, WaitsForRoomInAFullJobAndSaysSoOnce) {
  const Coordinator coordinator([](int n) { return n < 3 ? kFull : grpc::Status::OK; });
  const auto client = Connect(coordinator);
  const RealTime time;
  const absl::Time begin = time.Now();
  const std::string said = Said([&] { EXPECT_EQ(Join(*client).value()->node_id(), 7u); });
  EXPECT_GE(time.Now() - begin, absl::Milliseconds(300)) << "it keeps asking without a pause";
  EXPECT_EQ(coordinator.asked(), 4);
  const size_t first = said.find(kFull.error_message());
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(kFull.error_message(), first + 1), std::string::npos) << said;
  EXPECT_NE(said.find("joined the job: a slot became free"), std::string::npos) << said;
}

TEST(JoinJob, PassesARefusalOnAtOnce) {
  for (const auto code :
       {grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::FAILED_PRECONDITION}) {
    const Coordinator coordinator([&](int) { return grpc::Status(code, "no"); });
    const auto client = Connect(coordinator);
    EXPECT_EQ(static_cast<int>(Join(*client).status().code()), static_cast<int>(code));
    EXPECT_EQ(coordinator.asked(), 1);
  }
}

TEST(JoinJob, WaitsNoLongerThanTheCoordinatorLetsIt) {
  const Coordinator coordinator([](int n) {
    return n == 0 ? kFull : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "job has them all");
  });
  const auto client = Connect(coordinator);
  EXPECT_EQ(Join(*client).status(), absl::ResourceExhaustedError("job has them all"));
  EXPECT_EQ(coordinator.asked(), 2);
}

TEST(JoinJob, EndsWellWhenTheJobIsDoneWhetherOrNotItWaited) {
  for (const int waits : {0, 1}) {
    const Coordinator coordinator([waits](int n) {
      return n < waits ? kFull : grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "it is done");
    });
    const auto client = Connect(coordinator);
    const std::string said = Said([&] {
      const auto joined = Join(*client);
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_FALSE(joined->has_value());
    });
    EXPECT_NE(said.find("the job has ended"), std::string::npos) << said;
  }
}

TEST(JoinJob, GoesOnWaitingWithAnotherCoordinatorAtTheSameAddress) {
  auto first = std::make_unique<Coordinator>([](int n) {
    return n < 2 ? kFull : grpc::Status(grpc::StatusCode::UNAVAILABLE, "it is about to die");
  });
  const auto client = Connect(*first);
  const std::string address = first->address();
  absl::StatusOr<std::optional<RegisterReply>> joined;
  std::thread waiting([&] { joined = Join(*client, absl::Seconds(60)); });
  while (first->asked() < 3) std::this_thread::yield();
  first.reset();
  const Coordinator second([](int n) { return n < 2 ? kFull : grpc::Status::OK; }, address);
  waiting.join();
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)->node_id(), 7u);
  EXPECT_EQ(second.asked(), 3);
}

TEST(JoinJob, GivesUpOnACoordinatorThatDoesNotComeBack) {
  auto coordinator = std::make_unique<Coordinator>([](int n) {
    return n == 0 ? kFull : grpc::Status(grpc::StatusCode::UNAVAILABLE, "it is about to die");
  });
  const auto client = Connect(*coordinator);
  const absl::Status gone = Join(*client, absl::Milliseconds(300)).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
  EXPECT_GE(coordinator->asked(), 2);
}

}  // namespace
}  // namespace tug
