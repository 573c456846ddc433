// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/view_change.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "coordinator/placement/placement.h"

namespace tug {

ViewChange::ViewChange(const Options& options)
    : options_(options),
      owners_(options.virtual_workers, kNobody),
      start_clocks_(options.virtual_workers, 0) {
  TUG_CHECK(options.virtual_workers > 0 && options.workers > 0);
}

void ViewChange::BeginTimeline(std::span<const uint32_t> workers,
                               std::span<const uint32_t> servers) {
  TUG_CHECK(!workers.empty());
  ++number_;
  fencing_ = settled_ = reassign_all_ = false;
  servers_.assign(servers.begin(), servers.end());
  workers_.assign(workers.begin(), workers.end());
  lost_.clear();
  carried_.clear();
  const auto runs =
      AssignVirtualWorkers(options_.virtual_workers, static_cast<uint32_t>(workers.size()));
  for (size_t i = 0; i < workers.size(); ++i) {
    for (const uint32_t virtual_worker : runs[i]) owners_[virtual_worker] = workers[i];
    carried_[workers[i]].insert(runs[i].begin(), runs[i].end());
  }
}

void ViewChange::SetWorkers(std::span<const uint32_t> workers, bool reassign_all) {
  const bool same = std::ranges::equal(workers, workers_);
  const bool idle = std::ranges::find(owners_, kNobody) != owners_.end();
  const bool take_all = reassign_all && !reassign_all_ && (idle || fencing_);
  reassign_all_ = reassign_all;
  if (same && !take_all) return;
  for (const uint32_t worker : workers_) {
    if (std::ranges::find(workers, worker) != workers.end()) continue;
    const std::set<uint32_t>& carried = carried_[worker];
    lost_.insert(carried.begin(), carried.end());
  }
  workers_.assign(workers.begin(), workers.end());
  Begin();
}

void ViewChange::SetWanted(uint32_t workers) {
  TUG_CHECK_GE(workers, 1u);
  if (workers == options_.workers) return;
  options_.workers = workers;
  // WAIT may now have as many workers as wanted, and assigns the orphans.
  if (std::ranges::find(owners_, kNobody) != owners_.end()) Begin();
}

void ViewChange::SetServers(std::span<const uint32_t> servers) {
  TUG_CHECK(!servers.empty());
  servers_.assign(servers.begin(), servers.end());
  Begin();
}

void ViewChange::Begin() {
  ++number_;
  fencing_ = true;
  settled_ = false;
  clocks_.clear();
}

void ViewChange::AddClocks(uint32_t server, uint32_t number, std::span<const uint64_t> clocks) {
  const bool known = std::ranges::find(servers_, server) != servers_.end();
  if (!fencing_ || !known || number != number_ || clocks.size() != options_.virtual_workers) return;
  clocks_[server].assign(clocks.begin(), clocks.end());
  if (clocks_.size() == servers_.size()) Settle();
}

void ViewChange::Settle() {
  fencing_ = false;
  settled_ = true;
  start_clocks_.assign(options_.virtual_workers, std::numeric_limits<uint64_t>::max());
  for (const auto& [server, clocks] : clocks_) {
    for (size_t v = 0; v < clocks.size(); ++v) {
      start_clocks_[v] = std::min(start_clocks_[v], clocks[v]);
    }
  }
  for (uint32_t& owner : owners_) {
    if (!Stays(owner) && (workers_.empty() || !leaving_.contains(owner))) owner = kNobody;
  }
  if (workers_.empty()) return;
  // Orphans first: a joined worker takes over those of a lost worker, which others may not get.
  GiveOrphans();
  TakeFromLeavers();
  Balance();
  for (uint32_t v = 0; v < options_.virtual_workers; ++v) {
    if (owners_[v] != kNobody) carried_[owners_[v]].insert(v);
  }
}

bool ViewChange::Stays(uint32_t worker) const {
  return std::ranges::find(workers_, worker) != workers_.end();
}

void ViewChange::TakeFromLeavers() {
  for (uint32_t& owner : owners_) {
    if (owner != kNobody && !Stays(owner)) owner = WithFewest(workers_);
  }
}

void ViewChange::GiveOrphans() {
  const FaultConfig::WorkerLoss policy = options_.on_worker_loss;
  // With WAIT, a joined worker may have taken over from one that left, before all had joined.
  const bool all_there = policy == FaultConfig::WAIT && workers_.size() >= options_.workers;
  const bool to_all =
      reassign_all_ || all_there || (policy != FaultConfig::WAIT && policy != FaultConfig::SHRINK);
  const uint32_t share = (options_.virtual_workers + options_.workers - 1) / options_.workers;
  std::vector<uint32_t> takers;
  for (const uint32_t worker : workers_) {
    if (to_all || CountOf(worker) == 0) takers.push_back(worker);
  }
  for (uint32_t& owner : owners_) {
    if (owner != kNobody || takers.empty()) continue;
    const uint32_t to = WithFewest(takers);
    if (to_all || CountOf(to) < share) owner = to;
  }
}

// Moves virtual workers to those with fewest, such as joined ones: the last ones of the worker with
// most.
void ViewChange::Balance() {
  while (CountOf(WithMost()) > CountOf(WithFewest(workers_)) + 1) {
    const uint32_t from = WithMost();
    const auto last = std::find(owners_.rbegin(), owners_.rend(), from);
    *last = WithFewest(workers_);
  }
}

uint32_t ViewChange::CountOf(uint32_t worker) const {
  return static_cast<uint32_t>(std::ranges::count(owners_, worker));
}

uint32_t ViewChange::WithFewest(std::span<const uint32_t> workers) const {
  return *std::ranges::min_element(workers,
                                   [&](uint32_t a, uint32_t b) { return CountOf(a) < CountOf(b); });
}

uint32_t ViewChange::WithMost() const {
  return *std::ranges::max_element(workers_,
                                   [&](uint32_t a, uint32_t b) { return CountOf(a) < CountOf(b); });
}

bool ViewChange::TakeSettled() { return std::exchange(settled_, false); }

// Keeps orphans in lost_: a step of which servers have all pushes may end while one of its virtual
// workers has no owner.
std::set<uint32_t> ViewChange::TakeLost() {
  std::set<uint32_t> lost = lost_;
  std::erase_if(lost_, [this](uint32_t v) { return owners_[v] != kNobody; });
  return lost;
}

}  // namespace tug
