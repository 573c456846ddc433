#ifndef TUG_SCHEDULER_CREDIT_QUEUE_H_
#define TUG_SCHEDULER_CREDIT_QUEUE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tug {

// Order and amount of what is on its way. Items leave by priority (smaller first), equal ones in
// the order they came, and only while the bytes outstanding fit the credit; an item larger than the
// whole credit leaves when nothing else is outstanding. So a high-priority item waits behind at
// most `credit_bytes` of lower ones. Paper: Peng et al. 2019 (ByteScheduler, SOSP), section 4.2.
//
// Priorities are small numbers (blocks): each has a first-in-first-out list of its own, and a bit
// that says whether anything is in it. So an item costs the same however many wait, and nothing is
// allocated once the lists have grown.
// Pure: no thread, no clock. Not thread-safe.
class CreditQueue {
 public:
  explicit CreditQueue(uint64_t credit_bytes) : credit_bytes_(credit_bytes) {}

  void Enqueue(uint64_t priority, uint64_t bytes, uint64_t item) {
    if (priority >= lists_.size()) {
      lists_.resize(priority + 1);
      filled_.resize(priority / 64 + 1);
    }
    lists_[priority].items.push_back({bytes, item});
    filled_[priority / 64] |= uint64_t{1} << (priority % 64);
    ++waiting_;
  }

  // The next item allowed to leave, whose bytes count as outstanding from now.
  std::optional<uint64_t> Next() {
    if (waiting_ == 0) return std::nullopt;
    const size_t priority = FirstFilled();
    List& list = lists_[priority];
    const Entry entry = list.items[list.first];
    if (outstanding_bytes_ > 0 && outstanding_bytes_ + entry.bytes > credit_bytes_) {
      return std::nullopt;
    }
    outstanding_bytes_ += entry.bytes;
    --waiting_;
    list.DropFirst();
    if (list.items.empty()) filled_[priority / 64] &= ~(uint64_t{1} << (priority % 64));
    return entry.item;
  }

  // The receiver has taken an item over. REQUIRES: `bytes` as enqueued, once per item.
  void Received(uint64_t bytes) { outstanding_bytes_ -= bytes; }

  uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  size_t waiting() const { return waiting_; }

 private:
  struct Entry {
    uint64_t bytes;
    uint64_t item;
  };
  struct List {
    std::vector<Entry> items;
    size_t first = 0;  // those before it have left

    void DropFirst() {
      ++first;
      // Moves what is left to the front when that is at most half: constant time on average.
      if (2 * first < items.size()) return;
      items.erase(items.begin(), items.begin() + static_cast<ptrdiff_t>(first));
      first = 0;
    }
  };

  // REQUIRES: something waits.
  size_t FirstFilled() const {
    size_t word = 0;
    while (filled_[word] == 0) ++word;
    return word * 64 + static_cast<size_t>(std::countr_zero(filled_[word]));
  }

  const uint64_t credit_bytes_;
  uint64_t outstanding_bytes_ = 0;
  size_t waiting_ = 0;
  std::vector<List> lists_;       // by priority
  std::vector<uint64_t> filled_;  // a bit per list
};

}  // namespace tug

#endif  // TUG_SCHEDULER_CREDIT_QUEUE_H_
