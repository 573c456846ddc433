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

// Messages on their way, for tests.
class RoughNetwork {
 public:
  struct Flying {
    PeerId to = 0;
    Message message;
  };

  bool empty() const { return flying_.empty(); }
  // The bytes are copied: a sender may use its memory again when the lease is gone.
  void Send(PeerId to, const WireHeader& header, const Lease& payload) {
    auto bytes = std::make_shared<AlignedBuffer>(payload.size_bytes());
    if (payload.size_bytes() > 0) {
      std::memcpy(bytes->data(), payload.bytes().data(), payload.size_bytes());
    }
    const std::span<const std::byte> span(std::as_const(*bytes).data(), bytes->size_bytes());
    flying_.push_back({to, Message{header, Lease(bytes, span)}});
  }
  // The oldest; if `rough`, any of them, which may come once more; none where it is lost. REQUIRES:
  // not empty.
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
