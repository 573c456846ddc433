// SPDX-License-Identifier: Apache-2.0
#include "transport/zmq_transport.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using Options = ZmqTransport::Options;

std::unique_ptr<ZmqTransport> Open(const Options& options) {
  auto transport = ZmqTransport::Create(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

Options LaneOptions(uint32_t lane, uint16_t port = 0) {
  Options options;
  options.self = LanePeer(lane);
  options.bind_host = "127.0.0.1";
  options.bind_port = port;
  return options;
}

Options WorkerOptions(uint32_t node_id) {
  Options options;
  options.self = WorkerPeer(node_id);
  return options;
}

Lease Bytes(size_t size, int value) {
  auto owner = std::make_shared<std::vector<std::byte>>(size, static_cast<std::byte>(value));
  return Lease(owner, std::span<const std::byte>(*owner));
}

bool IsFilledWith(const Lease& lease, int value) {
  return std::ranges::all_of(lease.bytes(),
                             [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

Outgoing To(PeerId to, uint64_t clock, Lease payload = Lease()) {
  Outgoing message;
  message.to = to;
  message.header.clock = clock;
  message.payload = std::move(payload);
  return message;
}

// One endpoint and its received messages.
struct End {
  explicit End(const Options& options) : transport(Open(options)) {}
  void Poll() {
    transport->Poll(absl::Milliseconds(1), [this](Message m) { inbox.push_back(std::move(m)); });
  }
  std::unique_ptr<ZmqTransport> transport;
  std::vector<Message> inbox;
};

// Polls the endpoints until `done()` holds; false after 20 s.
bool PollUntil(const std::vector<End*>& ends, const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!done()) {
    if (absl::Now() > deadline) return false;
    for (End* end : ends) end->Poll();
  }
  return true;
}

uint16_t PortOf(const ZmqTransport& transport) {
  const std::string endpoint = transport.endpoint();
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

TEST(RoutingId, NamesThePeerAndRefusesWhatIsNotOurs) {
  for (const PeerId peer : {LanePeer(0), LanePeer(70000), WorkerPeer(0), WorkerPeer(0xFFFFFF)}) {
    EXPECT_EQ(PeerOfRoutingId(RoutingId(peer)), peer);
  }
  EXPECT_EQ(PeerOfRoutingId({}), std::nullopt);
  auto id = RoutingId(1);
  EXPECT_EQ(PeerOfRoutingId(std::span(id).first(4)), std::nullopt);
  id[0] = std::byte{0};
  EXPECT_EQ(PeerOfRoutingId(id), std::nullopt);
}

TEST(ZmqTransport, DeliversBothWaysOverOneConnection) {
  End lane(LaneOptions(0));
  End worker(WorkerOptions(3));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 11, Bytes(5000, 7))).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  EXPECT_EQ(lane.inbox[0].header.sender, WorkerPeer(3));
  EXPECT_EQ(lane.inbox[0].header.clock, 11u);
  EXPECT_EQ(lane.inbox[0].header.payload_bytes, 5000u);
  EXPECT_TRUE(IsFilledWith(lane.inbox[0].payload, 7));

  ASSERT_TRUE(lane.transport->Send(To(WorkerPeer(3), 12)).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return worker.inbox.size() == 1; }));
  EXPECT_EQ(worker.inbox[0].header.sender, LanePeer(0));
  EXPECT_EQ(worker.inbox[0].header.clock, 12u);
  EXPECT_EQ(worker.inbox[0].payload.size_bytes(), 0u);

  EXPECT_EQ(worker.transport->counters().sent_bytes, 5104u);
  EXPECT_EQ(lane.transport->counters().received_bytes, 5104u);
  EXPECT_EQ(worker.transport->counters().received_messages, 1u);
  EXPECT_EQ(lane.transport->counters().dropped, 0u);
}

TEST(ZmqTransport, PayloadsOfAnySizeArriveWholeAndAligned) {
  End lane(LaneOptions(0));
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  std::vector<size_t> sizes = {8191, 8192, 8193, 65536, size_t{5} << 20};
  for (size_t size = 0; size < 300; ++size) sizes.push_back(size);
  for (const size_t size : sizes) {
    ASSERT_TRUE(
        worker.transport->Send(To(LanePeer(0), size, Bytes(size, static_cast<int>(size)))).ok());
  }
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == sizes.size(); }));
  for (const Message& m : lane.inbox) {
    EXPECT_EQ(m.payload.size_bytes(), m.header.clock);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(m.payload.bytes().data()) % kPayloadAlignment, 0u);
    EXPECT_TRUE(IsFilledWith(m.payload, static_cast<int>(m.header.clock))) << m.header.clock;
  }
}

