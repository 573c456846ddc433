// SPDX-License-Identifier: Apache-2.0
// One-way goodput, round trips and small messages over loopback, compared with bare ZeroMQ and a
// plain TCP stream. Sender and receiver are two threads. Bytes per second count payloads only.
//
//   bazel run //transport:transport_benchmark

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/memory/large_blocks.h"
#include "base/memory/lease.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr uint64_t kBytesInFlight = 32 << 20;
constexpr uint64_t kTag = 1;

std::unique_ptr<ZmqTransport> Open(PeerId self, const char* bind_host, bool checksum) {
  ZmqTransport::Options options;
  options.self = self;
  options.bind_host = bind_host;
  options.checksum = checksum;
  auto transport = ZmqTransport::Create(options);
  TUG_CHECK_OK(transport);
  return *std::move(transport);
}

Outgoing To(PeerId peer, uint64_t clock, Lease payload) {
  Outgoing message;
  message.to = peer;
  message.header.clock = clock;
  message.payload = std::move(payload);
  return message;
}

// First touches of pages: memory that the allocator returned to the kernel and got again.
int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// The other end, on its own thread: replies to every message, with or without its payload.
class Responder {
 public:
  Responder(bool checksum, bool echo)
      : transport_(Open(LanePeer(0), "127.0.0.1", checksum)), thread_([this, echo] {
          while (!done_) {
            transport_->Poll(absl::Milliseconds(100), [&](Message m) {
              TUG_CHECK_OK(transport_->Send(
                  To(m.header.sender, m.header.clock, echo ? m.payload : Lease())));
            });
          }
        }) {}
  ~Responder() {
    done_ = true;
    transport_->Wake();
    thread_.join();
  }
  std::string endpoint() const { return transport_->endpoint(); }

 private:
  std::unique_ptr<ZmqTransport> transport_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

std::shared_ptr<AlignedBuffer> Payload(size_t size) {
  return std::make_shared<AlignedBuffer>(size);
}

Lease LeaseOf(const std::shared_ptr<AlignedBuffer>& buffer) {
  return Lease(buffer, std::span<const std::byte>(buffer->data(), buffer->size_bytes()));
}

void OneWay(benchmark::State& state) {
  const size_t size = state.range(0);
  const bool checksum = state.range(1) != 0;
  Responder lane(checksum, /*echo=*/false);
  auto worker = Open(WorkerPeer(0), "", checksum);
  TUG_CHECK_OK(worker->Connect(LanePeer(0), lane.endpoint()));
  const auto buffer = Payload(size);
  const uint64_t window = std::max<uint64_t>(1, kBytesInFlight / size);
  uint64_t sent = 0;
  uint64_t answered = 0;
  const auto count = [&](Message) { ++answered; };
  const int64_t faults_before = PageFaults();
  for (auto _ : state) {
    while (sent - answered >= window) worker->Poll(absl::InfiniteDuration(), count);
    TUG_CHECK_OK(worker->Send(To(LanePeer(0), sent++, LeaseOf(buffer))));
  }
  while (answered < sent) worker->Poll(absl::InfiniteDuration(), count);
  state.counters["page_faults"] = benchmark::Counter(
      static_cast<double>(PageFaults() - faults_before), benchmark::Counter::kAvgIterations);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size));
}
BENCHMARK(OneWay)
    ->ArgNames({"bytes", "checksum"})
    ->ArgsProduct({{64 << 10, 1 << 20, 4 << 20}, {0, 1}})
    ->UseRealTime();

void RoundTrip(benchmark::State& state) {
  const size_t size = state.range(0);
  Responder lane(/*checksum=*/true, /*echo=*/true);
  auto worker = Open(WorkerPeer(0), "", /*checksum=*/true);
  TUG_CHECK_OK(worker->Connect(LanePeer(0), lane.endpoint()));
  const auto buffer = Payload(size);
  for (auto _ : state) {
    TUG_CHECK_OK(worker->Send(To(LanePeer(0), 0, LeaseOf(buffer))));
    bool back = false;
    while (!back) worker->Poll(absl::InfiniteDuration(), [&](Message) { back = true; });
  }
}
BENCHMARK(RoundTrip)->ArgName("bytes")->Arg(4 << 10)->UseRealTime();

