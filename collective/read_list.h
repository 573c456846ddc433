// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_READ_LIST_H_
#define TUG_COLLECTIVE_READ_LIST_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/lease.h"

namespace tug {

// Payloads of a collective that are no longer read: the last copy of a lease adds its number here,
// on the thread where it ends. Thread-safe.
class ReadList {
 public:
  // `wake`: called, on any thread, at the first Add after Want has returned false.
  explicit ReadList(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Add(uint32_t number) {
    absl::MutexLock lock(&mutex_);
    numbers_.push_back(number);
    any_.store(true, std::memory_order_release);
    if (std::exchange(wanted_, false)) wake_();
  }

  // Swaps the numbers added since the last call into `to`, which must be empty.
  void Take(std::vector<uint32_t>& to) {
    if (!any_.load(std::memory_order_acquire)) return;
    absl::MutexLock lock(&mutex_);
    any_.store(false, std::memory_order_relaxed);
    wanted_ = false;
    numbers_.swap(to);
  }

  // Whether numbers were added already; if not, the next Add calls `wake` once.
  bool Want() {
    absl::MutexLock lock(&mutex_);
    wanted_ = numbers_.empty();
    return !wanted_;
  }

  // Stops calls of `wake`.
  void Close() {
    absl::MutexLock lock(&mutex_);
    wanted_ = false;
  }

  // Returns a lease of `bytes`, which `owner` keeps alive; its end adds `number` to `list`.
  static Lease LeaseOf(std::shared_ptr<ReadList> list, uint32_t number,
                       std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
    return Lease(std::make_shared<Reader>(std::move(list), number, std::move(owner)), bytes);
  }

 private:
  struct Reader {
    Reader(std::shared_ptr<ReadList> to, uint32_t of, std::shared_ptr<const void> kept)
        : list(std::move(to)), number(of), owner(std::move(kept)) {}
    ~Reader() {
      owner.reset();
      list->Add(number);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    const std::shared_ptr<ReadList> list;
    const uint32_t number;
    std::shared_ptr<const void> owner;
  };

  const std::function<void()> wake_;
  std::atomic<bool> any_ = false;  // avoids the lock if nothing was added
  absl::Mutex mutex_;
  std::vector<uint32_t> numbers_ ABSL_GUARDED_BY(mutex_);
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_READ_LIST_H_
