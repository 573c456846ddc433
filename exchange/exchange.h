// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_EXCHANGE_H_
#define TUG_EXCHANGE_EXCHANGE_H_

// A worker's side of push and pull, as a state machine without I/O: requests, messages and ticks
// in, messages and events out. exchange/client.h runs it on a thread with a transport,
// lab/simulate/ in virtual time.
//
// Pushes leave in the order of comm.scheduler under a byte credit (push_table.h). A waiting pull
// holds no credit; weights that hold the lane's credit are acknowledged (pull_table.h). A message
// without a reply is resent: its identity makes repeats harmless.
//
// Partition size and credit may change at run time (blocks/schedule.h). Open requests keep their
// partitions, later ones use the new size; lanes accept both. Ownership of segments may change too
// (SetView).
//
// Whole partitions are pulled from a lane on the worker's own host that acts for their owner, if
// there is one (placement.host_weight_cache, server/pulls/weight_cache.h).
//
// Payloads. Pushes: FP32, or frames of comm.push_codec (encode/push_encoder.h). Pulls: the format
// of comm.pull_format (blocks/weights_payload.h). FP32 pushes and pulls may have only some ranges
// of elements (blocks/runs.h). This is lossless: a lane treats elements that are not pushed as
// zeros and updates all weights, so the bits are those of dense pushes with any optimizer.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "blocks/partition_plan.h"
#include "blocks/requests.h"
#include "blocks/schedule.h"
#include "blocks/segment_table.h"
#include "blocks/segment_versions.h"
#include "exchange/awaited.h"
#include "exchange/encode/codec_chooser.h"
#include "exchange/encode/push_encoder.h"
#include "exchange/pull_table.h"
#include "exchange/push_table.h"
#include "transport/transport.h"

namespace tug {

// Methods chosen by lane; empty: no automatic choice.
struct LinkChoices {
  std::vector<CodecChooser::Chosen> pushes;
  std::vector<CodecChooser::Chosen> pulls;  // method 0: FP32, 1: INT8
  std::vector<std::string> push_names;      // names of the methods of `pushes`
};

// Not thread-safe.
class Exchange {
 public:
  // REQUIRES: `table` outlives the exchange.
  Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // REQUIRES: no push of the same (block, virtual worker, clock) is open. With error feedback,
  // pushes of a block and virtual worker come in clock order.
  void Push(PushRequest request, absl::Time now) { pushes_.Add(std::move(request), now); }
  // Replaces the block's open pull, if any, which ends as superseded.
  void Pull(PullRequest request, absl::Time now) { pulls_.Add(std::move(request), now); }
  // Cancels the block's open pull, if any: its only event is BlockPulled with `superseded`.
  void GiveUpPull(uint32_t block) { pulls_.GiveUp(block); }
  // New partition size for later pushes and pulls; the new credit applies at once.
  void SetSchedule(const ExchangeSchedule& schedule, absl::Time now);
  void OnMessage(const Message& message, absl::Time now);
  // Enters the job's next view, of the same timeline. Lanes have forgotten waiting requests, so
  // uncommitted pushes and open pulls are sent again at once under the new view. If segments change
  // owners, all open requests are partitioned again and sent whole: lanes recognise the parts of a
  // push that they have committed. If only the lanes that act for owners change, this applies to
  // pulls alone. REQUIRES: the same number of segments as before.
  void SetView(ViewRequest view, absl::Time now);
  // Drops open pushes and residuals of all virtual workers not in `carried`: their new worker makes
  // the pushes again.
  void SetCarried(const CarriedRequest& carried, absl::Time now);
  // Residuals of a virtual worker after all its pushes so far, by segment; empty: none, or no error
  // feedback. Encodes its unsent pushes now; they are sent later unchanged. A push dropped
  // afterwards (sync.policy BACKUP) is not included.
  std::vector<SegmentResidual> CopyResiduals(uint32_t virtual_worker);
  // Replaces a virtual worker's residuals. REQUIRES: it has no open push; as many floats per
  // segment as the job's codec keeps.
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
    encoder_.RestoreResiduals(virtual_worker, std::move(residuals));
  }
  // Resends overdue messages.
  void OnTick(absl::Time now);

  size_t open_pushes() const { return pushes_.open(); }
  // Why the weights of a block being pulled have not arrived.
  Awaited AwaitedOf(uint32_t block) const;
  ExchangeCounters counters() const;
  // Methods chosen for each link by comm.push_codec.auto and PULL_AUTO.
  LinkChoices choices() const;
  // Sum of squares of the residual, by virtual worker. Missing or 0: no residual.
  std::span<const double> residual_squares() const { return encoder_.residual_squares(); }

 private:
  // Partition plan for later requests.
  void MakePlan();

  ExchangeOptions options_;
  const ExchangeSinks sinks_;
  const SegmentTable& table_;
  uint64_t partition_bytes_;
  std::shared_ptr<const PartitionPlan> plan_;  // shared with requests partitioned by it
  ExchangeCounters counters_;
  SendBuffers buffers_;
  PushEncoder encoder_;
  SegmentVersions versions_;
  PushTable pushes_;
  PullTable pulls_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_EXCHANGE_H_
