// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_transport.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "security/job_keys.h"

namespace tug {
namespace {

using Options = ShmTransport::Options;

uint64_t NewJob() {
  static std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

std::unique_ptr<ShmTransport> Open(PeerId self, uint64_t job, bool listen,
                                   uint64_t max_message_bytes = kMaxPayloadBytes) {
  auto transport = ShmTransport::Create(
      {.self = self, .job = job, .listen = listen, .max_message_bytes = max_message_bytes});
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

std::shared_ptr<AlignedBuffer> Filled(Transport& from, size_t size, int value) {
  auto buffer = from.NewBuffer(size);
  std::memset(buffer->data(), value, size);
  return buffer;
}

Lease LeaseOf(const std::shared_ptr<AlignedBuffer>& buffer) {
  return Lease(buffer, std::span<const std::byte>(buffer->data(), buffer->size_bytes()));
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
  explicit End(std::unique_ptr<ShmTransport> opened) : transport(std::move(opened)) {}
  void Poll() {
    transport->Poll(absl::Milliseconds(1), [this](Message m) { inbox.push_back(std::move(m)); });
  }
  std::unique_ptr<ShmTransport> transport;
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

class ShmTransportTest : public ::testing::Test {
 protected:
  void Connect() { ASSERT_TRUE(worker_.transport->Connect(LanePeer(0), "").ok()); }

  const uint64_t job_ = NewJob();
  End lane_{Open(LanePeer(0), job_, true)};
  End worker_{Open(WorkerPeer(1), job_, false)};
};

TEST_F(ShmTransportTest, APayloadIsReadWhereItLies) {
  Connect();
  const auto buffer = Filled(*worker_.transport, 1 << 20, 7);
  ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 5, LeaseOf(buffer).Slice(4096, 8192))).ok());
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 1; }));
  const Message& message = lane_.inbox[0];
  EXPECT_EQ(message.header.sender, WorkerPeer(1));
  EXPECT_EQ(message.header.clock, 5u);
  EXPECT_EQ(message.home, Home::kSender);
  ASSERT_EQ(message.payload.size_bytes(), 8192u);
  EXPECT_TRUE(IsFilledWith(message.payload, 7));
  buffer->data()[4096] = std::byte{9};  // visible to the receiver: no copy was made
  EXPECT_EQ(message.payload.bytes()[0], std::byte{9});
}

TEST_F(ShmTransportTest, TheSendersLeaseEndsWhenTheReceiverHasReadBeforeTheAnswerIsSeen) {
  Connect();
  const auto buffer = Filled(*worker_.transport, 4096, 1);
  ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 1, LeaseOf(buffer))).ok());
  ASSERT_TRUE(PollUntil({&lane_}, [&] { return lane_.inbox.size() == 1; }));
  worker_.Poll();
  EXPECT_GT(buffer.use_count(), 1);
  lane_.inbox.clear();
  ASSERT_TRUE(lane_.transport->Send(To(WorkerPeer(1), 2)).ok());
  long users_at_answer = 0;
  ASSERT_TRUE(PollUntil({}, [&] {
    worker_.transport->Poll(absl::Milliseconds(1),
                            [&](Message) { users_at_answer = buffer.use_count(); });
    return users_at_answer > 0;
  }));
  EXPECT_EQ(users_at_answer, 1);
}

TEST_F(ShmTransportTest, PartsOfOneBufferAdjoinAtTheReceiver) {
  Connect();
  const auto buffer = Filled(*worker_.transport, 3 << 20, 3);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        worker_.transport->Send(To(LanePeer(0), i, LeaseOf(buffer).Slice(i << 20, 1 << 20))).ok());
  }
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 3; }));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(lane_.inbox[i].payload.bytes().data() + (1 << 20),
              lane_.inbox[i + 1].payload.bytes().data());
  }
}

TEST_F(ShmTransportTest, MemoryThatIsNotSharedIsCopied) {
  Connect();
  auto owner = std::make_shared<std::vector<std::byte>>(10000, std::byte{4});
  ASSERT_TRUE(
      worker_.transport->Send(To(LanePeer(0), 1, Lease(owner, std::span(std::as_const(*owner)))))
          .ok());
  EXPECT_EQ(owner.use_count(), 1);
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 1; }));
  EXPECT_TRUE(IsFilledWith(lane_.inbox[0].payload, 4));
}

