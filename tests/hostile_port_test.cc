// SPDX-License-Identifier: Apache-2.0
// "Bytes that no one should send to a server's port": while a job trains, the ports of its lanes
// and coordinator receive garbage and truncated, oversized, old and forged messages. Each message
// that passes ZeroMQ is counted; the job ends with the bits of an undisturbed one.

#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/control_client.h"
#include "control/control_credentials.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"
#include "tests/support/hostile_peer.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 271828;
// Not the id of any node of the job.
constexpr PeerId kStranger = WorkerPeer(4711);

struct Counted {
  uint64_t dropped = 0;
  uint64_t refused = 0;
  friend bool operator==(const Counted&, const Counted&) = default;
};
std::ostream& operator<<(std::ostream& out, const Counted& counted) {
  return out << counted.dropped << " dropped, " << counted.refused << " refused";
}

class HostilePortTest : public DaemonTest {
 protected:
  void SetUp() override {
    std::cout << "seed " << kSeed << std::endl;
    ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + Texts{"cluster.lanes_per_server=2"}));
    auto client = ControlClient::Connect(address(), kPatience);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const StatusReply status = Status();
    job_id_ = status.job();
    for (const NodeStatus& node : status.nodes()) {
      lanes_.insert(lanes_.end(), node.lane_endpoints().begin(), node.lane_endpoints().end());
    }
    ASSERT_EQ(lanes_.size(), 4u);
  }

  StatusReply Status() {
    const absl::StatusOr<StatusReply> status = client_->Status();
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : StatusReply();
  }

  Counted Counters() {
    Counted counted;
    const StatusReply status = Status();
    for (const NodeStatus& node : status.nodes()) {
      counted.dropped += node.counters().messages_dropped();
      counted.refused += node.counters().messages_refused();
    }
    return counted;
  }

  Bytes Random(size_t size) {
    Bytes bytes(size);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    return bytes;
  }

  // A pull that would be answered if it had a valid sender.
  WireHeader Pull() const {
    WireHeader header;
    header.kind = MessageKind::kPull;
    header.job = job_id_;
    header.timeline = 1;
    header.view = 1;
    header.sender = kStranger;
    header.segment_count = 1;
    header.clock = 1;
    return header;
  }

  // Sends to every lane from a peer that stays connected until the test ends: a message in flight
  // could be lost with its connection.
  void SendToLanes(const std::vector<Bytes>& frames, Counted each, PeerId from = kStranger) {
    SendToLanesNamed(frames, each, from, nullptr);
  }
  void SendToLanesNamed(const std::vector<Bytes>& frames, Counted each, PeerId from,
                        const Bytes* name) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      const auto key = std::make_pair(lane, name == nullptr ? from : 0);
      std::unique_ptr<FramePeer>& peer = peers_[key];
      if (peer == nullptr || name != nullptr) {
        if (peer != nullptr) spare_peers_.push_back(std::move(peer));
        peer = name == nullptr ? std::make_unique<FramePeer>(lanes_[lane], from)
                               : std::make_unique<FramePeer>(lanes_[lane], *name);
      }
      peer->Send(frames);
      expected_.dropped += each.dropped;
      expected_.refused += each.refused;
    }
  }
  void Dropped(const std::vector<Bytes>& frames, PeerId from = kStranger) {
    SendToLanes(frames, {1, 0}, from);
  }
  void Refused(const std::vector<Bytes>& frames) { SendToLanes(frames, {0, 1}); }

  void ExpectCounted() {
    Counted counted;
    const auto all = [&] {
      counted = Counters();
      return counted.dropped >= expected_.dropped && counted.refused >= expected_.refused;
    };
    EXPECT_TRUE(coordinator().WaitUntil(all, After(absl::Seconds(20))));
    EXPECT_EQ(counted, expected_);
  }

  // Stops the job; expects that all its nodes are well and its weights equal those of a quiet one.
  void ExpectUnharmed() {
    ASSERT_FALSE(coordinator().WaitForEnd(absl::Now())) << coordinator().err();
    const uint64_t step = Status().step();
    ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", step + 5));
    const std::string status = Run({"status", Path("run")}).out();
    if (expected_.dropped > 0) {
      EXPECT_THAT(status, HasSubstr("malformed messages dropped"));
    }
    if (expected_.refused > 0) {
      EXPECT_THAT(status, HasSubstr("old messages refused"));
    }
    ASSERT_TRUE(client_->Stop().ok());
    ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
    EXPECT_EQ(coordinator().exit_code(), 0) << coordinator().err();
    for (Process* node : nodes_) {
      ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
      EXPECT_EQ(node->exit_code(), 0) << node->err();
    }
    const absl::StatusOr<CheckpointState> disturbed = ReadState(Path("run"));
    ASSERT_TRUE(disturbed.ok()) << disturbed.status();
    ASSERT_NO_FATAL_FAILURE(Train(
        "quiet", {absl::StrCat("train.steps=", disturbed->version), "checkpoint.interval=0"}));
    ExpectSameState(*ReadState(Path("quiet")), *disturbed);
  }

  std::mt19937_64 random_{kSeed};
  std::unique_ptr<ControlClient> client_;
  uint64_t job_id_ = 0;
  std::vector<std::string> lanes_;
  Counted expected_;
  std::map<std::pair<size_t, PeerId>, std::unique_ptr<FramePeer>> peers_;
  std::vector<std::unique_ptr<FramePeer>> spare_peers_;
};

