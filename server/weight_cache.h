#ifndef TUG_SERVER_WEIGHT_CACHE_H_
#define TUG_SERVER_WEIGHT_CACHE_H_

// Weights of lanes on other hosts, which a lane keeps for the workers on its own
// (placement.host_weight_cache; ZeRO++, Wang et al. 2023, section 3.2: hpZ's secondary partition,
// here of a whole host and not only for the backward pass). A machine without I/O: a shard hands it
// pulls and messages, it says what is to be sent.
//
//   1. A worker's pull of a partition of such a lane comes here (PullLanesOn, view_lanes.h).
//   2. If (segments, codec, version) are not here, the owner is asked for exactly them: once for
//      all who want them, and again when no answer comes. The shard lets the pulls wait.
//   3. The owner's answer is copied as it came into memory that workers share, and its credit
//      returned. The shard answers from there who waits, and who comes later.
//   4. What is here of its segments and as old, or older, is forgotten then; and what was asked
//      for and is two versions older. Leases that were handed out stay as they are.
//
// Under BSP a version of a segment is the same for everybody, so what is here is what the owner
// would have answered. A new view forgets all: workers ask again for what they still want.
//
// Memory: of each segment one payload, however often it is cut anew; and, until the next version
// comes, one of the version before, where that came after. Linear in the partitions of a block for
// each message.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/lease.h"
#include "exchange/segment_table.h"
#include "exchange/send_buffers.h"
#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

// One version of all that is kept, however it is cut.
struct KeptBytes {
  uint64_t payloads = 0;
  uint64_t buffers = 0;  // that hold them, at most
};
// Of the segments of `lanes`, as they are pulled. `lane_of_segment`: lane numbers. Pure.
KeptBytes KeptBytesOf(std::span<const uint32_t> lane_of_segment, std::span<const uint32_t> lanes,
                      Codec codec, const SegmentTable& table);

// Not thread-safe: owned by one lane.
class WeightCache {
 public:
  struct Options {
    uint64_t job = 0;
    uint32_t timeline = 0;
    uint32_t view = 0;
    std::vector<uint32_t> lane_of_segment;  // lane numbers, as in ShardOptions
    std::vector<uint32_t> lanes;            // those whose weights are kept here
    Codec codec = Codec::kNone;             // of the job's pulls: FP32, bf16 or int8
    absl::Duration resend_first;            // where the owner is in another view
    absl::Duration resend_after;
    SendBuffers::NewBuffer new_buffer;  // as SendBuffers takes it
  };
  using Send = std::function<void(Outgoing)>;

  // REQUIRES: `table` outlives it.
  WeightCache(Options options, const SegmentTable& table, Send send);

  // Whether the range is of one lane whose weights are kept here. REQUIRES: it exists.
  bool Keeps(uint32_t block, uint32_t first_segment, uint32_t segment_count) const;
  // Whether a pull of such a range can be answered from here at some time.
  bool CanAnswer(const WireHeader& pull) const;

  // Of pulls that it can answer:
  // The weights, if they are here.
  std::optional<Lease> Find(const WireHeader& pull) const;
  // Asks the owner, unless the weights are here or it has been asked.
  void Ask(const WireHeader& pull, absl::Time now);
  // Whether either is so. No longer after a refusal, or when newer weights have come.
  bool Knows(const WireHeader& pull) const { return FindEntry(pull) != nullptr; }

  // kWeights of this view. True if they were asked for: they are here now.
  bool OnWeights(const Message& message);
  // kRefused of this view: the owner has a later version, so that what was asked for is given up;
  // or it was in this view before the pull was, and is asked again soon.
  void OnRefused(const WireHeader& header, absl::Time now);
  // kWeights or kRefused of another view or timeline: the credit returns, or the owner is asked
  // again soon.
  void OnFenced(const WireHeader& header, absl::Time now);
  void OnTick(absl::Time now);
  // Forgets everything.
  void SetView(uint32_t view);

  // Payloads that are here, the most at a time.
  uint64_t most_held_bytes() const { return most_held_bytes_; }

 private:
  struct Entry {
    WireHeader pull;  // as it is sent to the owner
    Lease payload;
    bool held = false;  // it has come
    absl::Time due;     // until then: when the owner is asked again
  };
  // An answer, or pull, of the same.
  static bool IsOf(const Entry& entry, const WireHeader& header);
  static bool Overlap(const WireHeader& a, const WireHeader& b);

  uint32_t Owner(const WireHeader& header) const {
    return options_.lane_of_segment[table_.id(header.block, header.first_segment)];
  }
  const Entry* FindEntry(const WireHeader& header) const;
  // One that was asked for and has not come, of its owner; null: none.
  Entry* FindAsked(const WireHeader& answer);
  // A pull of these segments that has not come, of who refuses it.
  bool IsAskedOf(const Entry& entry, const WireHeader& refused) const;
  void AskSoon(Entry& entry, absl::Time now) const;
  void SayReceived(const WireHeader& weights);
  // What these weights take the place of.
  void MakeRoomFor(const WireHeader& weights);
  void Take(Entry& entry, const Lease& payload);
  void AskOwner(Entry& entry, absl::Time now);

  Options options_;
  const SegmentTable& table_;
  const Send send_;
  SendBuffers buffers_;
  std::vector<std::vector<Entry>> entries_;  // by block
  uint64_t held_bytes_ = 0;
  uint64_t most_held_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_SERVER_WEIGHT_CACHE_H_