TEST_F(ShmTransportTest, AnswersComeBackOverTheSameConnection) {
  EXPECT_TRUE(absl::IsNotFound(lane_.transport->Send(To(WorkerPeer(1), 1))));
  Connect();
  ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 1)).ok());
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 1; }));
  const auto weights = Filled(*lane_.transport, 5000, 6);
  ASSERT_TRUE(lane_.transport->Send(To(WorkerPeer(1), 2, LeaseOf(weights))).ok());
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return worker_.inbox.size() == 1; }));
  EXPECT_TRUE(IsFilledWith(worker_.inbox[0].payload, 6));
}

TEST_F(ShmTransportTest, MessagesSentBeforeThePeerPollsArrive) {
  Connect();
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), i)).ok());
  }
  ASSERT_TRUE(PollUntil({&lane_}, [&] { return lane_.inbox.size() == 1000; }));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(lane_.inbox[i].header.clock, i);
}

TEST_F(ShmTransportTest, MessagesBeyondTheSlotsWaitAndKeepTheirOrder) {
  Connect();
  const auto buffer = Filled(*worker_.transport, 64, 1);
  constexpr uint64_t kMessages = kShmSlots + 5000;
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), i, LeaseOf(buffer))).ok());
  }
  EXPECT_EQ(buffer.use_count(), static_cast<long>(kMessages + 1)) << "those that wait hold it too";
  uint64_t next = 0;
  ASSERT_TRUE(PollUntil({&worker_}, [&] {
    lane_.transport->Poll(absl::ZeroDuration(),
                          [&](Message m) { ASSERT_EQ(m.header.clock, next++); });
    return next == kMessages;
  }));
  worker_.Poll();
  EXPECT_EQ(buffer.use_count(), 1);
}

TEST_F(ShmTransportTest, PeerOfAnotherJobOrAbsentPeerIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(worker_.transport->Connect(LanePeer(1), "")));
  End stranger(Open(WorkerPeer(1), NewJob(), false));
  EXPECT_TRUE(absl::IsNotFound(stranger.transport->Connect(LanePeer(0), "")));
}

TEST_F(ShmTransportTest, ASecondListenerOfTheSameNameIsRefused) {
  const auto second = ShmTransport::Create({.self = LanePeer(0), .job = job_, .listen = true});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
}

TEST_F(ShmTransportTest, APeerThatIsGoneIsNotFoundAndWhatItSentStaysReadable) {
  Connect();
  {
    const auto buffer = Filled(*worker_.transport, 1 << 20, 8);
    ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 1, LeaseOf(buffer))).ok());
  }
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 1; }));
  worker_.transport.reset();
  ASSERT_TRUE(
      PollUntil({&lane_}, [&] { return !lane_.transport->SharesMemoryWith(WorkerPeer(1)); }));
  EXPECT_TRUE(absl::IsNotFound(lane_.transport->Send(To(WorkerPeer(1), 1))));
  EXPECT_TRUE(IsFilledWith(lane_.inbox[0].payload, 8));
}

TEST_F(ShmTransportTest, TwoThreadsPingPongWhileAsleepBetween) {
  Connect();
  std::atomic<bool> done = false;
  std::thread echo([&] {
    while (!done) {
      lane_.transport->Poll(absl::InfiniteDuration(), [&](Message m) {
        EXPECT_TRUE(lane_.transport->Send(To(m.header.sender, m.header.clock)).ok());
      });
    }
  });
  for (uint64_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), i)).ok());
    bool back = false;
    while (!back) {
      worker_.transport->Poll(absl::InfiniteDuration(), [&](Message m) {
        ASSERT_EQ(m.header.clock, i);
        back = true;
      });
    }
  }
  done = true;
  lane_.transport->Wake();
  echo.join();
}

// ---- another process ----

