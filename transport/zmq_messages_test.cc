// SPDX-License-Identifier: Apache-2.0
// How messages are grouped into ZeroMQ messages, as seen by a bare ROUTER.

#include <zmq.h>

#include <array>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire.h"
#include "transport/zmq_handles.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Outgoing OfBytes(size_t size) {
  const auto owner = std::make_shared<std::vector<std::byte>>(size);
  Outgoing message;
  message.to = LanePeer(0);
  message.payload = Lease(owner, std::span<const std::byte>(*owner));
  return message;
}

class ZmqMessages : public ::testing::Test {
 protected:
  ZmqMessages() : context_(zmq_ctx_new()), router_(zmq_socket(context_.get(), ZMQ_ROUTER)) {
    const int linger = 0;
    zmq_setsockopt(router_.get(), ZMQ_LINGER, &linger, sizeof(linger));
    EXPECT_EQ(zmq_bind(router_.get(), "tcp://127.0.0.1:*"), 0);
    std::array<char, 128> endpoint{};
    size_t size = endpoint.size();
    EXPECT_EQ(zmq_getsockopt(router_.get(), ZMQ_LAST_ENDPOINT, endpoint.data(), &size), 0);
    ZmqTransport::Options options;
    options.self = WorkerPeer(1);
    worker_ = *ZmqTransport::Create(options);
    EXPECT_TRUE(worker_->Connect(LanePeer(0), endpoint.data()).ok());
  }

  void Send(const std::vector<size_t>& payloads) {
    for (const size_t size : payloads) ASSERT_TRUE(worker_->Send(OfBytes(size)).ok());
    worker_->Poll(absl::ZeroDuration(), [](Message) {});
  }

  // Number of records and payload bytes of the next ZeroMQ message.
  std::pair<size_t, size_t> Next() {
    std::vector<char> scratch(1 << 20);
    std::array<int, 3> sizes;
    for (int& size : sizes) size = zmq_recv(router_.get(), scratch.data(), scratch.size(), 0);
    return {static_cast<size_t>(sizes[1]) / kHeaderBytes, static_cast<size_t>(sizes[2])};
  }

  ZmqContext context_;
  ZmqSocket router_;
  std::unique_ptr<ZmqTransport> worker_;
};

TEST_F(ZmqMessages, SmallOnesTravelTogether) {
  Send({0, 8, 0, 1024});
  EXPECT_THAT(Next(), Pair(4, 1032));
}

// On a slow link the payload may take a second: urgent messages must not wait for it.
TEST_F(ZmqMessages, QueuedMessagesAreNotBundledWithLargePayload) {
  Send({0, 0, 32768, 0});
  const std::vector<std::pair<size_t, size_t>> messages = {Next(), Next(), Next()};
  EXPECT_THAT(messages, ElementsAre(Pair(2, 0), Pair(1, 32768), Pair(1, 0)));
}

}  // namespace
}  // namespace tug