TEST(ZmqTransport, ChecksumIsSentOnlyIfAskedFor) {
  End lane(LaneOptions(0));
  for (const bool checksum : {true, false}) {
    Options options = WorkerOptions(1);
    options.checksum = checksum;
    End worker(options);
    lane.inbox.clear();
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 0, Bytes(100, 1))).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
    EXPECT_EQ(lane.inbox[0].header.payload_xxh3 != 0, checksum);
  }
}

TEST(ZmqTransport, NamesTheAddressItCannotListenAt) {
  End lane(LaneOptions(0));
  const uint16_t port = PortOf(*lane.transport);
  const absl::Status in_use = ZmqTransport::Create(LaneOptions(1, port)).status();
  EXPECT_EQ(in_use.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(in_use.message(), "cannot listen on 127.0.0.1:" + std::to_string(port) +
                                  ": address in use; choose another port or 0");

  Options elsewhere = LaneOptions(1);
  elsewhere.bind_host = "192.0.2.1";  // reserved for documentation, so never local
  const absl::Status not_ours = ZmqTransport::Create(elsewhere).status();
  EXPECT_EQ(not_ours.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(not_ours.message()), HasSubstr("cannot listen on 192.0.2.1:0: "));
}

TEST(ZmqTransport, RefusesWhatIsNotAnEndpoint) {
  End worker(WorkerOptions(1));
  for (const char* bad : {"", "127.0.0.1:4000", "tcp://127.0.0.1", "tcp://127.0.0.1:x"}) {
    const absl::Status status = worker.transport->Connect(LanePeer(2), bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot connect to lane 2 at"));
  }
}

TEST(ZmqTransport, SendToAStrangerIsNotFound) {
  End lane(LaneOptions(0));
  End worker(WorkerOptions(1));
  for (End* end : {&lane, &worker}) {
    const absl::Status status = end->transport->Send(To(WorkerPeer(9), 0));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 9 is not reachable"));
    EXPECT_EQ(end->transport->counters().sent_messages, 0u);
  }
}

TEST(ZmqTransport, APeerThatIsGoneBecomesNotFound) {
  End lane(LaneOptions(0));
  {
    End worker(WorkerOptions(1));
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 0)).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  }
  EXPECT_TRUE(PollUntil({&lane}, [&] {
    return lane.transport->Send(To(WorkerPeer(1), 1)).code() == absl::StatusCode::kNotFound;
  }));
}

TEST(ZmqTransport, AFullQueueIsSaidAndNothingBlocks) {
  std::string nobody;
  { nobody = End(LaneOptions(0)).transport->endpoint(); }
  Options options = WorkerOptions(1);
  options.send_high_water = 4;
  End worker(options);
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), nobody).ok());
  auto buffer = std::make_shared<std::vector<float>>(100000, 1.0f);
  absl::Status status;
  int sent = 0;
  for (; sent < 100 && status.ok(); ++sent) {
    status =
        worker.transport->Send(To(LanePeer(0), 0, Lease(buffer, std::span<const float>(*buffer))));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the queue to lane 0 is full"));
  EXPECT_EQ(sent, 5);
  EXPECT_EQ(buffer.use_count(), 5);  // four are queued, the fifth was released
  worker.transport.reset();
  EXPECT_EQ(buffer.use_count(), 1);
}

