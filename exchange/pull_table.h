#ifndef TUG_EXCHANGE_PULL_TABLE_H_
#define TUG_EXCHANGE_PULL_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "exchange/codec_chooser.h"
#include "exchange/partition_plan.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "exchange/segment_versions.h"
#include "exchange/send_buffers.h"
#include "exchange/weight_changes.h"

namespace tug {

// The pulls of an exchange that are not complete, at most one a block. A partition's weights are
// written into the destination as they arrive, or held where they are (PullRequest::allow_in_place)
// until the block is complete: if then all are held and adjoin, they stay there, else those held
// are copied. What is not answered is asked for again.
//
// With pull_format PULL_AUTO every partition is asked for as what takes least time from its lane,
// FP32 or INT8 (codec_chooser.h).
//
// A message costs the same however many partitions are open, and allocates nothing once the tables
// have grown (but for runs, and the leases handed out). Not thread-safe.
class PullTable {
 public:
  // `plan` may be made to point at another one: pulls that are added then are cut by that.
  // REQUIRES: all references outlive the table.
  PullTable(const ExchangeOptions& options, const SegmentTable& table,
            const std::shared_ptr<const PartitionPlan>& plan, const ExchangeSinks& sinks,
            SendBuffers& buffers, SegmentVersions& versions, ExchangeCounters& counters);

  // In place of the block's open pull, if there is one.
  void Add(PullRequest request, absl::Time now);
  void GiveUp(uint32_t block);
  void OnWeights(const Message& message, absl::Time now);
  // Of the view before: they are asked for again, but hold the lane's credit.
  void OnOldWeights(const WireHeader& header) {
    if (header.ack_id != 0) SayReceived(header);
  }
  void OnTick(absl::Time now);
  // As OnTick, of all pulls, whether or not it is time.
  void AskForAllAgain(absl::Time now);
  // The plan's lanes are others: all pulls are cut by it and asked for as a whole, since what has
  // come was cut in another way.
  void CutAllAgain(absl::Time now);

  bool IsOpen(uint32_t block) const { return pulls_[block].missing > 0; }
  // Whether no part of the block's newest pull has come. REQUIRES: it is open.
  bool HasNothingOf(uint32_t block) const;

  void KeepLanes(std::span<const uint32_t> lanes);
  // With PULL_AUTO: by lane, what is chosen of FP32 (0) and INT8 (1). Else empty.
  std::vector<CodecChooser::Chosen> chosen() const;

 private:
  enum class State : uint8_t { kUnwanted, kMissing, kCopied, kHeld };
  struct OpenPull {
    PullRequest request;
    std::shared_ptr<const PartitionPlan> plan;  // that it was cut by; none before the first pull
    std::vector<State> partitions;              // as the plan's
    std::vector<Codec> codecs;                  // of those that come whole
    std::vector<Lease> held;                    // where kHeld
    uint32_t missing = 0;                       // partitions; 0: not open
    uint64_t version = 0;                       // lowest that has arrived
    uint64_t newest = 0;                        // highest
    absl::Time due;                             // when what is missing is asked for again
    absl::Time asked;                           // read with PULL_AUTO
    bool first = true;                          // of the block: its memory is new
    int64_t asked_ns = 0;                       // where the job is traced
  };

  static std::span<const Partition> PartsOf(const OpenPull& pull) {
    return pull.plan->of_block(pull.request.block);
  }
  // How a partition is asked for, and so how it comes; `runs` are the wanted ones, clipped.
  Codec CodecOf(const OpenPull& pull, uint32_t partition, std::span<const ElementRun> runs) const;
  // Of a partition that comes whole.
  Codec ChooseCodec(const PullRequest& request, const Partition& part);
  ElementRuns WantedRuns(const PullRequest& request, const Partition& part) const;
  // Cuts its request by the plan and sends it.
  void Ask(OpenPull& pull, absl::Time now);
  void Send(const OpenPull& pull, uint32_t partition);
  // To the lane, whose credit it returns.
  void SayReceived(const WireHeader& weights);
  // Whether weights are those that were asked for, not late ones of an earlier pull.
  bool Answers(const PullRequest& request, const WireHeader& weights) const;
  // False if the payload is not what was asked for.
  bool Take(OpenPull& pull, uint32_t partition, const Message& message);
  // A partition's weights from where they arrived into the destination.
  void Copy(const OpenPull& pull, uint32_t partition, const Lease& payload) const;
  // As Copy, and with PULL_AUTO measures it.
  void CopyArrived(const OpenPull& pull, uint32_t partition, const Lease& payload);
  // Of one that comes whole.
  size_t PayloadBytes(Codec codec, const Partition& part) const;
  void Complete(OpenPull& pull);
  // A partition came at `arrived_ns`, and has been taken.
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
  const Codec codec_;  // of partitions that come whole; with PULL_AUTO kNone
  std::optional<CodecChooser> chooser_;
  std::vector<OpenPull> pulls_;       // by block
  std::optional<HeldWeights> holds_;  // with pulls of changes
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PULL_TABLE_H_