TEST_F(ShmTransportTest, AKilledProcessLeavesNothingAndTheEndpointGoesOn) {
  const pid_t child = fork();
  if (child == 0) {
    auto other = ShmTransport::Create({.self = WorkerPeer(9), .job = job_, .listen = true});
    if (!other.ok() || !(*other)->Connect(LanePeer(0), "").ok()) _exit(1);
    const auto buffer = Filled(**other, 1 << 16, 5);
    if (!(*other)->Send(To(LanePeer(0), 1, LeaseOf(buffer))).ok()) _exit(1);
    while (true) pause();
  }
  ASSERT_TRUE(PollUntil({&lane_}, [&] { return lane_.inbox.size() == 1; }));
  EXPECT_TRUE(IsFilledWith(lane_.inbox[0].payload, 5));
  EXPECT_TRUE(worker_.transport->Connect(WorkerPeer(9), "").ok());
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] {
    return !lane_.transport->SharesMemoryWith(WorkerPeer(9)) &&
           !worker_.transport->SharesMemoryWith(WorkerPeer(9));
  }));
  EXPECT_TRUE(IsFilledWith(lane_.inbox[0].payload, 5));
  EXPECT_TRUE(absl::IsNotFound(worker_.transport->Connect(WorkerPeer(9), "")));
  Connect();
  ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 2)).ok());
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 2; }));
}

// ---- hostile peers ----

// A process of the same user that knows the name and violates the protocol.
class Intruder {
 public:
  Intruder(const ShmCredentials& credentials, PeerId to)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = credentials.NameOf(to);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }
  void Send(const void* data, size_t size, std::vector<int> fds = {}) {
    iovec part{const_cast<void*>(data), size};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  }
  bool IsShutOut() {
    char buffer[64];
    ssize_t size;
    while ((size = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
    }
    return size == 0;
  }

 private:
  FileDescriptor socket_;
};

TEST_F(ShmTransportTest, BadPacketsEndTheirConnectionOnly) {
  Connect();
  const auto small = SharedRegion::Create(4096, SharedRegion::Sharing::kReadWrite);
  ASSERT_TRUE(small.ok());
  const int fd = (*small)->fd();
  const ShmPacket hello{.kind = ShmPacket::Kind::kHello, .sender = WorkerPeer(5)};
  ShmPacket wrong_magic = hello;
  wrong_magic.magic = 1;
  const ShmPacket region{.kind = ShmPacket::Kind::kRegion, .sender = WorkerPeer(5)};
  std::vector<std::unique_ptr<Intruder>> intruders;
  const auto intrude = [&](const ShmPacket& packet, size_t size, std::vector<int> fds) {
    intruders.push_back(std::make_unique<Intruder>(ShmCredentials{.job = job_}, LanePeer(0)));
    intruders.back()->Send(&packet, size, std::move(fds));
  };
  intrude(hello, sizeof(hello), {});                // no memory
  intrude(hello, sizeof(hello), {fd, fd});          // queue too small
  intrude(hello, sizeof(hello), {0, 1});            // not shared memory
  intrude(hello, 3, {fd, fd});                      // truncated
  intrude(wrong_magic, sizeof(hello), {fd, fd});    // another release
  intrude(region, sizeof(region), {fd, fd});        // one descriptor too many
  intrude(hello, sizeof(hello), {fd, fd, fd, fd});  // more descriptors than a packet can hold
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] {
    return std::ranges::all_of(intruders, [](auto& intruder) { return intruder->IsShutOut(); });
  }));
  EXPECT_EQ(lane_.transport->counters().dropped, intruders.size());
  ASSERT_TRUE(worker_.transport->Send(To(LanePeer(0), 1)).ok());
  ASSERT_TRUE(PollUntil({&lane_, &worker_}, [&] { return lane_.inbox.size() == 1; }));
}

