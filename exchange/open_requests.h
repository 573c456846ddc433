#ifndef TUG_EXCHANGE_OPEN_REQUESTS_H_
#define TUG_EXCHANGE_OPEN_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "exchange/requests.h"

namespace tug {

// The pushes and pulls of a worker that are open: a record of its requests and of its exchange's
// events. A push is open from its request to PushCommitted, a pull to BlockPulled. Not thread-safe.
class OpenRequests {
 public:
  // Lowest and highest version of the parts of a block.
  struct Versions {
    uint64_t lowest = 0;
    uint64_t highest = 0;
  };

  // `frees_gradients`: as in ExchangeOptions.
  OpenRequests(uint32_t blocks, bool frees_gradients);

  void OnPush(uint32_t block, uint32_t virtual_worker, absl::Time now);
  void OnPull(uint32_t block, absl::Time now);
  void OnEvent(BlockPulled event, absl::Time now);
  // DATA_LOSS: a lane has lost the push, and the worker its gradient.
  absl::Status OnEvent(const PushCommitted& event, absl::Time now);
  void OnEvent(const PushReceived& event);
  void OnEvent(const PushDeferred& event);
  // The pull of the block is closed, and its result is not wanted.
  void Forget(uint32_t block);

  bool HasOpenPull(uint32_t block) const { return pulls_[block].open > 0; }
  // No pull of the block is open, and the last one was for `clock` or later.
  bool IsPulled(uint32_t block, uint64_t clock) const;
  // REQUIRES: IsPulled.
  Versions PulledVersions(uint32_t block) const { return pulls_[block].pulled->versions; }
  // Where the newest pull left the weights, if not in its destination; empty on a second call.
  InPlaceWeights TakeInPlace(uint32_t block);
  bool IsCommitted(uint32_t block, uint32_t virtual_worker) const {
    return Find(block, virtual_worker).open == 0;
  }
  // With frees_gradients: lanes have received all pushes; a lane has no memory for one of them.
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
    uint32_t open = 0;             // pulls whose event is missing; only that of the last one counts
    std::optional<Pulled> pulled;  // none while a pull is open
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
  uint64_t open_ = 0;                        // pushes and pulls
  absl::Time open_since_;
  absl::Duration open_time_;  // of closed intervals
};

}  // namespace tug

#endif  // TUG_EXCHANGE_OPEN_REQUESTS_H_
