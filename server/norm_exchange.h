#ifndef TUG_SERVER_NORM_EXCHANGE_H_
#define TUG_SERVER_NORM_EXCHANGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "server/norm_ledger.h"
#include "server/own_segments.h"
#include "server/shard_context.h"
#include "transport/transport.h"

namespace tug {

// The messages with which lanes agree on norms (norm_ledger.h): each sends its own to those that
// need them, and asks for what does not come. Not thread-safe: owned by one lane.
class NormExchange {
 public:
  // A scope of segments whose norms are all here.
  using Complete = std::optional<uint32_t>;

  // REQUIRES: `context` outlives it.
  NormExchange(ShardContext& context, NormLedger::Scope scope);

  // An own segment is summed at `version`; one that is further than others of its scope waits for
  // these.
  Complete Add(uint32_t segment, uint64_t version, const NormEntry& entry);
  // kNorms.
  Complete OnNorms(const Message& message);
  void OnNormsWanted(const WireHeader& header);
  void OnTick();
  // Lanes come to a new view one after the other, and what they sent each other meanwhile was
  // refused on one side: the later one of two sends again what the other may lack, and asks for the
  // rest.
  void EnterView();
  // As NormLedger::TakeUp. `held`: of `own`.
  bool TakeUp(const OwnSegments& own, std::span<const HeldSegment> held);

  // Ends the clock of a complete scope.
  struct Closed {
    uint64_t clock = 0;
    std::vector<uint32_t> segments;  // own ones
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

#endif  // TUG_SERVER_NORM_EXCHANGE_H_
