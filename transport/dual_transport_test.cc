// SPDX-License-Identifier: Apache-2.0
#include "transport/dual_transport.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/file_descriptor.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

struct End {
  End(PeerId self, uint64_t job, bool listen, bool shared_memory, const JobKeys& keys = JobKeys()) {
    DualTransport::Options options;
    options.tcp.self = self;
    options.tcp.keys = keys;
    if (listen) options.tcp.bind_host = "127.0.0.1";
    options.job = job;
    options.shared_memory = shared_memory;
    auto created = DualTransport::Create(options);
    EXPECT_TRUE(created.ok()) << created.status();
    transport = *std::move(created);
  }
  void Poll() {
    transport->Poll(absl::Milliseconds(1), [this](Message m) { inbox.push_back(std::move(m)); });
  }
  std::unique_ptr<DualTransport> transport;
  std::vector<Message> inbox;
};

bool PollUntil(const std::vector<End*>& ends, const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!done()) {
    if (absl::Now() > deadline) return false;
    for (End* end : ends) end->Poll();
  }
  return true;
}

Outgoing To(PeerId to, Transport& from) {
  Outgoing message;
  message.to = to;
  const auto buffer = from.NewBuffer(1 << 20);
  std::fill_n(buffer->data(), buffer->size_bytes(), std::byte{3});
  message.payload = Lease(buffer, std::span<const std::byte>(buffer->data(), 1 << 20));
  return message;
}

uint64_t NewJob() { return std::random_device()(); }

// Binds the socket name of a peer of a job without keys, as any process on this host can.
FileDescriptor TakeNameOf(PeerId peer, uint64_t job) {
  const std::string name = absl::StrFormat("tugboat/%016x/%08x", job, peer);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  FileDescriptor taken(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  return taken;
}

void ExchangeBothWays(End& lane, End& worker, Home home) {
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), *worker.transport)).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  EXPECT_EQ(lane.inbox[0].home, home);
  EXPECT_EQ(lane.inbox[0].payload.bytes()[12345], std::byte{3});
  ASSERT_TRUE(lane.transport->Send(To(WorkerPeer(1), *lane.transport)).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return worker.inbox.size() == 1; }));
  EXPECT_EQ(worker.inbox[0].home, home);
}

TEST(DualTransport, PeersOnOneHostShareMemory) {
  const uint64_t job = NewJob();
  End lane(LanePeer(0), job, true, true);
  End worker(WorkerPeer(1), job, false, true);
  ExchangeBothWays(lane, worker, Home::kSender);
  EXPECT_TRUE(worker.transport->SharesMemoryWith(LanePeer(0)));
  EXPECT_TRUE(lane.transport->SharesMemoryWith(WorkerPeer(1)));
}

TEST(DualTransport, ALaneWhoseNameIsTakenIsReachedByTcp) {
  const uint64_t job = NewJob();
  const FileDescriptor taken = TakeNameOf(LanePeer(0), job);
  End lane(LanePeer(0), job, true, true);
  End other(LanePeer(1), job, true, true);
  End worker(WorkerPeer(1), job, false, true);
  ASSERT_NO_FATAL_FAILURE(ExchangeBothWays(lane, worker, Home::kReceiver));
  // The lane can still share memory with peers whose names are not taken.
  ASSERT_TRUE(lane.transport->Connect(LanePeer(1), other.transport->endpoint()).ok());
  EXPECT_TRUE(lane.transport->SharesMemoryWith(LanePeer(1)));
}

TEST(DualTransport, WithKeysStrangersCannotGuessANameToTake) {
  const uint64_t job = NewJob();
  for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const FileDescriptor taken = TakeNameOf(LanePeer(0), job);
    const JobKeys keys = MakeJobKeys(mode).value();
    End lane(LanePeer(0), job, true, true, keys);
    End worker(WorkerPeer(1), job, false, true, keys);
    ASSERT_NO_FATAL_FAILURE(ExchangeBothWays(lane, worker, Home::kSender));
  }
}

TEST(DualTransport, APollWithSharedMessagesAtHandSendsOverTcpToo) {
  const uint64_t job = NewJob();
  End hub(LanePeer(0), job, true, true);
  End near(WorkerPeer(1), job, false, true);
  End far(WorkerPeer(2), job, false, false);
  for (End* end : {&near, &far}) {
    ASSERT_TRUE(end->transport->Connect(LanePeer(0), hub.transport->endpoint()).ok());
    ASSERT_TRUE(end->transport->Send({.to = LanePeer(0)}).ok());
  }
  ASSERT_TRUE(PollUntil({&hub, &near, &far}, [&] { return hub.inbox.size() == 2; }));
  ASSERT_TRUE(near.transport->Send({.to = LanePeer(0)}).ok());
  near.Poll();
  ASSERT_TRUE(hub.transport->Send({.to = WorkerPeer(2)}).ok());
  hub.Poll();
  EXPECT_EQ(hub.inbox.size(), 3u);
  EXPECT_TRUE(PollUntil({&far}, [&] { return far.inbox.size() == 1; }));
}

