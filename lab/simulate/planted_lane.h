// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_PLANTED_LANE_H_
#define TUG_LAB_SIMULATE_PLANTED_LANE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "lab/simulate/planted_bug.h"
#include "proto/wire.h"
#include "server/sync/sync_policy.h"
#include "transport/transport.h"

namespace tug {

// Changes that a planted bug makes to a lane's messages. kNone: no changes.
class PlantedLane {
 public:
  explicit PlantedLane(PlantedBug bug = PlantedBug::kNone) : bug_(bug) {}

  // Changes a message before it is delivered to the lane, which is in this timeline and view.
  void Change(uint32_t timeline, uint32_t view, WireHeader& header) const;
  // The lane has sent a message.
  void NoteSent(const WireHeader& header);
  // Whether an arrived message is withheld from the lane, as if it had forgotten it.
  bool Forgets(const WireHeader& header);
  // A forged answer to a message that the lane sends.
  std::optional<Message> Forged(const Outgoing& sent) const;

 private:
  // Identity of a push: view, block, first segment, virtual worker, clock.
  using PushName = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
  static PushName NameOf(const WireHeader& push) {
    return {push.view, push.block, push.first_segment, push.virtual_worker, push.clock};
  }

  PlantedBug bug_;
  uint64_t pulls_ = 0;
  std::set<PushName> received_;
};

// Changes that a planted bug makes to a worker's messages.
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

// Replaces the policy if the bug requires it.
std::unique_ptr<const SyncPolicy> PlantedPolicy(PlantedBug bug,
                                                std::unique_ptr<const SyncPolicy> policy);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_PLANTED_LANE_H_
