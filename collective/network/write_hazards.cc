// SPDX-License-Identifier: Apache-2.0
#include "collective/network/write_hazards.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace tug {
namespace {

// By rank: last step whose receives into a part are known to be done; -1: none.
using Known = std::vector<int64_t>;

bool Holds(const Transfer& transfer, uint32_t part) {
  return transfer.begin <= part && part < transfer.end;
}

// Tracks one part through the steps of all ranks.
class PartHistory {
 public:
  PartHistory(std::span<const CollectiveSchedule> family, uint32_t part)
      : family_(family), part_(part), known_(family.size()) {
    for (Known& known : known_) known.assign(family.size(), -1);
  }

  void Run(std::vector<std::set<WriteHazard>>& hazards) {
    size_t steps = 0;
    for (const CollectiveSchedule& schedule : family_)
      steps = std::max(steps, schedule.steps.size());
    for (uint32_t step = 0; step < steps; ++step) {
      std::vector<std::pair<uint32_t, Known>> learned;
      for (uint32_t receiver = 0; receiver < family_.size(); ++receiver) {
        Receive(receiver, step, learned, hazards[receiver]);
      }
      for (auto& [receiver, known] : learned) known_[receiver] = std::move(known);
    }
  }

 private:
  void Receive(uint32_t receiver, uint32_t step, std::vector<std::pair<uint32_t, Known>>& learned,
               std::set<WriteHazard>& hazards) const {
    if (step >= family_[receiver].steps.size()) return;
    const std::vector<Transfer>& receives = family_[receiver].steps[step].receives;
    for (uint32_t receive = 0; receive < receives.size(); ++receive) {
      if (!Holds(receives[receive], part_)) continue;
      const Known& arriving = known_[receives[receive].peer];
      AddHazards(receiver, step, receive, arriving, hazards);
      Known known = known_[receiver];
      for (size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], arriving[i]);
      known[receiver] = step;
      learned.emplace_back(receiver, std::move(known));
    }
  }

  void AddHazards(uint32_t rank, uint32_t step, uint32_t receive, const Known& arriving,
                  std::set<WriteHazard>& hazards) const {
    const int64_t last_write = known_[rank][rank];
    for (uint32_t sent = static_cast<uint32_t>(last_write + 1); sent <= step; ++sent) {
      const std::vector<Transfer>& sends = family_[rank].steps[sent].sends;
      for (uint32_t send = 0; send < sends.size(); ++send) {
        if (!Holds(sends[send], part_)) continue;
        if (arriving[sends[send].peer] < sent) hazards.insert({step, receive, sent, send});
      }
    }
  }

  const std::span<const CollectiveSchedule> family_;
  const uint32_t part_;
  std::vector<Known> known_;  // by rank
};

}  // namespace

std::vector<std::vector<WriteHazard>> WriteHazards(std::span<const CollectiveSchedule> family) {
  if (family.empty()) return {};
  std::vector<std::set<WriteHazard>> sorted(family.size());
  for (uint32_t part = 0; part < family[0].parts; ++part) PartHistory(family, part).Run(sorted);
  std::vector<std::vector<WriteHazard>> hazards;
  for (const std::set<WriteHazard>& of_rank : sorted) {
    hazards.emplace_back(of_rank.begin(), of_rank.end());
  }
  return hazards;
}

}  // namespace tug
