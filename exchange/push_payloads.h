#ifndef TUG_EXCHANGE_PUSH_PAYLOADS_H_
#define TUG_EXCHANGE_PUSH_PAYLOADS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "exchange/push_encoder.h"
#include "exchange/requests.h"
#include "exchange/send_buffers.h"
#include "exchange/uncommitted_pushes.h"

namespace tug {

// What crosses the network of each partition of a push: as it lies, its runs, or frames, which are
// made when it is sent first and kept for repeats.
//
// With comm.push_codec.auto it is seen only when a partition is encoded whether there is anything
// to encode; and the answers to what is sent tell how fast the links are. One that is sent to tell
// it (a probe) is answered, or sent again, before anything else is encoded, which would keep the
// answer from being seen. Not thread-safe.
class PushPayloads {
 public:
  // REQUIRES: all references outlive it.
  PushPayloads(const ExchangeOptions& options, PushEncoder& encoder, SendBuffers& buffers,
               ExchangeCounters& counters)
      : options_(options), encoder_(encoder), buffers_(buffers), counters_(counters) {}

  // Chooses the codec of a partition that was just cut, and its bytes at most.
  void Choose(OpenPush& push, uint32_t partition) const;
  // Makes its frames, if it is to have any and has none yet.
  void Encode(OpenPush& push, uint32_t partition);
  // The same of all partitions that have not been sent.
  void EncodeUnsent(OpenPush& push);
  // REQUIRES: Encode.
  Lease PayloadOf(const OpenPush& push, uint32_t partition);
  // Nobody wants its frames any more.
  void LetGo(OpenPush& push, uint32_t partition);

  // With `auto`: it is about to leave; it has arrived.
  void OnSending(OpenPush& push, uint32_t partition, absl::Time now);
  void OnArrived(OpenPush& push, uint32_t partition, absl::Time now);
  // Nothing is learned of its next answer: it is not known which sending that answers.
  void Forget(PartitionPush& part);
  // Nothing more is heard of what is on its way.
  void RestartLinks();
  // A probe is not answered: nothing else is to leave.
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
