// SPDX-License-Identifier: Apache-2.0
// Malicious or broken bytes sent to a server's port: random, truncated, oversized, of another
// version, under a false name. They are counted and dropped, while a good peer's messages keep
// arriving. Seeded and bounded.

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "config/largest_payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/open_transport.h"
#include "transport/raw_connection_test_support.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr uint64_t kSeed = 31337;
constexpr uint64_t kMaxPayload = 64 << 10;
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr PeerId kGood = WorkerPeer(1);
constexpr PeerId kBad = WorkerPeer(666);

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

void Reseal(Frame& header) {
  const uint64_t sum = XXH3_64bits(header.data(), 88);
  for (size_t i = 0; i < 8; ++i) header[88 + i] = static_cast<std::byte>(sum >> (8 * i));
}

// A correct header for `payload` from `sender`.
Frame Header(PeerId sender, const Frame& payload) {
  WireHeader header;
  header.sender = sender;
  header.payload_bytes = payload.size();
  header.payload_xxh3 = PayloadChecksum(payload);
  HeaderBytes bytes;
  EncodeHeader(header, bytes);
  return FrameOf(bytes);
}

// READY command: a DEALER with the routing id of `peer`.
Frame ZmtpReady(PeerId peer) {
  const auto property = [](const std::string& name, const Frame& value) {
    const char size[] = {0, 0, 0, static_cast<char>(value.size())};
    return Text(std::string(1, static_cast<char>(name.size())) + name) +
           FrameOf(std::as_bytes(std::span(size))) + value;
  };
  const Frame body = Text("\x05READY") + property("Socket-Type", Text("DEALER")) +
                     property("Identity", FrameOf(RoutingId(peer)));
  return Frame{std::byte{4}, static_cast<std::byte>(body.size())} + body;
}

// A ZeroMQ socket that sends arbitrary frames.
class BadPeer {
 public:
  BadPeer(const std::string& endpoint, const Frame& routing_id)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_.get(), ZMQ_DEALER)) {
    const int linger = 0;
    zmq_setsockopt(socket_.get(), ZMQ_LINGER, &linger, sizeof(linger));
    if (!routing_id.empty()) {
      zmq_setsockopt(socket_.get(), ZMQ_ROUTING_ID, routing_id.data(), routing_id.size());
    }
    EXPECT_EQ(zmq_connect(socket_.get(), endpoint.c_str()), 0);
  }
  // Whether a message is available; reads it.
  bool Receives() { return zmq_recv(socket_.get(), nullptr, 0, ZMQ_DONTWAIT) >= 0; }
  void Send(const std::vector<Frame>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
      EXPECT_GE(zmq_send(socket_.get(), frames[i].data(), frames[i].size(), flags), 0);
    }
  }

 private:
  ZmqContext context_;
  ZmqSocket socket_;
};

// A lane under attack, and a good worker that keeps pushing to it.
class HostileTest : public ::testing::Test {
 protected:
  HostileTest() : random_(kSeed) {
    std::cout << "seed " << kSeed << std::endl;
    ZmqTransport::Options options;
    options.self = LanePeer(0);
    options.bind_host = "127.0.0.1";
    options.max_message_bytes = kMaxPayload;
    options.heartbeat = absl::Milliseconds(50);
    options.patience = absl::Milliseconds(500);
    lane_ = *ZmqTransport::Create(options);
    options.self = kGood;
    options.bind_host = "";
    worker_ = *ZmqTransport::Create(options);
    EXPECT_TRUE(worker_->Connect(LanePeer(0), lane_->endpoint()).ok());
    port_ = PortOf(lane_->endpoint());
  }

  Frame Random(size_t size) {
    Frame bytes(size);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    return bytes;
  }

  bool PollLaneUntil(const std::function<bool()>& done) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > deadline) return false;
      lane_->Poll(absl::Milliseconds(1), [this](Message m) {
        if (m.header.sender == kBad) {
          ++bad_received_;
          return;
        }
        EXPECT_EQ(m.header.sender, kGood);
        EXPECT_EQ(m.header.clock, good_received_);
        ++good_received_;
      });
    }
    return true;
  }

  void ExpectGoodPeerIsServed() {
    Outgoing push;
    push.to = LanePeer(0);
    push.header.clock = good_sent_++;
    auto payload = std::make_shared<Frame>(Random(1000));
    push.payload = Lease(payload, std::span<const std::byte>(*payload));
    ASSERT_TRUE(worker_->Send(std::move(push)).ok());
    worker_->Poll(absl::ZeroDuration(), [](Message) {});
    EXPECT_TRUE(PollLaneUntil([&] { return good_received_ == good_sent_; }));
  }

  void ExpectDropped(const std::string& name, BadPeer& peer, const std::vector<Frame>& frames) {
    SCOPED_TRACE(name);
    const uint64_t before = lane_->counters().dropped;
    peer.Send(frames);
    EXPECT_TRUE(PollLaneUntil([&] { return lane_->counters().dropped > before; }));
    EXPECT_EQ(lane_->counters().dropped, before + 1);
    ExpectGoodPeerIsServed();
  }

  std::mt19937_64 random_;
  std::unique_ptr<ZmqTransport> lane_;
  std::unique_ptr<ZmqTransport> worker_;
  uint16_t port_ = 0;
  uint64_t good_sent_ = 0;
  uint64_t good_received_ = 0;
  uint64_t bad_received_ = 0;  // complete records of the bad peer
};

