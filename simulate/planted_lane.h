#ifndef TUG_SIMULATE_PLANTED_LANE_H_
#define TUG_SIMULATE_PLANTED_LANE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "proto/wire.h"
#include "server/sync_policy.h"
#include "simulate/planted_bug.h"
#include "transport/transport.h"

namespace tug {

// What a planted bug makes of a lane's messages. With kNone all stays as it is.
class PlantedLane {
 public:
  explicit PlantedLane(PlantedBug bug = PlantedBug::kNone) : bug_(bug) {}

  // Changes a message before the lane, which is in this timeline and view, sees it.
  void Change(uint32_t timeline, uint32_t view, WireHeader& header) const;
  // The lane says something.
  void NoteSent(const WireHeader& header);
  // Whether the lane never sees a message that has arrived: as if it had forgotten it.
  bool Forgets(const WireHeader& header);
  // An answer to what the lane sends that nobody has given.
  std::optional<Message> Forged(const Outgoing& sent) const;

 private:
  // What tells pushes apart: view, block, first segment, virtual worker, clock.
  using PushName = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
  static PushName NameOf(const WireHeader& push) {
    return {push.view, push.block, push.first_segment, push.virtual_worker, push.clock};
  }

  PlantedBug bug_;
  uint64_t pulls_ = 0;
  std::set<PushName> received_;
};

// What a planted bug makes of a worker's messages.
class PlantedWorker {
 public:
  explicit PlantedWorker(PlantedBug bug = PlantedBug::kNone) : bug_(bug) {}

  // Changes a message before it is sent.
  void Change(Outgoing& message);

 private:
  PlantedBug bug_;
  // Encoded pushes that were sent: block, first segment, virtual worker, clock.
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>> sent_;
};

// The policy that the bug puts in place of the one that there is.
std::unique_ptr<const SyncPolicy> PlantedPolicy(PlantedBug bug,
                                                std::unique_ptr<const SyncPolicy> policy);

}  // namespace tug

#endif  // TUG_SIMULATE_PLANTED_LANE_H_
