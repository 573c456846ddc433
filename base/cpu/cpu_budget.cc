// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/cpu_budget.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tug {
namespace {

constexpr int kCoresPerLane = 8;
constexpr int kMaxDefaultLanes = 8;

int Count(const CpuBudget& budget) { return static_cast<int>(budget.cores.size()); }

// Whether the process may use all time of its cores: no quota applies.
bool Ours(const CpuBudget& budget) {
  return !budget.cores.empty() && budget.usable == Count(budget);
}

// Whether each of `busy` threads gets a core of its own.
bool PinsToCores(const CpuBudget& budget, int busy) {
  return Ours(budget) && busy <= Count(budget) && 2 * busy > Count(budget);
}

std::map<int, CoreList> ByNode(const CpuBudget& budget) {
  std::map<int, CoreList> nodes;
  for (const Core& core : budget.cores) nodes[core.node].push_back(core.number);
  return nodes;
}

// Takes `count` cores off the nodes: all from one if it has enough, the node with most free cores
// first.
CoreList TakeCores(std::map<int, CoreList>& free, int count) {
  CoreList taken;
  while (static_cast<int>(taken.size()) < count) {
    const auto node = std::max_element(free.begin(), free.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    CoreList& cores = node->second;
    TUG_CHECK(!cores.empty());
    const ptrdiff_t take =
        std::min<ptrdiff_t>(std::ssize(cores), count - static_cast<ptrdiff_t>(taken.size()));
    taken.insert(taken.end(), cores.begin(), cores.begin() + take);
    cores.erase(cores.begin(), cores.begin() + take);
  }
  return taken;
}

// "1 lane", "2 lanes"
std::string Some(int count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

int DefaultLanesPerServer(int cores, int servers) {
  return std::clamp(cores / (kCoresPerLane * std::max(servers, 1)), 1, kMaxDefaultLanes);
}

int DefaultLanesBesideGpus(int cores, int servers, int workers) {
  const int left = cores - workers * (kGpuComputeThreads + 1);  // and an exchange thread per worker
  return std::clamp(left / std::max(servers, 1), 1, kMaxDefaultLanes);
}

int DefaultComputeThreads(int cores, const HostLoad& load) {
  const int workers = std::max(load.workers, 1);
  for (const int set_aside : {load.lanes() + workers, load.lanes()}) {
    const int threads = std::max(cores - set_aside, 0) / workers;
    if (4 * threads * workers >= 3 * cores) return threads;
  }
  return std::max(cores / workers, 1);
}

HostPlan DivideHost(const CpuBudget& host, const HostLoad& load) {
  const int busy = load.busy_threads();
  HostPlan plan;
  plan.may_pin = Ours(host) && busy <= Count(host);
  plan.servers.resize(static_cast<size_t>(load.servers));
  plan.workers.resize(static_cast<size_t>(load.workers));
  if (!PinsToCores(host, busy)) return plan;
  std::map<int, CoreList> free = ByNode(host);
  const auto share = [&](int threads) { return TakeCores(free, threads * Count(host) / busy); };
  for (CoreList& worker : plan.workers) worker = share(load.compute_threads + 1);
  for (CoreList& server : plan.servers) server = share(load.lanes_per_server);
  return plan;
}

std::vector<LaneCores> PlanServer(const CpuBudget& own, int lanes) {
  std::vector<LaneCores> plan(static_cast<size_t>(lanes));
  if (!Ours(own) || lanes > Count(own)) return plan;
  if (PinsToCores(own, lanes)) {
    for (size_t i = 0; i < plan.size(); ++i) {
      const size_t spare = plan.size() + i;
      plan[i].lane = {own.cores[i].number};
      plan[i].io = {own.cores[spare < own.cores.size() ? spare : i].number};
    }
    return plan;
  }
  const std::map<int, CoreList> nodes = ByNode(own);
  if (nodes.size() == 1) return plan;
  auto node = nodes.begin();
  for (LaneCores& lane : plan) {
    lane = {node->second, node->second};
    if (++node == nodes.end()) node = nodes.begin();
  }
  return plan;
}

WorkerCores PlanWorker(const CpuBudget& own, int compute_threads) {
  WorkerCores plan;
  plan.compute.resize(static_cast<size_t>(compute_threads));
  if (!PinsToCores(own, compute_threads + 1)) return plan;
  const size_t exchange = plan.compute.size();
  for (size_t i = 0; i < exchange; ++i) plan.compute[i] = {own.cores[i].number};
  plan.exchange = {own.cores[exchange].number};
  plan.io = {own.cores[std::min(exchange + 1, own.cores.size() - 1)].number};
  return plan;
}

std::string PlanText(const CpuBudget& host, const HostLoad& load, bool pin_threads) {
  const int busy = load.busy_threads();
  return absl::StrCat(Some(host.usable, "core"), ": ", Some(load.lanes_per_server, "lane"),
                      " per server, ", Some(load.compute_threads, "compute thread"),
                      " per worker, ",
                      pin_threads && PinsToCores(host, busy) ? "pinned" : "not pinned", " (",
                      Some(busy, "busy thread"), ")");
}

}  // namespace tug
