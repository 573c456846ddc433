#ifndef TUG_SERVER_SHARD_COPIES_H_
#define TUG_SERVER_SHARD_COPIES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "base/lease.h"
#include "exchange/send_buffers.h"
#include "server/copy_payload.h"
#include "server/copy_store.h"
#include "server/own_segments.h"
#include "server/replication.h"
#include "server/shard_context.h"
#include "transport/transport.h"

namespace tug {

// Updates of segments that other lanes copy: what is sent to the copies, and made here once they
// all have it.
class CopiedUpdates {
 public:
  virtual ~CopiedUpdates() = default;

  // What makes version + 1 of the segment, which has been offered. Valid until the next call.
  // `record_flags`: gets those of its OrderRecord.
  virtual SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) = 0;
  // Says in a message with that update whose push it is, where it is of one.
  virtual void NameUpdate(uint32_t segment, WireHeader& header) const = 0;
  // A message holds the update: what it was computed in may be used again.
  virtual void OnUpdateWritten(uint32_t segment) = 0;
  // Makes the version.
  virtual void ApplyOffered(uint32_t segment, const SegmentUpdate& update,
                            uint32_t record_flags) = 0;
  // The next one may be offered.
  virtual void AfterOffered(uint32_t segment) = 0;
};

// Copies (replication.h): of a lane's segments at other lanes, and of others' segments here. Not
// thread-safe: owned by one lane.
class ShardCopies {
 public:
  // REQUIRES: both outlive it.
  ShardCopies(ShardContext& context, OwnSegments& own);

  // Those kept here.
  CopyStore& store() { return store_; }
  const CopyStore& store() const { return store_; }

  // Whether an own segment is copied elsewhere: then updates are offered, not made at once.
  bool replicates() const { return replication_.has_value(); }
  bool under_way(uint32_t segment) const { return replication_->under_way(segment); }
  void Offer(uint32_t segment) { replication_->Offer(segment, context_.now); }
  // Whether all copies of own segments have what these have, and go on to. Once true it stays so.
  bool in_sync() const { return !replicates() || replication_->all_in_sync(); }
  // Does what there is to be done for copies. Last in whatever happens to the shard.
  void Replicate(CopiedUpdates& updates);

  // kUpdate, kCopied, kCopyWanted and kCopy.
  void OnMessage(const Message& message);
  void OnTick();
  void EnterView();
  // Of what copies elsewhere have, nothing is known.
  void AskAll();

 private:
  // An update that is sent to copies.
  struct UnderWay {
    Lease payload;  // of kUpdate; empty until it is sent
    uint32_t record_flags = 0;
  };

  void Send(const Replication::Request& request, CopiedUpdates& updates);
  const Lease& UpdatePayload(uint32_t segment, CopiedUpdates& updates);
  void Apply(uint32_t segment, CopiedUpdates& updates);
  bool OnCopied(const WireHeader& header, uint32_t segment);
  bool TakeForCopy(uint32_t segment, const Message& message);
  void SayCopied(uint32_t segment, uint64_t number);

  ShardContext& context_;
  OwnSegments& own_;
  CopyStore store_;
  std::optional<Replication> replication_;  // with what follows
  std::vector<UnderWay> under_way_;         // by segment
  SendBuffers buffers_;                     // for payloads of kUpdate and kCopy
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_COPIES_H_
