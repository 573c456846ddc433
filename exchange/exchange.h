#ifndef TUG_EXCHANGE_EXCHANGE_H_
#define TUG_EXCHANGE_EXCHANGE_H_

// A worker's side of push and pull as a machine without I/O: requests, messages and ticks in,
// messages and events out. exchange/client.h binds it to a thread and a transport, simulate/ to
// virtual time.
//
// Life of a push:  queued -> (priority, credit) -> sent -> received (credit returns) -> committed
// (buffer free). Life of a pull:  sent -> weights of every partition written into the destination
// -> event. A waiting pull holds no credit. Whatever is not answered within `resend_after` is sent
// again: identity makes repeats harmless.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "base/lease.h"
#include "exchange/segment_table.h"
#include "proto/job.pb.h"
#include "scheduler/credit_queue.h"
#include "scheduler/partitioner.h"
#include "transport/transport.h"

namespace tug {

struct ExchangeOptions {
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  std::vector<uint32_t> lane_of_segment;
  CommConfig comm;  // all fields filled
};

// The gradient of a whole block.
struct PushRequest {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;        // first of an aligned group
  uint16_t virtual_worker_count = 1;  // see server/sum_tree.h
  uint64_t clock = 0;
  uint64_t token_count = 0;  // terms in the unscaled sum
  Lease gradient;            // block_elements floats; must not change before PushCommitted
};

// The weights of a whole block.
struct PullRequest {
  uint32_t block = 0;
  Want want = Want::kExact;
  uint64_t version = 0;
  std::span<float> destination;  // block_elements; written until BlockPulled
};

struct BlockPulled {
  uint32_t block = 0;
  uint64_t version = 0;
};

struct PushCommitted {
  uint32_t block = 0;
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
};

struct ExchangeSinks {
  std::function<void(Outgoing)> send;
  std::function<void(BlockPulled)> pulled;
  std::function<void(PushCommitted)> committed;
};

struct ExchangeCounters {
  uint64_t pushed_bytes = 0;  // payloads, repeats included
  uint64_t pulled_bytes = 0;
  uint64_t resent = 0;
  uint64_t refused = 0;
  uint64_t ignored = 0;  // answers that nothing waits for: late or repeated ones
};

// Not thread-safe.
class Exchange {
 public:
  // REQUIRES: `table` outlives the exchange.
  Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks);

  // REQUIRES: no push of the same (block, virtual worker, clock) is open.
  void Push(PushRequest request, absl::Time now);
  // REQUIRES: no pull of the same block is open.
  void Pull(PullRequest request, absl::Time now);
  void OnMessage(const Message& message, absl::Time now);
  // Sends again what has waited for too long.
  void OnTick(absl::Time now);

  size_t open_pushes() const { return pushes_.size(); }
  const ExchangeCounters& counters() const { return counters_; }

 private:
  enum class PushState { kQueued, kSent, kReceived, kCommitted };
  struct PartitionPush {
    PushState state = PushState::kQueued;
    absl::Time sent_at;
    absl::Duration patience;  // until it is sent again; doubles each time
  };
  struct OpenPush {
    PushRequest request;
    std::vector<PartitionPush> partitions;  // as plan_[block]
    size_t uncommitted = 0;
  };
  using PushKey = std::tuple<uint32_t, uint32_t, uint64_t>;  // block, virtual worker, clock

  struct OpenPull {
    PullRequest request;
    std::vector<bool> arrived;  // as plan_[block]
    size_t missing = 0;
    absl::Time sent_at;
  };

  void SendQueued(absl::Time now);
  void SendPush(OpenPush& push, size_t partition, absl::Time now);
  void SendPull(OpenPull& pull, size_t partition);
  void OnPushAnswer(const WireHeader& header, absl::Time now);
  void OnWeights(const Message& message);
  // Index of the partition a header speaks of; none if it is not one of the plan.
  std::optional<size_t> PartitionOf(const WireHeader& header) const;
  WireHeader Header(MessageKind kind, const Partition& partition) const;

  const ExchangeOptions options_;
  const absl::Duration resend_after_;
  const ExchangeSinks sinks_;
  std::vector<std::vector<Partition>> plan_;  // by block
  CreditQueue queue_;
  // What a queue item number stands for: the push and the index of its partition.
  std::map<uint64_t, std::pair<PushKey, size_t>> queued_;
  uint64_t next_item_ = 0;
  std::map<PushKey, OpenPush> pushes_;
  std::map<uint32_t, OpenPull> pulls_;  // by block
  ExchangeCounters counters_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_EXCHANGE_H_