// Round trips with 64 in flight, so that messages can be batched.
void SmallMessages(benchmark::State& state) {
  constexpr uint64_t kOutstanding = 64;
  Responder lane(/*checksum=*/true, /*echo=*/true);
  auto worker = Open(WorkerPeer(0), "", /*checksum=*/true);
  TUG_CHECK_OK(worker->Connect(LanePeer(0), lane.endpoint()));
  const auto buffer = Payload(state.range(0));
  uint64_t sent = 0;
  uint64_t answered = 0;
  const auto count = [&](Message) { ++answered; };
  for (auto _ : state) {
    while (sent - answered >= kOutstanding) worker->Poll(absl::InfiniteDuration(), count);
    TUG_CHECK_OK(worker->Send(To(LanePeer(0), sent++, LeaseOf(buffer))));
  }
  while (answered < sent) worker->Poll(absl::InfiniteDuration(), count);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(SmallMessages)->ArgName("bytes")->Arg(0)->Arg(4 << 10)->UseRealTime();

// Bare ZeroMQ: DEALER to ROUTER, blocking, one frame from the same memory.
class BareResponder {
 public:
  explicit BareResponder(bool echo)
      : context_(zmq_ctx_new()), router_(zmq_socket(context_.get(), ZMQ_ROUTER)) {
    TUG_CHECK(zmq_bind(router_.get(), "tcp://127.0.0.1:*") == 0);
    size_t size = sizeof(endpoint_);
    TUG_CHECK(zmq_getsockopt(router_.get(), ZMQ_LAST_ENDPOINT, endpoint_, &size) == 0);
    thread_ = std::thread([this, echo] {
      while (true) {
        ZmqFrame id;
        ZmqFrame payload;
        TUG_CHECK(zmq_msg_recv(id.get(), router_.get(), 0) >= 0);
        TUG_CHECK(zmq_msg_recv(payload.get(), router_.get(), 0) >= 0);
        if (payload.bytes().size() == kTag) return;
        TUG_CHECK(zmq_msg_send(id.get(), router_.get(), ZMQ_SNDMORE) >= 0);
        ZmqFrame answer;
        TUG_CHECK(zmq_msg_send(echo ? payload.get() : answer.get(), router_.get(), 0) >= 0);
      }
    });
  }
  ~BareResponder() { thread_.join(); }
  const char* endpoint() const { return endpoint_; }

 private:
  ZmqContext context_;
  ZmqSocket router_;
  char endpoint_[128];
  std::thread thread_;
};

struct BareClient {
  explicit BareClient(const char* endpoint)
      : context(zmq_ctx_new()), dealer(zmq_socket(context.get(), ZMQ_DEALER)) {
    TUG_CHECK(zmq_connect(dealer.get(), endpoint) == 0);
  }
  ~BareClient() { zmq_send(dealer.get(), "", kTag, 0); }
  void Send(Lease lease) {
    ZmqFrame frame(std::move(lease), pool);
    TUG_CHECK(zmq_msg_send(frame.get(), dealer.get(), 0) >= 0);
  }
  void Receive() {
    ZmqFrame frame;
    TUG_CHECK(zmq_msg_recv(frame.get(), dealer.get(), 0) >= 0);
  }
  BlockPool pool;
  ZmqContext context;
  ZmqSocket dealer;
};

void BareOneWay(benchmark::State& state) {
  const size_t size = state.range(0);
  BareResponder lane(/*echo=*/false);
  BareClient worker(lane.endpoint());
  const auto buffer = Payload(size);
  const uint64_t window = std::max<uint64_t>(1, kBytesInFlight / size);
  uint64_t in_flight = 0;
  for (auto _ : state) {
    for (; in_flight >= window; --in_flight) worker.Receive();
    worker.Send(LeaseOf(buffer));
    ++in_flight;
  }
  for (; in_flight > 0; --in_flight) worker.Receive();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size));
}
BENCHMARK(BareOneWay)->ArgName("bytes")->Arg(64 << 10)->Arg(1 << 20)->Arg(4 << 20)->UseRealTime();

