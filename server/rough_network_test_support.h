// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_ROUGH_NETWORK_TEST_SUPPORT_H_
#define TUG_SERVER_ROUGH_NETWORK_TEST_SUPPORT_H_

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace tug {

// Test network: holds messages in flight and may lose, repeat and reorder them.
class RoughNetwork {
 public:
  struct Flying {
    PeerId to = 0;
    Message message;
  };

  bool empty() const { return flying_.empty(); }
  // Copies the payload: the sender may reuse its memory once the lease is gone.
  void Send(PeerId to, const WireHeader& header, const Lease& payload) {
    auto bytes = std::make_shared<AlignedBuffer>(payload.size_bytes());
    if (payload.size_bytes() > 0) {
      std::memcpy(bytes->data(), payload.bytes().data(), payload.size_bytes());
    }
    const std::span<const std::byte> span(std::as_const(*bytes).data(), bytes->size_bytes());
    flying_.push_back({to, Message{header, Lease(bytes, span)}});
  }
  // Removes and returns the oldest message. With `rough`: a random one, which may be lost (nullopt)
  // or stay in flight as a repeat. REQUIRES: not empty.
  std::optional<Flying> Take(bool rough, std::mt19937& random) {
    const size_t at = rough ? random() % flying_.size() : 0;
    Flying flying = std::move(flying_[at]);
    flying_.erase(flying_.begin() + static_cast<ptrdiff_t>(at));
    if (rough && random() % 10 == 0) return std::nullopt;
    if (rough && random() % 8 == 0) {
      Send(flying.to, flying.message.header, flying.message.payload);
    }
    return flying;
  }

 private:
  std::vector<Flying> flying_;
};

}  // namespace tug

#endif  // TUG_SERVER_ROUGH_NETWORK_TEST_SUPPORT_H_
