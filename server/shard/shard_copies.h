// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_COPIES_H_
#define TUG_SERVER_SHARD_SHARD_COPIES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "server/replication/copy_payload.h"
#include "server/replication/copy_store.h"
#include "server/replication/replication.h"
#include "server/shard/own_segments.h"
#include "server/shard/shard_context.h"
#include "transport/transport.h"

namespace tug {

// Updates of replicated segments: the source of the updates that ShardCopies sends to replicas, and
// applies once all in-sync ones have them.
class CopiedUpdates {
 public:
  virtual ~CopiedUpdates() = default;

  // The update to version + 1 of a segment that was offered; valid until the next call. Sets
  // OrderRecord bits in `record_flags`.
  virtual SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) = 0;
  // Sets the push's identity in a message with that update, if the update is one push.
  virtual void NameUpdate(uint32_t segment, WireHeader& header) const = 0;
  // A message holds a copy of the update, whose memory may be reused.
  virtual void OnUpdateWritten(uint32_t segment) = 0;
  // Applies the update.
  virtual void ApplyOffered(uint32_t segment, const SegmentUpdate& update,
                            uint32_t record_flags) = 0;
  // The update is applied; the next one may be offered.
  virtual void AfterOffered(uint32_t segment) = 0;
};

// Replicas (replication.h): of a lane's segments at other lanes, and of other lanes' segments here.
// Not thread-safe: owned by one lane.
class ShardCopies {
 public:
  // REQUIRES: both outlive it.
  ShardCopies(ShardContext& context, OwnSegments& own);

  // Replicas kept here.
  CopyStore& store() { return store_; }
  const CopyStore& store() const { return store_; }

  // Whether other lanes have replicas of own segments: then updates are offered, not applied at
  // once.
  bool replicates() const { return replication_.has_value(); }
  bool under_way(uint32_t segment) const { return replication_->under_way(segment); }
  void Offer(uint32_t segment) { replication_->Offer(segment, context_.now); }
  // Whether all replicas of own segments are in sync. Once true it stays true.
  bool in_sync() const { return !replicates() || replication_->all_in_sync(); }
  // Sends pending replication requests and applies acknowledged updates. Call last in every entry
  // point.
  void Replicate(CopiedUpdates& updates);

  // kUpdate, kCopied, kCopyWanted and kCopy.
  void OnMessage(const Message& message);
  void OnTick();
  void EnterView();
  // Asks all replicas of own segments for their versions.
  void AskAll();

 private:
  // An update in flight to replicas.
  struct UnderWay {
    Lease payload;  // of kUpdate; empty until it is sent
    uint32_t record_flags = 0;
  };

  void Send(const Replication::Request& request, CopiedUpdates& updates);
  const Lease& UpdatePayload(uint32_t segment, CopiedUpdates& updates);
  void Apply(uint32_t segment, CopiedUpdates& updates);
  bool OnCopied(const WireHeader& header, uint32_t segment);
  bool ApplyToReplica(uint32_t segment, const Message& message);
  void SendCopied(uint32_t segment, uint64_t number);

  ShardContext& context_;
  OwnSegments& own_;
  CopyStore store_;
  std::optional<Replication> replication_;  // none unless own segments have replicas
  std::vector<UnderWay> under_way_;         // by segment
  SendBuffers buffers_;                     // payloads of kUpdate and kCopy
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_COPIES_H_
