// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PUSHES_EARLY_PUSHES_H_
#define TUG_SERVER_PUSHES_EARLY_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/pushes/open_pushes.h"

namespace tug {

// Pushes that arrived before an earlier one of their virtual worker, which was lost or is late
// (SSP, ASP: pushes are applied in the order of their clocks). They are not stored: kDeferred
// returns the sender's credit; kPushWanted requests the push in its turn, and again on a tick until
// it arrives. Rare: a worker begins a clock only after it was served weights that include its
// previous pushes. Not thread-safe: owned by one lane.
class EarlyPushes {
 public:
  // `most`: limit on remembered pushes; senders resend those beyond it.
  EarlyPushes(uint32_t blocks, size_t most, absl::Duration repeat_after)
      : in_block_(blocks), most_(most), repeat_after_(repeat_after) {}

  size_t size() const { return size_; }
  void Defer(const PushKey& key) {
    Forget(key);
    if (size_ >= most_) return;
    in_block_[key.block].push_back({key});
    ++size_;
  }
  // Removes a push that is applied now, or was before.
  void Forget(const PushKey& key) {
    if (size_ == 0) return;
    size_ -=
        std::erase_if(in_block_[key.block], [&](const Early& early) { return early.key == key; });
  }
  void Clear() {
    for (std::vector<Early>& block : in_block_) block.clear();
    size_ = 0;
  }

  // A virtual worker's clock has advanced in the block: appends the pushes that are no longer
  // `is_early(key)`.
  template <typename F>
  void TakeWanted(uint32_t block, absl::Time now, F is_early, std::vector<PushKey>& wanted) {
    if (size_ == 0) return;
    for (Early& early : in_block_[block]) {
      if (early.asked_at != absl::InfiniteFuture() || is_early(early.key)) continue;
      early.asked_at = now;
      wanted.push_back(early.key);
    }
  }
  // Repeats requests that are `repeat_after` old. Drops pushes that are `is_applied(key)` by now,
  // perhaps from another sender, after this one left.
  template <typename F>
  void OnTick(absl::Time now, F is_applied, std::vector<PushKey>& wanted) {
    if (size_ == 0) return;
    for (std::vector<Early>& block : in_block_) {
      size_ -= std::erase_if(block, [&](const Early& early) { return is_applied(early.key); });
      for (Early& early : block) {
        if (early.asked_at == absl::InfiniteFuture() || now - early.asked_at < repeat_after_) {
          continue;
        }
        early.asked_at = now;
        wanted.push_back(early.key);
      }
    }
  }

 private:
  struct Early {
    PushKey key;
    absl::Time asked_at = absl::InfiniteFuture();  // infinite: not requested
  };

  std::vector<std::vector<Early>> in_block_;
  const size_t most_;
  const absl::Duration repeat_after_;
  size_t size_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_PUSHES_EARLY_PUSHES_H_