TEST(ZmqTransport, SmallMessagesThatFindTheQueueFullWaitUntilItHasRoom) {
  uint16_t port = 0;
  { port = PortOf(*End(LaneOptions(0)).transport); }
  Options options = WorkerOptions(1);
  options.send_high_water = 4;
  End worker(options);
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), absl::StrCat("tcp://127.0.0.1:", port)).ok());
  // Batches fill the queue, then the last batch fills up; nothing is lost.
  uint64_t sent = 0;
  absl::Status status = absl::OkStatus();
  while (status.ok() && sent < 100'000) {
    status = worker.transport->Send(To(LanePeer(0), sent, Bytes(10, 0)));
    if (status.ok() && ++sent % 3 == 0)
      worker.transport->Poll(absl::ZeroDuration(), [](Message) {});
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(worker.transport->counters().lost, 0u);
  End lane(LaneOptions(0, port));
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == sent; }));
  for (uint64_t i = 0; i < sent; ++i) ASSERT_EQ(lane.inbox[i].header.clock, i);
}

TEST(ZmqTransport, MessagesOfAllSizesArriveInTheOrderOfTheirSends) {
  constexpr size_t kSizes[] = {0, 1, 4096, 8192, 8193, 0, 0, 300000, 7, 0, 65536, 65537, 5, 5000};
  constexpr size_t kMessages = 1000;
  End lane(LaneOptions(0));
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  for (size_t i = 0; i < kMessages; ++i) {
    const size_t size = kSizes[i % std::size(kSizes)];
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), i, Bytes(size, i % 251))).ok());
    if (i % 17 == 0) {
      lane.Poll();
      worker.Poll();
    }
  }
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == kMessages; }));
  for (size_t i = 0; i < kMessages; ++i) {
    const Message& m = lane.inbox[i];
    EXPECT_EQ(m.header.clock, i);
    EXPECT_EQ(m.payload.size_bytes(), kSizes[i % std::size(kSizes)]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(m.payload.bytes().data()) % kPayloadAlignment, 0u);
    EXPECT_TRUE(IsFilledWith(m.payload, i % 251));
  }
  EXPECT_EQ(lane.transport->counters().dropped, 0u);
}

TEST(ZmqTransport, MessagesOfHandlerAreSentWhenPollReturns) {
  End lane(LaneOptions(0));
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 1)).ok());
  bool answered = false;
  ASSERT_TRUE(PollUntil({&worker}, [&] {
    lane.transport->Poll(absl::Milliseconds(1), [&](Message m) {
      EXPECT_TRUE(lane.transport->Send(To(m.header.sender, 2)).ok());
      answered = true;
    });
    return answered;
  }));
  EXPECT_TRUE(PollUntil({&worker}, [&] { return worker.inbox.size() == 1; }));
}

TEST(ZmqTransport, ConnectAfterAnswersOverTheRouterKeepsTheirOrder) {
  End a(LaneOptions(0));
  End b(LaneOptions(1));
  ASSERT_TRUE(a.transport->Connect(LanePeer(1), b.transport->endpoint()).ok());
  ASSERT_TRUE(a.transport->Send(To(LanePeer(1), 0)).ok());
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.inbox.size() == 1; }));
  ASSERT_TRUE(b.transport->Send(To(LanePeer(0), 1)).ok());
  ASSERT_TRUE(b.transport->Send(To(LanePeer(0), 2)).ok());
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return a.inbox.size() == 2; }));
  ASSERT_TRUE(b.transport->Send(To(LanePeer(0), 3)).ok());
  ASSERT_TRUE(b.transport->Connect(LanePeer(0), a.transport->endpoint()).ok());
  ASSERT_TRUE(b.transport->Send(To(LanePeer(0), 4)).ok());
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return a.inbox.size() == 4; }));
}

