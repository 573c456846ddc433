// SPDX-License-Identifier: Apache-2.0
#include "control/heartbeat_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/control.grpc.pb.h"
#include "proto/presence.grpc.pb.h"

namespace tug {
namespace {

// A coordinator whose replies to the n-th heartbeat, counted from 0, are set by the test.
class Coordinator final : public Control::Service {
 public:
  using Answer = std::function<grpc::Status(int n, const HeartbeatRequest&, HeartbeatReply&)>;

  explicit Coordinator(Answer answer, const std::string& address = "127.0.0.1:0")
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    builder.RegisterService(&presence_);
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
  grpc::Status Trace(grpc::ServerContext*, const TraceChunk* chunk, TraceReply*) override {
    absl::MutexLock lock(&mutex_);
    chunks_.push_back(*chunk);
    return take_chunk(chunks_.size());
  }
  std::vector<TraceChunk> chunks() const {
    absl::MutexLock lock(&mutex_);
    return chunks_;
  }

  // Presence calls opened by nodes. Each is answered at once with AnswerPresence's status.
  int presences() const { return presence_.calls; }
  void AnswerPresence(grpc::Status answer) { presence_.answer = std::move(answer); }

  // Reply to the n-th chunk, counted from 1.
  std::function<grpc::Status(size_t n)> take_chunk = [](size_t) { return grpc::Status::OK; };

 private:
  struct PresenceStub final : public Presence::Service {
    grpc::Status Stay(grpc::ServerContext*, const StayRequest*, StayReply*) override {
      ++calls;
      return answer;
    }
    std::atomic<int> calls = 0;
    grpc::Status answer;
  };

