// SPDX-License-Identifier: Apache-2.0
// In steady state ZmqTransport allocates nothing per message. The test counts calls of operator new
// in this process on all threads, including those of the standard library, Abseil, and libzmq where
// it uses new. libzmq's messages and queues come from malloc and are not counted.

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "transport/zmq_transport.h"

namespace {

std::atomic<int64_t> news = 0;

void* Counted(size_t size_bytes, size_t alignment) {
  news.fetch_add(1, std::memory_order_relaxed);
  const size_t rounded = (size_bytes + alignment - 1) / alignment * alignment;
  void* const block = std::aligned_alloc(alignment, rounded);
  if (block == nullptr) std::abort();
  return block;
}

}  // namespace

// GCC reports a mismatch if these are inlined, although both operators are replaced.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t size_bytes) { return Counted(size_bytes, alignof(std::max_align_t)); }
void* operator new(size_t size_bytes, std::align_val_t alignment) {
  return Counted(size_bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t size_bytes, const std::nothrow_t&) noexcept {
  return Counted(size_bytes, alignof(std::max_align_t));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }

namespace tug {
namespace {

std::unique_ptr<ZmqTransport> Open(PeerId self, const std::string& bind_host) {
  ZmqTransport::Options options;
  options.self = self;
  options.bind_host = bind_host;
  return *ZmqTransport::Create(options);
}

// Sends `messages` payloads of `size_bytes` to the lane, which echoes each; `window` are in flight
// at a time.
class Exchange {
 public:
  Exchange() : lane_(Open(LanePeer(0), "127.0.0.1")), worker_(Open(WorkerPeer(0), "")) {
    EXPECT_TRUE(worker_->Connect(LanePeer(0), lane_->endpoint()).ok());
  }

  void Run(uint64_t messages, size_t size_bytes, uint64_t window) {
    const auto buffer = std::make_shared<AlignedBuffer>(size_bytes);
    const Lease payload(buffer, std::span<const std::byte>(buffer->data(), size_bytes));
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    uint64_t sent = 0;
    uint64_t answered = 0;
    while (answered < messages && absl::Now() < deadline) {
      for (; sent < messages && sent - answered < window; ++sent) {
        EXPECT_TRUE(worker_->Send({.to = LanePeer(0), .payload = payload}).ok());
      }
      worker_->Poll(absl::ZeroDuration(), [&](Message) { ++answered; });
      lane_->Poll(absl::ZeroDuration(), [this](Message m) {
        Outgoing answer{.to = m.header.sender, .payload = std::move(m.payload)};
        EXPECT_TRUE(lane_->Send(std::move(answer)).ok());
      });
    }
    EXPECT_EQ(answered, messages);
  }

 private:
  std::unique_ptr<ZmqTransport> lane_;
  std::unique_ptr<ZmqTransport> worker_;
};

TEST(ZmqAllocation, AllocatesNoMemoryPerMessageInSteadyState) {
  constexpr uint64_t kMessages = 10000;
  // Pools and lists still grow occasionally, up to the peak number of messages in flight.
  constexpr int64_t kGrowth = 100;
  Exchange exchange;
  for (const size_t size : {size_t{0}, size_t{100}, size_t{4096}, size_t{32} << 10}) {
    for (const uint64_t window : {1, 64}) {
      // Warm up with more messages in flight than measured below: on a busy machine, where libzmq
      // releases messages late, the pools are then large enough.
      exchange.Run(kMessages / 5, size, 4 * window);
      const int64_t before = news;
      exchange.Run(kMessages, size, window);
      std::cout << size << " bytes, " << window << " under way: " << news - before
                << " allocations in " << kMessages << " messages and answers\n";
      EXPECT_LE(news - before, kGrowth) << size << " bytes, " << window << " under way";
    }
  }
}

}  // namespace
}  // namespace tug
