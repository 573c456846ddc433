// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_PUSH_PAYLOADS_H_
#define TUG_EXCHANGE_PUSH_PAYLOADS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "blocks/requests.h"
#include "exchange/encode/push_encoder.h"
#include "exchange/uncommitted_pushes.h"

namespace tug {

// Network payloads of a push's partitions: FP32 in place, ranges, or frames. Frames are made at the
// first send and kept for resends.
//
// With comm.push_codec.auto, whether a partition has anything to encode is known only when it is
// encoded, and acknowledgements measure the rates of links. A partition sent to measure a rate (a
// probe) is acknowledged, or resent, before anything else is encoded: encoding would delay reading
// the acknowledgement. Not thread-safe.
class PushPayloads {
 public:
  // REQUIRES: all references outlive this object.
  PushPayloads(const ExchangeOptions& options, PushEncoder& encoder, SendBuffers& buffers,
               ExchangeCounters& counters)
      : options_(options), encoder_(encoder), buffers_(buffers), counters_(counters) {}

  // Chooses the codec of a new partition and the upper bound on its bytes.
  void Choose(OpenPush& push, uint32_t partition) const;
  // Makes the partition's frames, if it needs any and has none yet.
  void Encode(OpenPush& push, uint32_t partition);
  // Calls Encode for all unsent partitions.
  void EncodeUnsent(OpenPush& push);
  // REQUIRES: Encode was called for it.
  Lease PayloadOf(const OpenPush& push, uint32_t partition);
  // Frees its frames; they are no longer needed.
  void LetGo(OpenPush& push, uint32_t partition);

  // With `auto`: record that it is about to be sent; that it has arrived.
  void OnSending(OpenPush& push, uint32_t partition, absl::Time now);
  void OnArrived(OpenPush& push, uint32_t partition, absl::Time now);
  // Takes no sample from its next acknowledgement: it is unknown which send that acknowledges.
  void Forget(PartitionPush& part);
  // Messages in flight will not be acknowledged.
  void RestartLinks();
  // A probe is not acknowledged yet: do not send anything else.
  bool probing() const { return probing_; }

 private:
  LinkRate::Moment MomentOf(absl::Time now) const;

  const ExchangeOptions& options_;
  PushEncoder& encoder_;
  SendBuffers& buffers_;
  ExchangeCounters& counters_;
  bool probing_ = false;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_PAYLOADS_H_
