// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/cpu_affinity.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tug {
namespace {

// Above the number of cores of any machine: a list that names such a core is malformed.
constexpr int kMaxCores = 1 << 16;

std::vector<int> CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  // Fails on a machine with more than CPU_SETSIZE cores; nothing is pinned there.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

std::optional<std::string> ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::map<int, int> NodeOfCore(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  std::map<int, int> node_of_core;
  const std::vector<int> nodes = ParseCoreList(ReadLine(folder + "online").value_or(""));
  for (const int node : nodes) {
    const std::string list = ReadLine(absl::StrCat(folder, "node", node, "/cpulist")).value_or("");
    for (const int core : ParseCoreList(list)) node_of_core[core] = node;
  }
  return node_of_core;
}

// CPU quota in cores: "200000 100000" is 2. None: no limit ("max", "-1", unreadable).
std::optional<double> Quota(const std::string& quota, const std::string& period) {
  double quota_us = 0, period_us = 0;
  if (!absl::SimpleAtod(quota, &quota_us) || !absl::SimpleAtod(period, &period_us)) {
    return std::nullopt;
  }
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

std::optional<double> QuotaOfFolder(const std::string& folder, bool version_2) {
  if (version_2) {
    const std::string line = ReadLine(folder + "/cpu.max").value_or("");
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    return words.size() == 2 ? Quota(words[0], words[1]) : std::nullopt;
  }
  return Quota(ReadLine(folder + "/cpu.cfs_quota_us").value_or(""),
               ReadLine(folder + "/cpu.cfs_period_us").value_or(""));
}

// Tightest quota of the group and its ancestors.
std::optional<double> QuotaOfGroup(const std::string& hierarchy, std::string group,
                                   bool version_2) {
  std::optional<double> tightest;
  while (true) {
    const std::optional<double> quota = QuotaOfFolder(hierarchy + group, version_2);
    if (quota.has_value()) tightest = std::min(*quota, tightest.value_or(*quota));
    if (group.empty()) return tightest;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

// Lines of /proc/self/cgroup: "0::/group" (version 2), "4:cpu,cpuacct:/group" (version 1).
std::optional<double> QuotaOfThisProcess(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::optional<double> tightest;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool version_2 = parts[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (!version_2 && std::count(controllers.begin(), controllers.end(), "cpu") == 0) continue;
    const std::string hierarchy = root + (version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    const std::string group = parts[2] == "/" ? "" : parts[2];
    const std::optional<double> quota = QuotaOfGroup(hierarchy, group, version_2);
    if (quota.has_value()) tightest = std::min(*quota, tightest.value_or(*quota));
  }
  return tightest;
}

}  // namespace

std::vector<int> ParseCoreList(const std::string& text) {
  std::vector<int> cores;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::vector<std::string> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last >= kMaxCores) {
      return cores;
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

CpuBudget ReadCpuBudget(const std::string& root) {
  CpuBudget budget;
  const std::map<int, int> nodes = NodeOfCore(root);
  for (const int core : CoresOfThisThread()) {
    const auto node = nodes.find(core);
    budget.cores.push_back({core, node == nodes.end() ? 0 : node->second});
  }
  std::stable_sort(budget.cores.begin(), budget.cores.end(),
                   [](const Core& a, const Core& b) { return a.node < b.node; });
  const int count = budget.cores.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                         : static_cast<int>(budget.cores.size());
  const double quota = QuotaOfThisProcess(root).value_or(count);
  budget.usable = std::max(1, static_cast<int>(std::min<double>(count, quota)));
  return budget;
}

bool StayOn(std::span<const int> cores) {
  if (cores.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

StartThreadsOn::StartThreadsOn(std::span<const int> cores) {
  if (cores.empty()) return;
  before_ = CoresOfThisThread();
  StayOn(cores);
}

StartThreadsOn::~StartThreadsOn() { StayOn(before_); }

}  // namespace tug
