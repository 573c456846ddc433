#include "proto/heartbeat_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace tug {
namespace {

// A coordinator that answers the n-th heartbeat, counted from 0, as the test says.
class Coordinator final : public Control::Service {
 public:
  using Answer = std::function<grpc::Status(int n, const HeartbeatRequest&, HeartbeatReply&)>;

  explicit Coordinator(Answer answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Coordinator() override { Die(); }

  void Die() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  const std::string& address() const { return address_; }
  int beats() const {
    absl::MutexLock lock(&mutex_);
    return beats_;
  }

  grpc::Status Heartbeat(grpc::ServerContext*, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    absl::MutexLock lock(&mutex_);
    return answer_(beats_++, *request, *reply);
  }

 private:
  const Answer answer_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  mutable absl::Mutex mutex_;
  int beats_ ABSL_GUARDED_BY(mutex_) = 0;
};

RegisterReply Registered() {
  RegisterReply registered;
  registered.set_node_id(7);
  registered.set_job(5);
  registered.mutable_config()->mutable_fault()->set_heartbeat_ms(10);
  registered.mutable_config()->mutable_fault()->set_failure_timeout_ms(200);
  return registered;
}

class HeartbeatLoopTest : public testing::Test {
 protected:
  absl::Status Run(Coordinator& coordinator) {
    absl::StatusOr<std::unique_ptr<ControlClient>> client =
        ControlClient::Connect(coordinator.address(), absl::Seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    return BeatUntilEnd(**client, Registered(), callbacks_);
  }

  int views_ = 0;
  int replies_ = 0;
  HeartbeatCallbacks callbacks_{
      .report = [](HeartbeatRequest& request) { request.set_ready(true); },
      .on_view =
          [this](const View&) {
            ++views_;
            return absl::OkStatus();
          },
      .on_reply = [this](const HeartbeatReply&, const HeartbeatRequest&) { ++replies_; },
      .failure = [] { return absl::OkStatus(); }};
};

TEST_F(HeartbeatLoopTest, BeatsUntilTheJobIsDone) {
  Coordinator coordinator([](int n, const HeartbeatRequest& request, HeartbeatReply& reply) {
    EXPECT_EQ(request.node_id(), 7u);
    EXPECT_EQ(request.job(), 5u);
    EXPECT_TRUE(request.ready());
    reply.set_phase(n < 3 ? RUNNING : DONE);
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(replies_, 3);
}

TEST_F(HeartbeatLoopTest, TakesAViewOnceAndSaysThatItIsKnown) {
  Coordinator coordinator([](int n, const HeartbeatRequest& request, HeartbeatReply& reply) {
    EXPECT_EQ(request.known_view(), n == 0 ? 0u : 1u);
    reply.mutable_view()->set_number(1);  // repeated in every answer
    reply.set_phase(n < 3 ? RUNNING : DONE);
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(views_, 1);
}

TEST_F(HeartbeatLoopTest, EndsWithTheReasonWhenTheJobHasFailed) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(FAILED);
    reply.set_failure("server 2 was lost");
    return grpc::Status::OK;
  });
  EXPECT_EQ(Run(coordinator), absl::AbortedError("server 2 was lost"));
}

TEST_F(HeartbeatLoopTest, TellsItsOwnFailureThenEndsWithIt) {
  std::string told;
  Coordinator coordinator([&told](int, const HeartbeatRequest& request, HeartbeatReply& reply) {
    told = request.failure();
    reply.mutable_view()->set_number(1);
    reply.set_phase(told.empty() ? RUNNING : FAILED);
    return grpc::Status::OK;
  });
  callbacks_.on_view = [](const View&) { return absl::NotFoundError("no such text"); };
  EXPECT_EQ(Run(coordinator), absl::NotFoundError("no such text"));
  EXPECT_EQ(told, "no such text");
}

TEST_F(HeartbeatLoopTest, EndsWithItsOwnFailureWhateverTheCoordinatorAnswers) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "not a member");
  });
  callbacks_.failure = [] { return absl::DataLossError("a broken checkpoint"); };
  EXPECT_EQ(Run(coordinator), absl::DataLossError("a broken checkpoint"));
}

TEST_F(HeartbeatLoopTest, EndsWhenItIsNoMember) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "not a member");
  });
  EXPECT_EQ(Run(coordinator), absl::NotFoundError("not a member"));
  EXPECT_EQ(coordinator.beats(), 1);
}

TEST_F(HeartbeatLoopTest, LivesThroughAnAnswerThatDoesNotCome) {
  Coordinator coordinator([](int n, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(n < 4 ? RUNNING : DONE);
    return n == 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost") : grpc::Status::OK;
  });
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(replies_, 3);
}

TEST_F(HeartbeatLoopTest, GivesUpOnACoordinatorThatHasDied) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(RUNNING);
    return grpc::Status::OK;
  });
  callbacks_.on_reply = [&](const HeartbeatReply&, const HeartbeatRequest&) { coordinator.Die(); };
  const absl::Status end = Run(coordinator);
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  EXPECT_NE(end.ToString().find(coordinator.address()), std::string::npos) << end;
}

}  // namespace
}  // namespace tug
