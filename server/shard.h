#ifndef TUG_SERVER_SHARD_H_
#define TUG_SERVER_SHARD_H_

// The state of one lane's segments, as a machine without I/O: messages and ticks in, messages,
// notices and snapshots out (through sinks). The lane's thread (lane.h) binds it to a transport,
// simulate/ to virtual time.
//
// Life of a push (`bsp`):
//   1. Fence: other job -> dropped; older view or timeline -> kRefused with the current ones.
//   2. Identity (segment, virtual worker, clock): a repeat is acknowledged, not applied again.
//      Otherwise every segment's part is added into its sum tree straight from the message. Answer
//      kReceived: the sender's credit returns.
//   3. The policy closes a segment's clock when all virtual workers are in. With clipping, lanes
//      first agree on one scale (norm_ledger.h).
//   4. The optimizer makes version clock + 1: it reads the copy of `version` and writes the other
//      copy, so the previous one stays readable until the next update, which comes only when every
//      segment of this clock has closed everywhere.
//   5. kCommitted to the senders; then waiting pulls of the block are answered, sent from the
//      weights in place.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/lease.h"
#include "exchange/segment_table.h"
#include "optimizer/adamw.h"
#include "proto/job.pb.h"
#include "server/bsp_policy.h"
#include "server/norm_ledger.h"
#include "server/sum_tree.h"
#include "transport/transport.h"

namespace tug {

struct ShardOptions {
  uint32_t lane = 0;  // lane number, here and in lane_of_segment (exchange/view_lanes.h)
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  uint64_t start_version = 0;
  uint32_t virtual_workers = 1;
  OptimizerConfig optimizer;  // all fields filled
  std::vector<uint32_t> lane_of_segment;
  std::vector<std::string> block_names;
  uint64_t checkpoint_interval = 0;  // versions between snapshots; 0 = only the final one
  absl::Duration resend_after = absl::Seconds(10);
  // For measurements of all but the optimizer: versions advance, no weights are computed.
  bool leave_out_update = false;
};

// State of one segment at a version, readable during the call only, but for `weights`, which stays
// as it is while the lease lives.
struct SegmentSnapshot {
  uint32_t segment = 0;
  uint64_t version = 0;
  Lease weights;
  std::span<const float> m;
  std::span<const float> v;
};

// A line for people, each key once ("nonfinite/12").
struct ShardNotice {
  std::string key;
  std::string text;
};

struct ShardSinks {
  std::function<void(Outgoing)> send;
  std::function<void(const SegmentSnapshot&)> snapshot;
  std::function<void(ShardNotice)> notice;
};

struct ShardCounters {
  uint64_t refused = 0;    // old view or timeline
  uint64_t malformed = 0;  // passed the wire's checks but makes no sense here
  uint64_t repeats = 0;
};

// Not thread-safe: owned by one lane.
class Shard {
 public:
  // REQUIRES: `table` outlives the shard.
  Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks);

  // To fill in the start version, before the first message.
  const std::vector<uint32_t>& segments() const { return owned_; }
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);
  std::span<float> v(uint32_t segment);

  void OnMessage(const Message& message, absl::Time now);
  // Asks again for norms that do not come.
  void OnTick(absl::Time now);
  // From the coordinator: the version at which the job ends, to be snapshot whatever the interval.
  void SetFinalVersion(uint64_t version);

  uint64_t version(uint32_t segment) const { return states_[segment]->version; }
  const ShardCounters& counters() const { return counters_; }

 private:
  // Consecutive owned segments of one block, whose weights lie in one buffer, so that a partition
  // is sent from one place.
  struct Run {
    uint32_t block = 0;
    uint64_t begin = 0;  // elements, within the block
    uint64_t end = 0;
    // The copy of version v is copies[v % 2]; shared with messages on their way.
    std::shared_ptr<AlignedBuffer> copies[2];
    uint64_t copy_version[2] = {0, 0};
    AlignedBuffer m;
    AlignedBuffer v;
  };

  struct SegmentState {
    SegmentState(uint32_t run_index, uint32_t leaves, uint64_t elements, BufferPool& pool)
        : run(run_index), sum(leaves, elements, pool) {}
    uint32_t run;
    uint64_t version = 0;
    uint64_t snapshot_version = 0;
    SumTree sum;
    uint64_t tokens = 0;
  };

  // A push whose segments have not all closed.
  struct OpenPush {
    WireHeader header;
    uint32_t open_segments = 0;
  };

  void BuildRuns();
  bool Fenced(const Message& message);
  // Counts a message that makes no sense here; the first one is told to people.
  void Malformed(const WireHeader& header, const char* why);
  // Checks block, range and ownership of a push or pull.
  bool RangeIsOwn(const WireHeader& header) const;
  uint64_t RangeElements(const WireHeader& header) const;
  // Bounds the pushes, and the waiting pulls, of a block that a lane remembers.
  size_t MaxOpen(uint32_t block) const;
  void OnPush(const Message& message, absl::Time now);
  void AddPush(const Message& message, absl::Time now);
  void OnPull(const WireHeader& header);
  bool TryServe(const WireHeader& pull);
  void OnNorms(const Message& message);
  void OnNormsWanted(const WireHeader& header);

  void OnSummed(uint32_t segment, absl::Time now);
  void SendNorms(uint32_t scope, uint64_t clock, uint32_t to_lane);
  void CloseScopeIfComplete(uint32_t scope);
  float GradientScale(double sum_of_squares, uint64_t tokens) const;
  void NoticeSkip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker);
  // Makes version + 1: `scale` = none keeps the weights.
  void Close(uint32_t segment, std::optional<float> scale);
  std::span<float> WritableCopy(Run& run, uint64_t version);
  std::span<float> Part(std::span<float> of_run, uint32_t segment);
  void MaybeSnapshot(uint32_t segment);
  void CommitPushes(uint32_t segment);
  void AnswerPulls(uint32_t block);
  void Reply(MessageKind kind, const WireHeader& to, uint64_t version);
  WireHeader Header(MessageKind kind) const;

  const ShardOptions options_;
  const SegmentTable& table_;
  const ShardSinks sinks_;
  const AdamW optimizer_;
  const BspPolicy policy_{};
  BufferPool pool_;
  std::vector<uint32_t> owned_;
  std::vector<Run> runs_;
  std::vector<std::unique_ptr<SegmentState>> states_;   // by segment id; null if another lane's
  std::optional<NormLedger> ledger_;                    // none with `clip: off`
  std::vector<std::vector<OpenPush>> open_pushes_;      // by block
  std::vector<std::vector<WireHeader>> waiting_pulls_;  // by block
  absl::Time norms_asked_ = absl::InfinitePast();
  uint64_t final_version_ = 0;
  ShardCounters counters_;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_H_