void BareRoundTrip(benchmark::State& state) {
  BareResponder lane(/*echo=*/true);
  BareClient worker(lane.endpoint());
  const auto buffer = Payload(state.range(0));
  for (auto _ : state) {
    worker.Send(LeaseOf(buffer));
    worker.Receive();
  }
}
BENCHMARK(BareRoundTrip)->ArgName("bytes")->Arg(4 << 10)->UseRealTime();

void BareSmallMessages(benchmark::State& state) {
  constexpr uint64_t kOutstanding = 64;
  BareResponder lane(/*echo=*/true);
  BareClient worker(lane.endpoint());
  const auto buffer = Payload(state.range(0));
  uint64_t in_flight = 0;
  for (auto _ : state) {
    for (; in_flight >= kOutstanding; --in_flight) worker.Receive();
    worker.Send(LeaseOf(buffer));
    ++in_flight;
  }
  for (; in_flight > 0; --in_flight) worker.Receive();
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BareSmallMessages)->ArgName("bytes")->Arg(4 << 10)->UseRealTime();

// A connection of two plain TCP sockets over loopback.
struct PlainTcp {
  PlainTcp() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    sockaddr* const any = reinterpret_cast<sockaddr*>(&address);
    TUG_CHECK(bind(listener, any, size) == 0 && listen(listener, 1) == 0);
    TUG_CHECK(getsockname(listener, any, &size) == 0);
    near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TUG_CHECK(connect(near, any, size) == 0);
    far = accept(listener, nullptr, nullptr);
    TUG_CHECK(far >= 0);
    close(listener);
  }
  ~PlainTcp() {
    close(near);
    close(far);
  }
  static bool ReadAll(int fd, std::byte* to, size_t size) {
    while (size > 0) {
      const ssize_t n = read(fd, to, size);
      if (n <= 0) return false;
      to += n;
      size -= n;
    }
    return true;
  }
  static void WriteAll(int fd, const std::byte* from, size_t size) {
    while (size > 0) {
      const ssize_t n = send(fd, from, size, MSG_NOSIGNAL);
      TUG_CHECK(n > 0);
      from += n;
      size -= n;
    }
  }
  int near = -1;
  int far = -1;
};

// From one buffer into one buffer: the upper bound for TCP with `bytes` per call.
void TcpStream(benchmark::State& state) {
  const auto from = Payload(state.range(0));
  PlainTcp tcp;
  std::thread reader([&] {
    const auto to = Payload(state.range(0));
    while (PlainTcp::ReadAll(tcp.far, to->data(), to->size_bytes())) {
    }
  });
  for (auto _ : state) PlainTcp::WriteAll(tcp.near, from->data(), from->size_bytes());
  shutdown(tcp.near, SHUT_WR);
  reader.join();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * from->size_bytes()));
}
BENCHMARK(TcpStream)->ArgName("bytes")->Arg(64 << 10)->Arg(1 << 20)->Arg(4 << 20)->UseRealTime();

void TcpRoundTrip(benchmark::State& state) {
  const auto buffer = Payload(state.range(0));
  PlainTcp tcp;
  std::thread echo([&] {
    const auto own = Payload(state.range(0));
    while (PlainTcp::ReadAll(tcp.far, own->data(), own->size_bytes())) {
      PlainTcp::WriteAll(tcp.far, own->data(), own->size_bytes());
    }
  });
  for (auto _ : state) {
    PlainTcp::WriteAll(tcp.near, buffer->data(), buffer->size_bytes());
    TUG_CHECK(PlainTcp::ReadAll(tcp.near, buffer->data(), buffer->size_bytes()));
  }
  shutdown(tcp.near, SHUT_WR);
  echo.join();
}
BENCHMARK(TcpRoundTrip)->ArgName("bytes")->Arg(4 << 10)->UseRealTime();

}  // namespace
}  // namespace tug

int main(int argc, char** argv) {
  tug::KeepLargeBlocksMapped();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
