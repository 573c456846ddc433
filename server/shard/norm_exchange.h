// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_NORM_EXCHANGE_H_
#define TUG_SERVER_SHARD_NORM_EXCHANGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "server/shard/own_segments.h"
#include "server/shard/shard_context.h"
#include "server/sums/norm_ledger.h"
#include "transport/transport.h"

namespace tug {

// Exchanges norms between lanes (norm_ledger.h): sends this lane's norms to the lanes that need
// them, and requests missing ones. Not thread-safe: owned by one lane.
class NormExchange {
 public:
  // A scope for which all norms have arrived.
  using Complete = std::optional<uint32_t>;

  // REQUIRES: `context` outlives it.
  NormExchange(ShardContext& context, NormLedger::Scope scope);

  // The sum of an own segment is complete at `version`. A segment ahead of its scope is ignored:
  // add it again once the scope has closed its clock.
  Complete Add(uint32_t segment, uint64_t version, const NormEntry& entry);
  // kNorms.
  Complete OnNorms(const Message& message);
  void OnNormsWanted(const WireHeader& header);
  void OnTick();
  // Lanes enter a view one by one, and refuse each other's messages meanwhile. The later one of two
  // resends what the other may have missed, and requests the rest.
  void EnterView();
  // See NormLedger::RecoverState. `held`: the segments of `own`.
  bool RecoverState(const OwnSegments& own, std::span<const HeldSegment> held);

  // Ends the clock of a complete scope.
  struct Closed {
    uint64_t clock = 0;
    std::vector<uint32_t> segments;  // own segments
    NormVerdict verdict;
  };
  Closed Close(uint32_t scope);

 private:
  void Send(uint32_t scope, uint64_t clock, uint32_t to_lane);
  void Ask(uint32_t scope);
  std::vector<uint32_t> Scopes() const;
  Complete IfComplete(uint32_t scope) const;

  ShardContext& context_;
  NormLedger ledger_;
  absl::Time asked_at_ = absl::InfinitePast();
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_NORM_EXCHANGE_H_
