#ifndef TUG_SCHEDULER_CREDIT_QUEUE_H_
#define TUG_SCHEDULER_CREDIT_QUEUE_H_

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace tug {

// Order and amount of what is on its way. Items leave by priority (smaller first), equal ones in
// the order they came, and only while the bytes outstanding fit the credit; an item larger than the
// whole credit leaves when nothing else is outstanding. So a high-priority item waits behind at
// most `credit_bytes` of lower ones. Paper: Peng et al. 2019 (ByteScheduler, SOSP), section 4.2.
// Pure: no thread, no clock. Not thread-safe.
class CreditQueue {
 public:
  explicit CreditQueue(uint64_t credit_bytes) : credit_bytes_(credit_bytes) {}

  void Enqueue(uint64_t priority, uint64_t bytes, uint64_t item) {
    queue_.push({priority, next_sequence_++, bytes, item});
  }

  // The next item allowed to leave, whose bytes count as outstanding from now.
  std::optional<uint64_t> Next() {
    if (queue_.empty()) return std::nullopt;
    const Entry& entry = queue_.top();
    if (outstanding_bytes_ > 0 && outstanding_bytes_ + entry.bytes > credit_bytes_) {
      return std::nullopt;
    }
    outstanding_bytes_ += entry.bytes;
    const uint64_t item = entry.item;
    queue_.pop();
    return item;
  }

  // The receiver has taken an item over. REQUIRES: `bytes` as enqueued, once per item.
  void Received(uint64_t bytes) { outstanding_bytes_ -= bytes; }

  uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  size_t waiting() const { return queue_.size(); }

 private:
  struct Entry {
    uint64_t priority;
    uint64_t sequence;
    uint64_t bytes;
    uint64_t item;
    bool operator<(const Entry& other) const {  // std::priority_queue: largest on top
      return priority != other.priority ? priority > other.priority : sequence > other.sequence;
    }
  };

  const uint64_t credit_bytes_;
  uint64_t outstanding_bytes_ = 0;
  uint64_t next_sequence_ = 0;
  std::priority_queue<Entry> queue_;
};

}  // namespace tug

#endif  // TUG_SCHEDULER_CREDIT_QUEUE_H_