  const Answer answer_;
  PresenceStub presence_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  mutable absl::Mutex mutex_;
  int beats_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<TraceChunk> chunks_ ABSL_GUARDED_BY(mutex_);
};

RegisterReply Registered() {
  RegisterReply registered;
  registered.set_node_id(7);
  registered.set_job(5);
  registered.mutable_config()->mutable_fault()->set_heartbeat_ms(10);
  registered.mutable_config()->mutable_fault()->set_failure_timeout_ms(200);
  registered.mutable_config()->mutable_fault()->set_coordinator_timeout_ms(300);
  registered.set_run_dir("/runs/job-1");
  return registered;
}

class HeartbeatLoopTest : public testing::Test {
 protected:
  absl::Status Run(Coordinator& coordinator) {
    absl::StatusOr<std::unique_ptr<ControlClient>> client =
        ControlClient::Connect(coordinator.address(), absl::Seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    return BeatUntilEnd(**client, registered_, callbacks_);
  }

  RegisterReply registered_ = Registered();
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

TEST_F(HeartbeatLoopTest, LeavesWhenItMayAndTheJobGoesOn) {
  bool asked = false;
  callbacks_.leaving = [&] { return asked; };
  Coordinator coordinator([&](int n, const HeartbeatRequest& request, HeartbeatReply& reply) {
    EXPECT_EQ(request.leaving(), n >= 2);
    reply.set_phase(RUNNING);
    reply.set_leave(n == 5);
    return grpc::Status::OK;
  });
  callbacks_.on_reply = [&](const HeartbeatReply&, const HeartbeatRequest&) {
    asked = ++replies_ == 2;  // returns false again after one true
  };
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(coordinator.beats(), 6);
  EXPECT_EQ(replies_, 5);
}

TEST_F(HeartbeatLoopTest, TakesAViewOnceAndSaysThatItIsKnown) {
  Coordinator coordinator([](int n, const HeartbeatRequest& request, HeartbeatReply& reply) {
    EXPECT_EQ(request.known_view(), n == 0 ? 0u : 1u);
    reply.mutable_view()->set_number(1);  // repeated in every reply
    reply.set_phase(n < 3 ? RUNNING : DONE);
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(views_, 1);
}

TEST_F(HeartbeatLoopTest, EndsWithTheReasonWhenTheJobHasFailed) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(FAILED);
    reply.set_failure("server-1 was lost");
    return grpc::Status::OK;
  });
  EXPECT_EQ(Run(coordinator), absl::AbortedError("server-1 was lost"));
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

TEST_F(HeartbeatLoopTest, EndsWithOwnFailureRegardlessOfReply) {
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

TEST_F(HeartbeatLoopTest, GivesUpOnACoordinatorThatHasDiedAndSaysHowToTakeItsJobUp) {
  Coordinator coordinator([](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(RUNNING);
    return grpc::Status::OK;
  });
  callbacks_.on_reply = [&](const HeartbeatReply&, const HeartbeatRequest&) { coordinator.Die(); };
  const RealTime time;
  const absl::Time begin = time.Now();
  const absl::Status end = Run(coordinator);
  EXPECT_GE(time.Now() - begin, absl::Milliseconds(300)) << "fault.coordinator_timeout_ms";
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable) << end;
  EXPECT_NE(end.ToString().find(coordinator.address()), std::string::npos) << end;
  EXPECT_NE(end.ToString().find("tug coordinator --recover /runs/job-1"), std::string::npos) << end;
}

TEST_F(HeartbeatLoopTest, GoesOnWithAnotherCoordinatorAtTheSameAddress) {
  Coordinator first([](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(RUNNING);
    return grpc::Status::OK;
  });
  std::unique_ptr<Coordinator> second;
  registered_.mutable_config()->mutable_fault()->set_coordinator_timeout_ms(60000);
  callbacks_.on_reply = [&](const HeartbeatReply&, const HeartbeatRequest&) {
    ++replies_;
    if (second != nullptr) return;
    first.Die();
    second = std::make_unique<Coordinator>(
        [](int n, const HeartbeatRequest&, HeartbeatReply& reply) {
          reply.set_phase(n < 2 ? RUNNING : DONE);
          return grpc::Status::OK;
        },
        first.address());
  };
  EXPECT_TRUE(Run(first).ok());
  EXPECT_EQ(replies_, 3);
}

// The loop calls `report` before every heartbeat, so unconfirmed reports are repeated.
TEST_F(HeartbeatLoopTest, KeepsBeatingWhileThereIsNoCoordinatorAndReportsAnew) {
  Coordinator coordinator([](int n, const HeartbeatRequest& request, HeartbeatReply& reply) {
    reply.set_phase(RUNNING);
    if (n < 5) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "no coordinator");
    EXPECT_EQ(request.clock(), static_cast<uint64_t>(n));
    reply.set_phase(DONE);
    return grpc::Status::OK;
  });
  uint64_t reported = 0;
  callbacks_.report = [&](HeartbeatRequest& request) { request.set_clock(reported++); };
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(replies_, 0);
}

TEST_F(HeartbeatLoopTest, StaysPresentAgainWhenTheCallBrokeOff) {
  Coordinator* at = nullptr;
  Coordinator coordinator([&](int, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(at->presences() < 3 ? RUNNING : DONE);
    return grpc::Status::OK;
  });
  at = &coordinator;
  coordinator.AnswerPresence(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection is gone"));
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_GE(coordinator.presences(), 3);
}

TEST_F(HeartbeatLoopTest, StaysPresentOnceWhereTheCallWasAnswered) {
  Coordinator coordinator([](int n, const HeartbeatRequest&, HeartbeatReply& reply) {
    reply.set_phase(n < 20 ? RUNNING : DONE);
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_LE(coordinator.presences(), 1);
}

// Replies of a coordinator that asks for a trace until it has it, and whose clock is an hour ahead.
Coordinator::Answer WantsTrace(const TimeSource& time) {
  return [&time](int, const HeartbeatRequest& request, HeartbeatReply& reply) {
    reply.set_now_ns(absl::ToUnixNanos(time.Now() + absl::Hours(1)));
    reply.set_trace_wanted(!request.trace_sent());
    reply.set_phase(request.trace_sent() ? DONE : RUNNING);
    return grpc::Status::OK;
  };
}

TEST_F(HeartbeatLoopTest, SendsWhatWasRecordedWhenAskedWithTheOffsetOfItsClock) {
  const RealTime time;
  Trace trace({0, 1}, time);
  trace.AddTrack("compute")->Add({.kind = TraceKind::kForward, .block = 6});
  trace.AddTrack("exchange");
  callbacks_.trace = [&] { return &trace; };
  Coordinator coordinator(WantsTrace(time));
  // The first reply is lost, so that chunk is sent again.
  coordinator.take_chunk = [](size_t n) {
    return n == 1 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost") : grpc::Status::OK;
  };
  EXPECT_TRUE(Run(coordinator).ok());
  const std::vector<TraceChunk> chunks = coordinator.chunks();
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].SerializeAsString(), chunks[1].SerializeAsString());
  EXPECT_EQ(chunks[1].node_id(), 7u);
  EXPECT_EQ(chunks[1].job(), 5u);
  ASSERT_EQ(chunks[1].spans_size(), 1);
  EXPECT_EQ(chunks[1].spans(0).block(), 6u);
  EXPECT_EQ(chunks[2].sequence(), 1u);
  const int64_t hour_ns = absl::ToInt64Nanoseconds(absl::Hours(1));
  EXPECT_LE(std::abs(chunks[1].clock_offset_ns() - hour_ns),
            static_cast<int64_t>(chunks[1].clock_error_ns()));
}

TEST_F(HeartbeatLoopTest, HasNothingToSendWithoutATrace) {
  const RealTime time;
  Coordinator coordinator(WantsTrace(time));
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_TRUE(coordinator.chunks().empty());
}

TEST_F(HeartbeatLoopTest, GivesATraceUpThatIsRefusedAndGoesOn) {
  const RealTime time;
  Trace trace({0, 1}, time);
  trace.AddTrack("compute");
  callbacks_.trace = [&] { return &trace; };
  Coordinator coordinator(WantsTrace(time));
  coordinator.take_chunk = [](size_t) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too much");
  };
  EXPECT_TRUE(Run(coordinator).ok());
  EXPECT_EQ(coordinator.chunks().size(), 1u);
}

}  // namespace
}  // namespace tug