TEST(ShmTransport, OnlyWhoHasTheKeysIsAPeer) {
  const uint64_t job = NewJob();
  const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
  const auto open = [&](PeerId self, const JobKeys& own) {
    return *ShmTransport::Create(
        {.self = self, .job = job, .listen = self == LanePeer(0), .keys = own});
  };
  End lane(open(LanePeer(0), keys));
  const auto queue =
      SharedRegion::Create(sizeof(ShmQueueMemory), SharedRegion::Sharing::kReadWrite).value();
  uint64_t refused = 0;
  for (const JobKeys& others : {JobKeys(), MakeJobKeys(SecurityConfig::TOKEN).value()}) {
    End stranger(open(WorkerPeer(1), others));
    EXPECT_TRUE(absl::IsNotFound(stranger.transport->Connect(LanePeer(0), "")));
    // Bound names are visible in /proc/net/unix.
    Intruder reader({keys, job}, LanePeer(0));
    const ShmPacket hello{.sender = WorkerPeer(1),
                          .proof = ShmCredentials{others, job}.Proof(WorkerPeer(1), LanePeer(0))};
    reader.Send(&hello, sizeof(hello), {queue->fd(), queue->fd()});
    ++refused;
    EXPECT_TRUE(PollUntil({&lane}, [&] {
      return lane.transport->counters().dropped == refused && reader.IsShutOut();
    }));
    EXPECT_FALSE(lane.transport->Send(To(WorkerPeer(1), 2)).ok());
  }
  EXPECT_TRUE(lane.inbox.empty());
  End worker(open(WorkerPeer(1), keys));
  ASSERT_TRUE(worker.transport->Connect(LanePeer(0), "").ok());
  ASSERT_TRUE(worker.transport->Send(To(LanePeer(0), 3)).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return lane.inbox.size() == 1; }));
  ASSERT_TRUE(lane.transport->Send(To(WorkerPeer(1), 4)).ok());
  ASSERT_TRUE(PollUntil({&lane, &worker}, [&] { return worker.inbox.size() == 1; }));
}

TEST_F(ShmTransportTest, PayloadsOutsideTheSharedMemoryAndForgedHeadersAreDropped) {
  auto queue = SharedRegion::Create(sizeof(ShmQueueMemory), SharedRegion::Sharing::kReadWrite);
  auto memory = SharedRegion::Create(4096, SharedRegion::Sharing::kReadOnly);
  ASSERT_TRUE(queue.ok() && memory.ok());
  ShmSender sender(*queue);
  Intruder intruder({.job = job_}, LanePeer(0));
  const ShmPacket hello{.kind = ShmPacket::Kind::kHello, .sender = WorkerPeer(5)};
  const ShmPacket region{.kind = ShmPacket::Kind::kRegion, .sender = WorkerPeer(5), .region = 0};
  intruder.Send(&hello, sizeof(hello), {(*queue)->fd(), 0});
  intruder.Send(&region, sizeof(region), {(*memory)->fd()});

  const auto push = [&](uint64_t payload_bytes, ShmPlace place, PeerId says = WorkerPeer(5)) {
    WireHeader header;
    header.sender = says;
    header.payload_bytes = payload_bytes;
    std::array<std::byte, kHeaderBytes> bytes;
    EncodeHeader(header, bytes);
    ASSERT_TRUE(sender.Push(bytes, place, Lease()));
  };
  push(100, {1, 0, 100});                  // region that was not shared
  push(100, {0, 4000, 100});               // beyond its end
  push(100, {0, ~uint64_t{0} - 10, 100});  // wraps around
  push(100, {0, 0, ~uint64_t{0}});         // longer than any region
  push(101, {0, 0, 100});                  // size differs from the header's
  push(100, {0, 0, 100}, WorkerPeer(6));   // another peer's name
  ASSERT_TRUE(sender.Push(std::array<std::byte, kHeaderBytes>{}, {0, 0, 100}, Lease()));
  push(4096, {0, 0, 4096});  // a good one
  ASSERT_TRUE(PollUntil({&lane_}, [&] { return lane_.inbox.size() == 1; }));
  EXPECT_EQ(lane_.transport->counters().dropped, 7u);
  EXPECT_EQ(lane_.inbox[0].payload.size_bytes(), 4096u);
  lane_.inbox.clear();
  sender.Collect();
  EXPECT_EQ(sender.occupied(), 0u) << "dropped messages give their slots back";
}

}  // namespace
}  // namespace tug
