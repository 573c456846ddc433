#ifndef TUG_SERVER_EARLY_PUSHES_H_
#define TUG_SERVER_EARLY_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/open_pushes.h"

namespace tug {

// Pushes that came before another one of their virtual worker, which was lost or is late (SSP, ASP:
// each is an update, in the order of its clocks). They are not stored: their sender is told
// kDeferred, which returns its credit, and asked for them (kPushWanted) once it is their turn;
// again on a tick if they do not come. Rare: a worker begins a clock only when it has been served
// what it pushed before. Not thread-safe: owned by one lane.
class EarlyPushes {
 public:
  // `most`: remembered; a sender repeats what is forgotten.
  EarlyPushes(uint32_t blocks, size_t most, absl::Duration repeat_after)
      : in_block_(blocks), most_(most), repeat_after_(repeat_after) {}

  size_t size() const { return size_; }
  void Defer(const PushKey& key) {
    Forget(key);
    if (size_ >= most_) return;
    in_block_[key.block].push_back({key});
    ++size_;
  }
  // It is about to be applied, or has been.
  void Forget(const PushKey& key) {
    if (size_ == 0) return;
    size_ -=
        std::erase_if(in_block_[key.block], [&](const Early& early) { return early.key == key; });
  }
  void Clear() {
    for (std::vector<Early>& block : in_block_) block.clear();
    size_ = 0;
  }

  // A clock of a virtual worker has moved on in the block: appends the pushes whose turn has come,
  // as `is_early(key)` says.
  template <typename F>
  void TakeWanted(uint32_t block, absl::Time now, F is_early, std::vector<PushKey>& wanted) {
    if (size_ == 0) return;
    for (Early& early : in_block_[block]) {
      if (early.asked_at != absl::InfiniteFuture() || is_early(early.key)) continue;
      early.asked_at = now;
      wanted.push_back(early.key);
    }
  }
  // Repeats what was asked for `repeat_after` ago, but for what has been applied by now, as
  // `is_applied(key)` says: of somebody else's push, maybe, and the sender is gone.
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
    absl::Time asked_at = absl::InfiniteFuture();  // not asked for
  };

  std::vector<std::vector<Early>> in_block_;
  const size_t most_;
  const absl::Duration repeat_after_;
  size_t size_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_EARLY_PUSHES_H_