TEST_F(HostileTest, SurvivesRandomBytesOnItsPort) {
  for (int round = 0; round < 100; ++round) {
    RawConnection connection(port_);
    ASSERT_TRUE(connection.connected());
    connection.Write(Random(random_() % 4096));
    if (round % 10 == 0) ExpectGoodPeerIsServed();
  }
  ExpectGoodPeerIsServed();
}

TEST_F(HostileTest, SurvivesTruncatedGreetings) {
  const Frame opening = ZmtpGreeting() + ZmtpReady(kBad);
  for (size_t length = 0; length < opening.size(); ++length) {
    RawConnection connection(port_);
    ASSERT_TRUE(connection.connected());
    connection.Write(Frame(opening.begin(), opening.begin() + length));
  }
  ExpectGoodPeerIsServed();
}

TEST_F(HostileTest, SurvivesGarbageAfterAGoodGreeting) {
  for (int round = 0; round < 100; ++round) {
    RawConnection connection(port_);
    ASSERT_TRUE(connection.connected());
    connection.Write(ZmtpGreeting() + Random(random_() % 64));
    connection.Write(ZmtpGreeting() + ZmtpReady(kBad + round) + Random(random_() % 4096));
  }
  ExpectGoodPeerIsServed();
}

TEST_F(HostileTest, SurvivesFramesThatClaimToBeHuge) {
  for (const uint64_t size :
       {kMaxPayload + 1, uint64_t{1} << 31, uint64_t{1} << 40, uint64_t{1} << 62, ~uint64_t{0}}) {
    RawConnection connection(port_);
    ASSERT_TRUE(connection.connected());
    connection.Write(ZmtpGreeting() + ZmtpReady(kBad) + ZmtpLongFrame(size) + Random(1000));
    ExpectGoodPeerIsServed();
  }
}

// An endpoint allocates no memory for frames larger than any message of the job.
TEST(HostileFrames, LongerThanAnyOfTheJobEndTheirConnection) {
  CommConfig comm;
  comm.set_segment_elements(1 << 18);
  comm.set_partition_bytes(4 << 20);
  ASSERT_LE(LargestPayload(comm), uint64_t{16} << 20);
  const auto lane = OpenTransport(LanePeer(0), 1, comm, "127.0.0.1");
  ASSERT_TRUE(lane.ok()) << lane.status();
  RawConnection longest(PortOf(lane->endpoint)), longer(PortOf(lane->endpoint));
  longest.Write(ZmtpGreeting() + ZmtpReady(kGood) + ZmtpLongFrame(LargestPayload(comm)));
  longer.Write(ZmtpGreeting() + ZmtpReady(kBad) + ZmtpLongFrame(LargestPayload(comm) + 1));
  const absl::Time deadline = absl::Now() + kPatience;
  while (!longer.HasEnded() && absl::Now() < deadline) {
    lane->transport->Poll(absl::Milliseconds(1), [](Message) {});
  }
  EXPECT_TRUE(longer.HasEnded());
  EXPECT_FALSE(longest.HasEnded());
}

TEST_F(HostileTest, ServesThroughConnectionsThatStaySilent) {
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(std::make_unique<RawConnection>(port_));
  ExpectGoodPeerIsServed();
}