TEST(ZmqTransport, SendsFromTheLeaseAndThenReleasesIt) {
  End lane(LaneOptions(0));
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  auto buffer = std::make_shared<std::vector<std::byte>>(1 << 20, std::byte{5});
  ASSERT_TRUE(
      worker.transport->Send(To(LanePeer(0), 0, Lease(buffer, std::span<const std::byte>(*buffer))))
          .ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  ASSERT_TRUE(PollUntil({&lane}, [&] { return buffer.use_count() == 1; }));
  EXPECT_THAT(lane.inbox[0].payload.bytes(), SizeIs(1 << 20));
  EXPECT_TRUE(IsFilledWith(lane.inbox[0].payload, 5));
}

TEST(ZmqTransport, ReceivedPayloadsOutliveTheTransport) {
  Message kept;
  {
    End lane(LaneOptions(0));
    End worker(WorkerOptions(1));
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 0, Bytes(100000, 9))).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
    kept = lane.inbox[0];
  }
  EXPECT_TRUE(IsFilledWith(kept.payload, 9));
}

TEST(ZmqTransport, QueuedMessagesAreFlushedWhenTheSenderCloses) {
  End lane(LaneOptions(0));
  {
    End worker(WorkerOptions(1));
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), i, Bytes(50000, i))).ok());
    }
  }
  EXPECT_TRUE(PollUntil({&lane}, [&] { return lane.inbox.size() == 20; }));
}

TEST(ZmqTransport, FindsALaneThatComesBackOnItsPort) {
  End worker(WorkerOptions(1));
  uint16_t port = 0;
  {
    End lane(LaneOptions(0));
    port = PortOf(*lane.transport);
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 0)).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  }
  End lane(LaneOptions(0, port));
  // Messages sent before the loss was noticed may be lost.
  uint64_t clock = 1;
  EXPECT_TRUE(PollUntil({&lane, &worker}, [&] {
    EXPECT_TRUE(worker.transport->Send(To(LanePeer(0), clock++)).ok());
    return !lane.inbox.empty();
  }));
}

TEST(ZmqTransport, ConnectAgainMovesThePeer) {
  End old_place(LaneOptions(0));
  End new_place(LaneOptions(0));
  End worker(WorkerOptions(1));
  const std::string first = old_place.transport->endpoint();
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), first).ok());
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), first).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 1)).ok());
  ASSERT_TRUE(PollUntil({&old_place, &worker}, [&] { return old_place.inbox.size() == 1; }));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), new_place.transport->endpoint()).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 2)).ok());
  ASSERT_TRUE(PollUntil({&new_place, &worker}, [&] { return new_place.inbox.size() == 1; }));
  EXPECT_THAT(old_place.inbox, SizeIs(1));
}

TEST(ZmqTransport, TheHandlerMayConnectAndSend) {
  End first(LaneOptions(0));
  End second(LaneOptions(1));
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), first.transport->endpoint()).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 1)).ok());
  ASSERT_TRUE(PollUntil({&first, &worker}, [&] { return first.inbox.size() == 1; }));
  ASSERT_TRUE(first.transport->Send(To(WorkerPeer(1), 2)).ok());
  ASSERT_TRUE(PollUntil({&first, &second}, [&] {
    worker.transport->Poll(absl::Milliseconds(1), [&](Message) {
      EXPECT_TRUE(worker.transport->Connect(LanePeer(1), second.transport->endpoint()).ok());
      EXPECT_TRUE(worker.transport->Send(To(LanePeer(1), 3)).ok());
    });
    return second.inbox.size() == 1;
  }));
}

TEST(ZmqTransport, TwoLanesReachEachOtherOverTheirOwnConnections) {
  End a(LaneOptions(0));
  End b(LaneOptions(1));
  ASSERT_TRUE(a.transport->Connect(LanePeer(1), b.transport->endpoint()).ok());
  ASSERT_TRUE(b.transport->Connect(LanePeer(0), a.transport->endpoint()).ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(a.transport->Send(To(LanePeer(1), i)).ok());
    ASSERT_TRUE(b.transport->Send(To(LanePeer(0), i)).ok());
  }
  EXPECT_TRUE(PollUntil({&a, &b}, [&] { return a.inbox.size() == 10 && b.inbox.size() == 10; }));
  EXPECT_EQ(a.transport->counters().dropped + b.transport->counters().dropped, 0u);
}