TEST(DualTransport, UsesTcpIfOneSideDoesNotShareMemory) {
  const uint64_t job = NewJob();
  {
    End lane(LanePeer(0), job, true, false);
    End worker(WorkerPeer(1), job, false, true);
    ExchangeBothWays(lane, worker, Home::kReceiver);
  }
  End lane(LanePeer(0), job, true, true);
  End worker(WorkerPeer(1), job, false, false);
  ExchangeBothWays(lane, worker, Home::kReceiver);
}

TEST(DualTransport, SharedAndTcpPeersAreServedSideBySide) {
  const uint64_t job = NewJob();
  End lane(LanePeer(0), job, true, true);
  End near(WorkerPeer(1), job, false, true);
  End far(WorkerPeer(2), job, false, false);
  ASSERT_TRUE(near.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  ASSERT_TRUE(far.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
  constexpr size_t kEach = 200;
  for (size_t i = 0; i < kEach; ++i) {
    ASSERT_TRUE(near.transport->Send(To(LanePeer(0), *near.transport)).ok());
    ASSERT_TRUE(far.transport->Send(To(LanePeer(0), *far.transport)).ok());
    ASSERT_TRUE(PollUntil({&lane, &near, &far}, [&] { return lane.inbox.size() == 2; }));
    lane.inbox.clear();
  }
  EXPECT_EQ(lane.transport->counters().received_messages, 2 * kEach);
  EXPECT_EQ(near.transport->counters().socket_bytes, 0u);
  EXPECT_EQ(near.transport->counters().shared_memory_bytes(),
            near.transport->counters().sent_bytes);
  EXPECT_EQ(far.transport->counters().shared_memory_bytes(), 0u);
  EXPECT_EQ(far.transport->counters().socket_bytes, far.transport->counters().sent_bytes);
  EXPECT_EQ(far.transport->counters().sent_bytes, near.transport->counters().sent_bytes);
}

TEST(DualTransport, WhenSharedMemoryEndsTcpTakesOver) {
  const uint64_t job = NewJob();
  auto lane = std::make_unique<End>(LanePeer(0), job, true, true);
  End worker(WorkerPeer(1), job, false, true);
  ExchangeBothWays(*lane, worker, Home::kSender);
  // Restart the lane on the same port, without shared memory.
  const std::string endpoint = lane->transport->endpoint();
  lane.reset();
  ASSERT_TRUE(
      PollUntil({&worker}, [&] { return !worker.transport->SharesMemoryWith(LanePeer(0)); }));
  DualTransport::Options options;
  options.tcp.self = LanePeer(0);
  options.tcp.bind_host = "127.0.0.1";
  options.tcp.bind_port =
      static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
  options.job = job;
  options.shared_memory = false;
  auto again = DualTransport::Create(options);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), *worker.transport)).ok());
  size_t arrived = 0;
  ASSERT_TRUE(PollUntil({&worker}, [&] {
    (*again)->Poll(absl::Milliseconds(1), [&](Message m) {
      EXPECT_EQ(m.home, Home::kReceiver);
      ++arrived;
    });
    return arrived == 1;
  }));
}

// A peer that runs out of address space for a connection closes it, before or after our hello.
TEST(DualTransport, APeerThatRefusesToShareMemoryIsReachedByTcpEveryTime) {
  const uint64_t job = NewJob();
  End lane(LanePeer(0), job, true, false);
  const FileDescriptor listener = TakeNameOf(LanePeer(0), job);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  std::thread refuser([&] {
    while (true) {
      const FileDescriptor refused(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!refused.valid()) return;
    }
  });
  for (uint32_t i = 1; i <= 200; ++i) {
    End worker(WorkerPeer(i), job, false, true);
    const absl::Status connected =
        worker.transport->Connect(LanePeer(0), lane.transport->endpoint());
    ASSERT_TRUE(connected.ok()) << connected;
    ASSERT_TRUE(
        PollUntil({&worker}, [&] { return !worker.transport->SharesMemoryWith(LanePeer(0)); }));
    ASSERT_TRUE(worker.transport->Send({.to = LanePeer(0)}).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == i; }));
  }
  shutdown(listener.get(), SHUT_RDWR);
  refuser.join();
}

TEST(DualTransport, CountsWhatItSharesAndNotWhatItReads) {
  for (const bool shared_memory : {true, false}) {
    const uint64_t job = NewJob();
    End lane(LanePeer(0), job, true, shared_memory);
    End worker(WorkerPeer(1), job, false, shared_memory);
    ASSERT_TRUE(worker.transport->Connect(LanePeer(0), lane.transport->endpoint()).ok());
    ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), *worker.transport)).ok());
    ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
    EXPECT_EQ(lane.inbox[0].payload.bytes()[12345], std::byte{3});
    EXPECT_EQ(worker.transport->SharedBytes() >= 1 << 20, shared_memory);
    EXPECT_EQ(lane.transport->SharedBytes(), 0u);
  }
}

TEST(DualTransport, WakeEndsAWaitForever) {
  for (const bool shared_memory : {true, false}) {
    End lane(LanePeer(0), NewJob(), true, shared_memory);
    lane.transport->Wake();
    lane.transport->Poll(absl::InfiniteDuration(), [](Message) {});
  }
}

}  // namespace
}  // namespace tug