TEST_F(HostileTest, CountsAndDropsMalformedMessages) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  const Frame payload = Random(500);
  const Frame good = Header(kBad, payload);

  Frame magic = good;
  magic[0] = std::byte{'H'};
  Reseal(magic);
  ExpectDropped("wrong magic", peer, {magic, payload});

  Frame version = good;
  version[4] = static_cast<std::byte>(kWireVersion - 1);
  Reseal(version);
  ExpectDropped("old version", peer, {version, payload});
  version[4] = static_cast<std::byte>(kWireVersion + 1);
  Reseal(version);
  ExpectDropped("version from the future", peer, {version, payload});

  Frame kind = good;
  kind[6] = std::byte{200};
  Reseal(kind);
  ExpectDropped("unknown kind", peer, {kind, payload});

  ExpectDropped("no header", peer, {Frame(), payload});
  ExpectDropped("payload shorter than said", peer,
                {good, Frame(payload.begin(), payload.end() - 1)});
  ExpectDropped("payload longer than said", peer, {good, payload + Frame(1)});
  ExpectDropped("payload missing", peer, {good, Frame()});
  ExpectDropped("changed payload", peer, {good, Random(500)});
  ExpectDropped("one frame", peer, {good});
  ExpectDropped("three frames", peer, {good, payload, payload});
  ExpectDropped("a hundred frames", peer, std::vector<Frame>(100, good));
  ExpectDropped("header and payload in one frame", peer, {good + payload});
  ExpectDropped("frames swapped", peer, {payload, good});
  ExpectDropped("an empty message", peer, {Frame()});
}

TEST_F(HostileTest, CountsAndDropsEveryTruncatedHeader) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  const Frame good = Header(kBad, {});
  for (size_t length = 0; length < kHeaderBytes; length += 5) {
    ExpectDropped(absl::StrCat(length, " bytes"), peer,
                  {Frame(good.begin(), good.begin() + length), Frame()});
  }
}

TEST_F(HostileTest, CountsAndDropsFlippedBits) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  for (int round = 0; round < 60; ++round) {
    Frame payload = Random(1 + random_() % 2000);
    Frame header = Header(kBad, payload);
    Frame& target = round % 2 == 0 ? header : payload;
    const size_t bit = random_() % (8 * target.size());
    target[bit / 8] ^= std::byte{1} << (bit % 8);
    ExpectDropped(absl::StrCat("seed ", kSeed, " round ", round), peer, {header, payload});
  }
}

TEST_F(HostileTest, DeliversABatchUpToItsFirstMalformedRecord) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  const Frame a = Random(16);
  const Frame b = Random(13);
  const Frame c = Random(100);
  const Frame padding(3);
  const Frame payloads = a + b + padding + c;
  const Frame ha = Header(kBad, a);
  const Frame hb = Header(kBad, b);
  const Frame hc = Header(kBad, c);
  const Frame none = Header(kBad, {});
  peer.Send({ha + none + hb + none + hc, payloads});
  EXPECT_TRUE(PollLaneUntil([&] { return bad_received_ == 5; }));
  EXPECT_EQ(lane_->counters().dropped, 0u);

  const auto expect = [&](const std::string& name, uint64_t whole, const Frame& headers,
                          const Frame& frame) {
    bad_received_ = 0;
    ExpectDropped(name, peer, {headers, frame});
    EXPECT_EQ(bad_received_, whole) << name;
  };
  Frame broken = hb;
  broken[50] ^= std::byte{1};
  expect("a good record after a bad one", 1, ha + broken + hc, payloads);
  expect("a bad one first", 0, broken + ha, a);
  expect("another's name in the middle", 1, ha + Header(kGood, b) + hc, payloads);
  expect("a truncated run", 2, ha + hb + Frame(hc.begin(), hc.begin() + 95), payloads);
  expect("one byte too many headers", 1, ha + Frame(1), a);
  expect("payloads end too soon", 2, ha + hb + hc, Frame(payloads.begin(), payloads.end() - 1));
  expect("payloads missing", 0, ha + hb + hc, Frame());
  expect("payloads that end within the padding", 2, ha + hb + hc, a + b + Frame(1));
  expect("payloads do not fill the frame", 2, ha + hb + hc, payloads + Frame(8));
  expect("bytes after the last payload", 2, ha + hb + none, a + b + padding);
  expect("payloads without padding", 2, ha + hb + hc, a + b + c + Frame(3));
  expect("payloads for headers that have none", 1, none + none, a);
  expect("no headers", 0, Frame(), payloads);
}

TEST_F(HostileTest, CountsAndDropsMessagesOfTooManyRecords) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  const Frame none = Header(kBad, {});
  Frame run;
  for (size_t i = 0; i < kMaxRecords; ++i) run = run + none;
  peer.Send({run, Frame()});
  EXPECT_TRUE(PollLaneUntil([&] { return bad_received_ == kMaxRecords; }));
  ExpectDropped("one more", peer, {run + none, Frame()});
  EXPECT_EQ(bad_received_, kMaxRecords);
  // 10,000 headers exceed the largest frame, which ends the connection.
  Frame many;
  for (int i = 0; i < 10000; ++i) many.insert(many.end(), none.begin(), none.end());
  peer.Send({many, Frame()});
  ExpectGoodPeerIsServed();
  EXPECT_EQ(bad_received_, kMaxRecords);
}