TEST(ZmqTransport, ABatchIsBoundedAndNothingIsLeftBehind) {
  constexpr size_t kEach = 1000;
  End lane(LaneOptions(0));
  std::vector<std::unique_ptr<End>> workers;
  std::vector<End*> ends;
  for (int w = 0; w < 3; ++w) {
    workers.push_back(std::make_unique<End>(WorkerOptions(w)));
    ends.push_back(workers.back().get());
    ZmqTransport& transport = *workers.back()->transport;
    ASSERT_TRUE(transport.Connect(LanePeer(0), lane.transport->endpoint()).ok());
    for (size_t i = 0; i < kEach; ++i) ASSERT_TRUE(transport.Send(To(LanePeer(0), i)).ok());
  }
  size_t largest = 0;
  EXPECT_TRUE(PollUntil(ends, [&] {
    const size_t before = lane.inbox.size();
    lane.Poll();
    largest = std::max(largest, lane.inbox.size() - before);
    return lane.inbox.size() == 3 * kEach;
  }));
  EXPECT_LT(largest, Transport::kMaxBatch + kMaxRecords);
}

TEST(ZmqTransport, WakeEndsAPollOnAnotherThread) {
  End worker(WorkerOptions(1));
  std::atomic<int> rounds = 0;
  std::thread poller([&] {
    for (int i = 0; i < 20; ++i) {
      worker.transport->Poll(absl::InfiniteDuration(), [](Message) {});
      rounds = i + 1;
    }
  });
  for (int i = 0; i < 20; ++i) {
    worker.transport->Wake();
    while (rounds <= i) std::this_thread::yield();
  }
  poller.join();
  EXPECT_EQ(rounds, 20);
}

TEST(ZmqTransport, WakeBeforePollEndsTheNextOneOnly) {
  End worker(WorkerOptions(1));
  worker.transport->Wake();
  worker.transport->Wake();
  worker.transport->Poll(absl::InfiniteDuration(), [](Message) {});
  const absl::Time before = absl::Now();
  worker.transport->Poll(absl::Milliseconds(20), [](Message) {});
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(15));
}

TEST(ZmqTransport, EndsOnTheirOwnThreadsExchangeThousandsOfMessages) {
  constexpr uint64_t kMessages = 2000;
  End lane(LaneOptions(0));
  const std::string endpoint = lane.transport->endpoint();
  std::atomic<bool> done = false;
  std::thread echo([&] {
    while (!done) {
      lane.transport->Poll(absl::Milliseconds(10), [&](Message m) {
        EXPECT_TRUE(lane.transport->Send(To(m.header.sender, m.header.clock, m.payload)).ok());
      });
    }
  });
  End worker(WorkerOptions(1));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), endpoint).ok());
  uint64_t sent = 0;
  uint64_t echoed = 0;
  EXPECT_TRUE(PollUntil({}, [&] {
    for (; sent < kMessages && sent < echoed + 32; ++sent) {
      EXPECT_TRUE(
          worker.transport->Send(To(LanePeer(0), sent, Bytes(1 + (sent * 37) % 20000, sent % 251)))
              .ok());
    }
    worker.transport->Poll(absl::Milliseconds(1), [&](Message m) {
      EXPECT_EQ(m.header.clock, echoed);
      EXPECT_EQ(m.payload.size_bytes(), 1 + (echoed * 37) % 20000);
      EXPECT_EQ(m.payload.bytes().back(), static_cast<std::byte>(echoed % 251));
      ++echoed;
    });
    return echoed == kMessages;
  }));
  done = true;
  echo.join();
  EXPECT_EQ(lane.transport->counters().dropped, 0u);
}

}  // namespace
}  // namespace tug
