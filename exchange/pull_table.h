// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_PULL_TABLE_H_
#define TUG_EXCHANGE_PULL_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "blocks/partition_plan.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "blocks/segment_versions.h"
#include "blocks/weight_changes.h"
#include "exchange/encode/codec_chooser.h"

namespace tug {

// Incomplete pulls of an exchange, at most one per block. A partition's weights are copied to the
// destination on arrival, or held in place (PullRequest::allow_in_place) until the block is
// complete. If all are then held and contiguous, they stay in place; else the held ones are copied.
// Pulls without a reply are resent.
//
// With pull_format PULL_AUTO, each partition is requested in the format that is fastest from its
// lane, FP32 or INT8 (encode/codec_chooser.h).
//
// The cost of a message does not depend on the number of open partitions. Allocates nothing once
// the tables have grown, except for ranges and leases handed out. Not thread-safe.
class PullTable {
 public:
  // `plan` may be pointed at another plan, which applies to pulls added afterwards. REQUIRES: all
  // references outlive the table.
  PullTable(const ExchangeOptions& options, const SegmentTable& table,
            const std::shared_ptr<const PartitionPlan>& plan, const ExchangeSinks& sinks,
            SendBuffers& buffers, SegmentVersions& versions, ExchangeCounters& counters);

  // Replaces the block's open pull, if any.
  void Add(PullRequest request, absl::Time now);
  void GiveUp(uint32_t block);
  void OnWeights(const Message& message, absl::Time now);
  // Acknowledges weights sent in the previous view: the pull is resent anyway, but they hold the
  // lane's credit.
  void OnOldWeights(const WireHeader& header) {
    if (header.ack_id != 0) ReportReceived(header);
  }
  void OnTick(absl::Time now);
  // Resends all open pulls, due or not.
  void AskForAllAgain(absl::Time now);
  // The plan's lanes have changed: partitions all open pulls by it and requests them whole, since
  // what has arrived was partitioned differently.
  void CutAllAgain(absl::Time now);

  bool IsOpen(uint32_t block) const { return pulls_[block].missing > 0; }
  // Whether nothing has arrived for the block's newest pull. REQUIRES: it is open.
  bool HasNothingOf(uint32_t block) const;

  void KeepLanes(std::span<const uint32_t> lanes);
  // With PULL_AUTO: the choice for each lane, FP32 (0) or INT8 (1). Else empty.
  std::vector<CodecChooser::Chosen> chosen() const;

 private:
  enum class State : uint8_t { kUnwanted, kMissing, kCopied, kHeld };
  struct OpenPull {
    PullRequest request;
    std::shared_ptr<const PartitionPlan> plan;  // of this pull; null before the first one
    std::vector<State> partitions;              // by the plan's partitions
    std::vector<Codec> codecs;                  // for partitions requested whole
    std::vector<Lease> held;                    // payloads in state kHeld
    uint32_t missing = 0;                       // missing partitions; 0: not open
    uint64_t version = 0;                       // lowest version that has arrived
    uint64_t newest = 0;                        // highest version that has arrived
    absl::Time due;                             // when missing partitions are requested again
    absl::Time asked;                           // used with PULL_AUTO
    bool first = true;                          // the block's first pull: its memory is untouched
    int64_t asked_ns = 0;                       // used when the job is traced
  };

  static std::span<const Partition> PartsOf(const OpenPull& pull) {
    return pull.plan->of_block(pull.request.block);
  }
  // Format in which a partition is requested and arrives; `runs`: the wanted ranges, clipped to it.
  Codec CodecOf(const OpenPull& pull, uint32_t partition, std::span<const ElementRun> runs) const;
  // Format of a partition requested whole.
  Codec ChooseCodec(const PullRequest& request, const Partition& part);
  ElementRuns WantedRuns(const PullRequest& request, const Partition& part) const;
  // Partitions the request by the plan and sends it.
  void Ask(OpenPull& pull, absl::Time now);
  void Send(const OpenPull& pull, uint32_t partition);
  // Acknowledges weights to the lane, which returns its credit.
  void ReportReceived(const WireHeader& weights);
  // Whether the weights answer this request, not an earlier pull.
  bool Answers(const PullRequest& request, const WireHeader& weights) const;
  // False if the payload does not match the request.
  bool Take(OpenPull& pull, uint32_t partition, const Message& message);
  // Copies a partition's payload to the destination.
  void Copy(const OpenPull& pull, uint32_t partition, const Lease& payload) const;
  // Like Copy; with PULL_AUTO also measures the time.
  void CopyArrived(const OpenPull& pull, uint32_t partition, const Lease& payload);
  // Payload size of a partition sent whole.
  size_t PayloadBytes(Codec codec, const Partition& part) const;
  void Complete(OpenPull& pull);
  // Traces a partition that arrived at `arrived_ns` and has been stored.
  void TraceArrival(const OpenPull& pull, const Message& message, int64_t arrived_ns);
  void AskAgain(OpenPull& pull, absl::Time now);
  bool IsInOnePiece(const OpenPull& pull) const;

  const ExchangeOptions& options_;
  const SegmentTable& table_;
  const std::shared_ptr<const PartitionPlan>& plan_;
  const ExchangeSinks& sinks_;
  SendBuffers& buffers_;
  SegmentVersions& versions_;
  ExchangeCounters& counters_;
  const absl::Duration resend_after_;
  const Codec codec_;  // for partitions requested whole; kNone with PULL_AUTO
  std::optional<CodecChooser> chooser_;
  std::vector<OpenPull> pulls_;       // by block
  std::optional<HeldWeights> holds_;  // with pull_format CHANGES
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PULL_TABLE_H_