TEST_F(HostileTest, CountsAndDropsFalseNames) {
  const Frame payload = Random(100);
  BadPeer named(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  ExpectDropped("another's name in the header", named, {Header(kGood, payload), payload});
  BadPeer nameless(lane_->endpoint(), Frame());
  ExpectDropped("no routing id", nameless, {Header(kGood, payload), payload});
  BadPeer stranger(lane_->endpoint(), Text("a name that is not ours"));
  ExpectDropped("another routing id", stranger, {Header(kGood, payload), payload});
}

// libzmq keeps the connection of the previous owner of a routing id open, but no longer reads it.
TEST_F(HostileTest, APeerWhoseRoutingIdWasTakenIsHeardAgainOnceTheThiefHasGone) {
  ExpectGoodPeerIsServed();
  {
    BadPeer thief(lane_->endpoint(), FrameOf(RoutingId(kGood)));
    const absl::Time deadline = absl::Now() + kPatience;
    while (!thief.Receives()) {
      ASSERT_LT(absl::Now(), deadline);
      Outgoing to_good;
      to_good.to = kGood;
      ASSERT_TRUE(lane_->Send(std::move(to_good)).ok());
      lane_->Poll(absl::Milliseconds(1), [](Message) {});
    }
  }
  bool heard = false;
  const absl::Time deadline = absl::Now() + kPatience;
  while (!heard && absl::Now() < deadline) {
    Outgoing push;
    push.to = LanePeer(0);
    ASSERT_TRUE(worker_->Send(std::move(push)).ok());
    worker_->Poll(absl::ZeroDuration(), [](Message) {});
    lane_->Poll(absl::Milliseconds(20), [&](Message) { heard = true; });
  }
  EXPECT_TRUE(heard);
}

TEST_F(HostileTest, DisconnectsWhoSendsTooMuch) {
  BadPeer peer(lane_->endpoint(), FrameOf(RoutingId(kBad)));
  for (int round = 0; round < 5; ++round) {
    const Frame payload(kMaxPayload + 1);
    peer.Send({Header(kBad, payload), payload});
    ExpectGoodPeerIsServed();
  }
}

TEST_F(HostileTest, AWorkerDropsWhatAFalseLaneSends) {
  ZmqContext context(zmq_ctx_new());
  ZmqSocket router(zmq_socket(context.get(), ZMQ_ROUTER));
  const int linger = 0;
  zmq_setsockopt(router.get(), ZMQ_LINGER, &linger, sizeof(linger));
  ASSERT_EQ(zmq_bind(router.get(), "tcp://127.0.0.1:*"), 0);
  std::array<char, 128> endpoint{};
  size_t size = endpoint.size();
  ASSERT_EQ(zmq_getsockopt(router.get(), ZMQ_LAST_ENDPOINT, endpoint.data(), &size), 0);
  ASSERT_TRUE(worker_->Connect(LanePeer(1), endpoint.data()).ok());
  Outgoing hello;
  hello.to = LanePeer(1);
  ASSERT_TRUE(worker_->Send(std::move(hello)).ok());
  worker_->Poll(absl::ZeroDuration(), [](Message) {});
  std::array<char, 256> scratch;
  for (int frame = 0; frame < 3; ++frame) {
    ASSERT_GE(zmq_recv(router.get(), scratch.data(), scratch.size(), 0), 0);
  }

  const auto reply = [&](const std::vector<Frame>& frames) {
    const auto id = RoutingId(kGood);
    EXPECT_EQ(zmq_send(router.get(), id.data(), id.size(), ZMQ_SNDMORE), 5);
    for (size_t i = 0; i < frames.size(); ++i) {
      const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      EXPECT_GE(zmq_send(router.get(), frames[i].data(), frames[i].size(), flags), 0);
    }
  };
  const Frame payload = Random(64);
  reply({Header(LanePeer(0), payload), payload});  // name of another lane
  reply({Header(LanePeer(1), payload)});
  reply({Header(LanePeer(1), payload), payload, payload});
  reply({Random(96), payload});
  reply({Header(LanePeer(1), payload), payload});  // the only good one
  int received = 0;
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (received == 0 && absl::Now() < deadline) {
    worker_->Poll(absl::Milliseconds(1), [&](Message) { ++received; });
  }
  EXPECT_EQ(received, 1);
  EXPECT_EQ(worker_->counters().dropped, 4u);
}

}  // namespace
}  // namespace tug