TEST_F(HostilePortTest, LanesSurviveWhatIsNotZmtp) {
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (const std::string& lane : lanes_) {
    for (int round = 0; round < 50; ++round) RawConnection(lane).Write(Random(random_() % 4096));
    const Bytes opening = ZmtpOpening(kStranger);
    for (size_t length = 0; length < opening.size(); length += 3) {
      RawConnection(lane).Write(Bytes(opening.begin(), opening.begin() + length));
    }
    for (int round = 0; round < 20; ++round) {
      RawConnection(lane).Write(opening + Random(random_() % 4096));
    }
    for (const uint64_t size : {uint64_t{600} << 20, uint64_t{1} << 40, ~uint64_t{0}}) {
      silent.push_back(std::make_unique<RawConnection>(lane));
      silent.back()->Write(opening + ZmtpFrameHead(size) + Random(10'000));
    }
    for (int i = 0; i < 20; ++i) {
      silent.push_back(std::make_unique<RawConnection>(lane));
      ASSERT_TRUE(silent.back()->connected());
    }
    RawConnection(lane).Write(BytesOf("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  }
  ExpectUnharmed();
}

TEST_F(HostilePortTest, LanesCountAndDropMalformedMessages) {
  const Bytes payload = Random(400);
  const Bytes good = HeaderBytes(Pull(), payload);
  for (const uint16_t version : {uint16_t{0}, uint16_t{2}, uint16_t{0xFFFF}}) {
    Bytes header = good;
    header[4] = static_cast<std::byte>(version & 0xFF);
    header[5] = static_cast<std::byte>(version >> 8);
    Reseal(header);
    Dropped({header, payload});
  }
  Bytes magic = good;
  magic[0] = std::byte{'H'};
  Reseal(magic);
  Dropped({magic, payload});
  Bytes unsealed = good;
  unsealed[50] ^= std::byte{1};
  Dropped({unsealed, payload});
  Dropped({good, Random(400)});
  Dropped({good, Bytes(payload.begin(), payload.end() - 1)});
  Dropped({good, payload + Bytes(1)});
  Dropped({good});
  Dropped({good, payload, payload});
  Dropped({Bytes()});
  Dropped({Random(96), Random(96)});
  for (size_t length = 0; length < kHeaderBytes; length += 13) {
    Dropped({Bytes(good.begin(), good.begin() + length), payload});
  }
  // A routing id that is no peer's, and another peer's id in the header.
  const Bytes name = BytesOf("somebody");
  SendToLanesNamed({good, payload}, {1, 0}, 0, &name);
  const Bytes no_name;
  SendToLanesNamed({good, payload}, {1, 0}, 0, &no_name);
  WireHeader lie = Pull();
  lie.sender = WorkerPeer(1);
  Dropped({HeaderBytes(lie, payload), payload});
  ExpectCounted();
  ExpectUnharmed();
}

// Well-formed messages, for another job or invalid in this one.
TEST_F(HostilePortTest, LanesCountAndDropWhatMakesNoSense) {
  const auto changed = [this](const auto& change) {
    WireHeader header = Pull();
    change(header);
    return header;
  };
  const auto send = [this](const WireHeader& header, const Bytes& payload) {
    Dropped({HeaderBytes(header, payload), payload}, header.sender);
  };
  send(changed([](WireHeader& h) { h.job ^= 1; }), {});
  send(changed([](WireHeader& h) { h.block = 999; }), {});
  send(changed([](WireHeader& h) { h.first_segment = 999; }), {});
  send(changed([](WireHeader& h) { h.segment_count = ~0u; }), {});
  send(changed([](WireHeader& h) { h.segment_count = 0; }), {});
  for (const MessageKind kind :
       {MessageKind::kReceived, MessageKind::kCommitted, MessageKind::kDropped,
        MessageKind::kWeights, MessageKind::kRefused, MessageKind::kNorms,
        MessageKind::kNormsWanted, MessageKind::kWeightsReceived}) {
    send(changed([&](WireHeader& h) { h.kind = kind; }), Random(64));
  }
  // From a lane that does not exist.
  const PeerId no_lane = LanePeer(9 * 256);
  send(changed([&](WireHeader& h) {
         h.kind = MessageKind::kNorms;
         h.sender = no_lane;
       }),
       Random(64));
  // Pushes of an unknown virtual worker, without tokens, or far ahead. A push of the wrong size is
  // not included: a lane that already has the push answers without checking the payload
  // (server/shard/shard_test.cc).
  const auto push = [&](const auto& change) {
    return changed([&](WireHeader& h) {
      h.kind = MessageKind::kPush;
      h.virtual_worker_count = 1;
      h.token_count = 64;
      change(h);
    });
  };
  send(push([](WireHeader& h) { h.virtual_worker = 2; }), Random(4 * 4096));
  send(push([](WireHeader& h) { h.virtual_worker_count = 3; }), Random(4 * 4096));
  send(push([](WireHeader& h) { h.token_count = 0; }), Random(4 * 4096));
  send(push([](WireHeader& h) { h.clock = uint64_t{1} << 60; }), Random(4 * 4096));
  ExpectCounted();
  ExpectUnharmed();
}

TEST_F(HostilePortTest, LanesCountAndRefuseOldViewsAndTimelines) {
  for (const auto& [timeline, view] :
       {std::pair{1u, 0u}, {1u, 2u}, {0u, 1u}, {2u, 1u}, {~0u, ~0u}}) {
    for (const MessageKind kind : {MessageKind::kPush, MessageKind::kPull, MessageKind::kNorms}) {
      WireHeader header = Pull();
      header.timeline = timeline;
      header.view = view;
      header.kind = kind;
      const Bytes payload = Random(4 * 4096);
      Refused({HeaderBytes(header, payload), payload});
    }
  }
  ExpectCounted();
  ExpectUnharmed();
}

TEST_F(HostilePortTest, TheCoordinatorSurvivesWhatIsNotAControlCall) {
  std::vector<std::unique_ptr<RawConnection>> silent;
  const Bytes preface = BytesOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  for (int round = 0; round < 50; ++round) {
    RawConnection(address()).Write(Random(random_() % 4096));
    RawConnection(address()).Write(preface + Random(random_() % 4096));
    silent.push_back(std::make_unique<RawConnection>(address()));
  }
  RawConnection(address()).Write(BytesOf("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  RawConnection(address()).Write(ZmtpOpening(kStranger) + Random(1000));
  ExpectUnharmed();
}

TEST_F(HostilePortTest, TheCoordinatorRefusesControlCallsThatMakeNoSense) {
  const StatusReply status = Status();
  RegisterRequest request;
  EXPECT_EQ(client_->Register(request).status().code(), absl::StatusCode::kFailedPrecondition);
  request.set_protocol_version(kControlVersion + 1);
  request.set_kind(WORKER);
  EXPECT_THAT(std::string(client_->Register(request).status().message()),
              HasSubstr("run the same version of tug everywhere"));
  request.set_protocol_version(kControlVersion);
  EXPECT_EQ(client_->Register(request).status().code(), absl::StatusCode::kAborted);
  request.set_kind(NODE_KIND_UNKNOWN);
  EXPECT_FALSE(client_->Register(request).ok());

  HeartbeatRequest beat;
  EXPECT_EQ(client_->Heartbeat(beat).status().code(), absl::StatusCode::kNotFound);
  beat.set_node_id(4711);
  beat.set_job(status.job());
  beat.set_failure("I say so");
  EXPECT_EQ(client_->Heartbeat(beat).status().code(), absl::StatusCode::kNotFound);
  beat.set_node_id(status.nodes(0).node_id());
  beat.set_job(status.job() ^ 1);
  EXPECT_EQ(client_->Heartbeat(beat).status().code(), absl::StatusCode::kNotFound);
  // Larger than the limit.
  beat.set_failure(std::string(kMaxControlMessageBytes + 1000, 'x'));
  EXPECT_FALSE(client_->Heartbeat(beat).ok());
  // Small when compressed, too large when decompressed.
  beat.set_job(status.job());
  beat.set_failure(std::string(8 << 20, 'x'));
  grpc::ClientContext context;
  AddProof(JobKeys(), context);
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  HeartbeatReply reply;
  const auto stub =
      Control::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(stub->Heartbeat(&context, beat, &reply).error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(Status().phase(), RUNNING);
  ExpectUnharmed();
}

}  // namespace
}  // namespace tug
