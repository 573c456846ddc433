// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_OPEN_REQUESTS_H_
#define TUG_EXCHANGE_OPEN_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "blocks/requests.h"

namespace tug {

// A worker's open pushes and pulls, recorded from its requests and its exchange's events. A push is
// open from its request to PushCommitted, a pull to BlockPulled. Not thread-safe.
class OpenRequests {
 public:
  // Lowest and highest version among the partitions of a block.
  struct Versions {
    uint64_t lowest = 0;
    uint64_t highest = 0;
  };

  // `frees_gradients`: as in ExchangeOptions.
  OpenRequests(uint32_t blocks, bool frees_gradients);

  void OnPush(uint32_t block, uint32_t virtual_worker, absl::Time now);
  void OnPull(uint32_t block, absl::Time now);
  void OnEvent(BlockPulled event, absl::Time now);
  // DATA_LOSS: a lane has lost the push after the worker freed its gradient.
  absl::Status OnEvent(const PushCommitted& event, absl::Time now);
  void OnEvent(const PushReceived& event);
  void OnEvent(const PushDeferred& event);
  // Discards the result of the block's last, closed pull.
  void Forget(uint32_t block);

  bool HasOpenPull(uint32_t block) const { return pulls_[block].open > 0; }
  // True if no pull of the block is open and the last one was for `clock` or later.
  bool IsPulled(uint32_t block, uint64_t clock) const;
  // REQUIRES: IsPulled.
  Versions PulledVersions(uint32_t block) const { return pulls_[block].pulled->versions; }
  // Moves out the weights of the newest pull, if it left them in place; empty on a second call.
  InPlaceWeights TakeInPlace(uint32_t block);
  bool IsCommitted(uint32_t block, uint32_t virtual_worker) const {
    return Find(block, virtual_worker).open == 0;
  }
  // With frees_gradients: whether lanes have received all pushes; whether a lane has deferred an
  // unreceived one for lack of memory.
  bool IsReceived(uint32_t block, uint32_t virtual_worker) const {
    return Find(block, virtual_worker).unreceived == 0;
  }
  bool IsDeferred(uint32_t block, uint32_t virtual_worker) const {
    return Find(block, virtual_worker).deferred;
  }
  // The time during which at least one request was open.
  absl::Duration OpenTime(absl::Time now) const {
    return open_ == 0 ? open_time_ : open_time_ + (now - open_since_);
  }

 private:
  struct Pulled {
    uint64_t clock = 0;  // requested
    Versions versions;
  };
  struct Pulls {
    uint32_t open = 0;             // pulls without an event yet; only the last one's event counts
    std::optional<Pulled> pulled;  // empty while a pull is open
    InPlaceWeights in_place;
  };
  struct Pushes {
    uint32_t open = 0;
    uint32_t unreceived = 0;
    bool deferred = false;
  };

  const Pushes& Find(uint32_t block, uint32_t virtual_worker) const;
  void Open(absl::Time now);
  void Close(absl::Time now);

  const bool frees_gradients_;
  std::vector<Pulls> pulls_;                 // by block
  std::vector<std::vector<Pushes>> pushes_;  // by block and virtual worker
  uint64_t open_ = 0;                        // pushes and pulls without an event yet
  absl::Time open_since_;
  absl::Duration open_time_;  // total of the closed intervals
};

}  // namespace tug

#endif  // TUG_EXCHANGE_OPEN_REQUESTS_H_
