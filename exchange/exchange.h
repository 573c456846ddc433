#ifndef TUG_EXCHANGE_EXCHANGE_H_
#define TUG_EXCHANGE_EXCHANGE_H_

// A worker's side of push and pull as a machine without I/O: requests, messages and ticks in,
// messages and events out. exchange/client.h binds it to a thread and a transport, simulate/ to
// virtual time.
//
// Pushes leave in the order of comm.scheduler under a byte credit (push_table.h); a waiting pull
// holds no credit, and weights that hold the lane's are acknowledged (pull_table.h). Whatever is
// not answered is sent again: identity makes repeats harmless.
//
// Cutting and credit may change as it runs (schedule.h): what is open keeps the partitions it was
// cut into, what comes then is cut anew, and lanes take either. Who owns what may change too
// (SetView).
//
// Whole partitions are pulled from a lane on the worker's own host where one stands in for their
// owner (placement.host_weight_cache, server/weight_cache.h).
//
// Payloads: pushes are FP32, or frames of what comm.push_codec makes of it (push_encoder.h); pulls
// as comm.pull_format says (weights_payload.h); or, FP32, only some runs of elements (runs.h). Runs
// are lossless: a lane takes the elements that are not pushed for zeros and updates all weights as
// ever, so the bits are those of dense pushes whatever the optimizer.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "exchange/awaited.h"
#include "exchange/codec_chooser.h"
#include "exchange/partition_plan.h"
#include "exchange/pull_table.h"
#include "exchange/push_encoder.h"
#include "exchange/push_table.h"
#include "exchange/requests.h"
#include "exchange/schedule.h"
#include "exchange/segment_table.h"
#include "exchange/segment_versions.h"
#include "exchange/send_buffers.h"
#include "transport/transport.h"

namespace tug {

// By lane; empty: nothing is chosen.
struct LinkChoices {
  std::vector<CodecChooser::Chosen> pushes;
  std::vector<CodecChooser::Chosen> pulls;  // 0: FP32, 1: INT8
  std::vector<std::string> push_names;      // of methods
};

// Not thread-safe.
class Exchange {
 public:
  // REQUIRES: `table` outlives the exchange.
  Exchange(ExchangeOptions options, const SegmentTable& table, ExchangeSinks sinks);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // REQUIRES: no push of the same (block, virtual worker, clock) is open. With error feedback those
  // of a block and virtual worker come in the order of their clocks.
  void Push(PushRequest request, absl::Time now) { pushes_.Add(std::move(request), now); }
  // In place of one of the same block that is open, if there is one: nothing more comes of that.
  void Pull(PullRequest request, absl::Time now) { pulls_.Add(std::move(request), now); }
  // Nothing more comes of the block's open pull, if there is one, but its event, as superseded.
  void GiveUpPull(uint32_t block) { pulls_.GiveUp(block); }
  // Of pushes and pulls from now on; credit at once.
  void SetSchedule(const ExchangeSchedule& schedule, absl::Time now);
  void OnMessage(const Message& message, absl::Time now);
  // The job's next view, of the same timeline: lanes have forgotten who waits for what. What is not
  // committed is sent, and what has not come is asked for again, at once, under its number. If
  // segments have other owners, all that is open is cut anew first, and sent as a whole: lanes know
  // what they have committed of a push. If others stand in for owners, so it is with pulls.
  // REQUIRES: as many segments as before.
  void SetView(ViewRequest view, absl::Time now);
  // Open pushes of virtual workers that are no longer carried are given up, and their residuals
  // with them: whoever carries them now makes the pushes again.
  void SetCarried(const CarriedRequest& carried, absl::Time now);
  // With error feedback: what the pushes of a virtual worker so far leave out, by segment; empty:
  // nothing. What of them is not sent yet is encoded now, and sent later as it is. A push that is
  // dropped afterwards (sync.policy BACKUP) is not in it.
  std::vector<SegmentResidual> CopyResiduals(uint32_t virtual_worker);
  // In place of what a virtual worker has. REQUIRES: nothing of it is open; as many floats of each
  // segment as the job's codec keeps.
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals) {
    encoder_.RestoreResiduals(virtual_worker, std::move(residuals));
  }
  // Sends again what has waited for too long.
  void OnTick(absl::Time now);

  size_t open_pushes() const { return pushes_.open(); }
  // What the weights of a block that is pulled hang on.
  Awaited AwaitedOf(uint32_t block) const;
  ExchangeCounters counters() const;
  // What is chosen of each link by comm.push_codec.auto and PULL_AUTO.
  LinkChoices choices() const;
  // By virtual worker: of what its pushes have left out so far (error feedback). Empty, or 0: none.
  std::span<const double> residual_squares() const { return encoder_.residual_squares(); }

 private:
  // Of what is asked for from now on.
  void MakePlan();

  ExchangeOptions options_;
  const ExchangeSinks sinks_;
  const SegmentTable& table_;
  uint64_t partition_bytes_;
  std::shared_ptr<const PartitionPlan> plan_;  // shared with what was cut by it
  ExchangeCounters counters_;
  SendBuffers buffers_;
  PushEncoder encoder_;
  SegmentVersions versions_;
  PushTable pushes_;
  PullTable pulls_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_EXCHANGE_H_
