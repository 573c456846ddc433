// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_checks.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/median.h"
#include "coordinator/observe/progress_line.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using enum FindingLevel;
using MaybeVerdict = std::optional<CheckVerdict>;

constexpr double kTightMemory = 0.8;
constexpr uint64_t kLockedBytes = uint64_t{64} << 20;
constexpr uint64_t kUsualOpenFiles = 1024;
constexpr uint64_t kNcclSharedBytes = uint64_t{1} << 30;
constexpr uint64_t kCacheBytes = uint64_t{512} << 20;
constexpr uint64_t kTightDisk = 2;  // multiple of the required bytes

std::string Bytes(uint64_t bytes) { return ByteText(static_cast<double>(bytes)); }

std::string Limit(uint64_t limit, bool bytes) {
  if (limit == kNoLimit) return "no limit";
  return bytes ? Bytes(limit) : std::to_string(limit);
}

MaybeVerdict JudgeCores(const HostFacts& facts, const HostNeeds& needs) {
  if (!needs.has_job) return CheckVerdict{kOk, absl::StrCat(facts.cores, " cores")};
  const FindingLevel level = needs.compute_threads > facts.cores ? kWarning : kOk;
  return CheckVerdict{
      level, absl::StrCat(needs.compute_threads, " compute threads (servers: ", needs.servers,
                          ", workers: ", needs.workers, "), ", facts.cores, " cores")};
}

MaybeVerdict JudgeMemory(const HostFacts& facts, const HostNeeds& needs) {
  if (needs.memory_bytes == 0) {
    return CheckVerdict{
        kOk, absl::StrCat(Bytes(facts.free_memory_bytes), " free of ", Bytes(facts.memory_bytes))};
  }
  const auto free = static_cast<double>(facts.free_memory_bytes);
  const auto needed = static_cast<double>(needs.memory_bytes);
  const FindingLevel level = needed > free                  ? kProblem
                             : needed > kTightMemory * free ? kWarning
                                                            : kOk;
  return CheckVerdict{level, absl::StrCat(Bytes(needs.memory_bytes), " needed, ",
                                          Bytes(facts.free_memory_bytes), " free")};
}

MaybeVerdict JudgeGpu(const HostFacts& facts, const HostNeeds& needs) {
  const auto& gpus = facts.gpus;
  if (!gpus.names.empty()) {
    return CheckVerdict{kOk,
                        absl::StrCat(absl::StrJoin(gpus.names, ", "), ", driver ", facts.driver)};
  }
  if (needs.wants_gpu) return CheckVerdict{kProblem, gpus.none_because};
  if (facts.driver.empty()) return std::nullopt;
  return CheckVerdict{kWarning, absl::StrCat("driver ", facts.driver, ", but ", gpus.none_because)};
}

MaybeVerdict JudgeNccl(const HostFacts& facts, const HostNeeds&) {
  if (facts.gpus.names.size() < 2) return std::nullopt;
  if (facts.nccl.empty()) return CheckVerdict{kProblem, "libnccl.so.2 is not found"};
  return CheckVerdict{kOk, absl::StrCat("NCCL ", facts.nccl)};
}

MaybeVerdict JudgeLockedMemory(const HostFacts& facts, const HostNeeds&) {
  if (facts.gpus.names.empty()) return std::nullopt;
  return CheckVerdict{facts.locked_limit_bytes < kLockedBytes ? kWarning : kOk,
                      Limit(facts.locked_limit_bytes, true)};
}

MaybeVerdict JudgeOpenFiles(const HostFacts& facts, const HostNeeds& needs) {
  const uint64_t wanted = needs.has_job ? needs.open_files : kUsualOpenFiles;
  return CheckVerdict{facts.open_files_limit < wanted ? kProblem : kOk,
                      absl::StrCat(Limit(facts.open_files_limit, false), ", ", wanted, " needed")};
}

MaybeVerdict JudgeSharedMemory(const HostFacts& facts, const HostNeeds&) {
  if (facts.gpus.names.size() < 2) return std::nullopt;
  return CheckVerdict{facts.shared_memory_bytes < kNcclSharedBytes ? kWarning : kOk,
                      absl::StrCat("/dev/shm has ", Bytes(facts.shared_memory_bytes))};
}

MaybeVerdict JudgeLogins(const HostFacts& facts, const HostNeeds& needs) {
  if (!needs.has_job || !needs.by_login || facts.logins_at_once == 0) return std::nullopt;
  return CheckVerdict{
      needs.processes() > facts.logins_at_once ? kWarning : kOk,
      absl::StrCat(needs.processes(), " concurrent logins, sshd may refuse some from ",
                   facts.logins_at_once, " on (MaxStartups)")};
}

MaybeVerdict JudgeRunFolder(const HostFacts& facts, const HostNeeds& needs) {
  if (!facts.run.has_value() || !needs.keeps_run()) return std::nullopt;
  const FolderFacts& run = *facts.run;
  if (!run.error.empty()) return CheckVerdict{kProblem, run.error};
  if (run.there == run.path) return CheckVerdict{kOk, absl::StrCat(run.path, " is writable")};
  return CheckVerdict{kOk, absl::StrCat(run.path, " can be created in ", run.there)};
}

MaybeVerdict JudgeDisk(const HostFacts& facts, const HostNeeds& needs) {
  if (!facts.run.has_value() || !needs.keeps_run()) return std::nullopt;
  const uint64_t free = facts.run->free_bytes;
  const FindingLevel level = free < needs.disk_bytes                ? kProblem
                             : free / kTightDisk < needs.disk_bytes ? kWarning
                                                                    : kOk;
  std::string what = absl::StrCat(Bytes(free), " free in ", facts.run->there);
  if (needs.disk_bytes > 0) {
    absl::StrAppend(&what, ", ", Bytes(needs.disk_bytes), " needed for checkpoints");
  }
  return CheckVerdict{level, std::move(what)};
}

MaybeVerdict JudgeCache(const HostFacts& facts, const HostNeeds& needs) {
  if (!needs.by_login) return std::nullopt;
  const FolderFacts& cache = facts.cache;
  if (!cache.error.empty()) return CheckVerdict{kWarning, cache.error};
  return CheckVerdict{cache.free_bytes < kCacheBytes ? kWarning : kOk,
                      absl::StrCat(Bytes(cache.free_bytes), " free in ", cache.there)};
}

MaybeVerdict JudgeText(const HostFacts& facts, const HostNeeds& needs) {
  if (!facts.text.has_value() || (needs.workers == 0 && !needs.coordinates)) return std::nullopt;
  if (!facts.text->error.empty()) return CheckVerdict{kProblem, facts.text->error};
  return CheckVerdict{kOk, absl::StrCat(facts.text->path, ", ", Bytes(facts.text->bytes))};
}

constexpr HostCheck kHostChecks[] = {
    {"cores",
     "run fewer processes here (slots=N, cluster.workers), or lower cluster.compute_threads",
     JudgeCores},
    {"memory",
     "run fewer processes here (slots=N), lower train.micro_batch, or set train.recompute, or "
     "placement.kind to ZERO2 or ZERO3",
     JudgeMemory},
    {"GPU",
     "install NVIDIA's driver and a build with CUDA (deploy/bundle FILE --config=cuda), or set "
     "device=CPU",
     JudgeGpu},
    {"NCCL", "install NCCL (package libnccl2), or give each worker one GPU (tug worker --gpu N)",
     JudgeNccl},
    {"locked memory", "add `* - memlock unlimited` to /etc/security/limits.conf and log in again",
     JudgeLockedMemory},
    {"open files", "add `* - nofile 1048576` to /etc/security/limits.conf and log in again",
     JudgeOpenFiles},
    {"/dev/shm",
     "run mount -o remount,size=2g /dev/shm; in a container, use --shm-size or mount an emptyDir "
     "of medium Memory",
     JudgeSharedMemory},
    {"MaxStartups", "raise MaxStartups in sshd_config; else `tug launch` retries and takes longer",
     JudgeLogins},
    {"run folder",
     "mount the shared storage, create the folder, or pass another one with --run-dir",
     JudgeRunFolder},
    {"disk", "free disk space, lower checkpoint.keep, or pass another --run-dir", JudgeDisk},
    {"cache",
     "delete old folders there, or install tug on the hosts and pass its path with --program",
     JudgeCache},
    {"text", "copy the text to data.path on this host, or put it on shared storage", JudgeText},
};

MaybeVerdict TwinVersion(const CheckedHost& first, const CheckedHost& other) {
  if (first.facts.glibc == other.facts.glibc) return std::nullopt;
  return CheckVerdict{kWarning, absl::StrCat("glibc ", other.facts.glibc, ", ", first.name, " has ",
                                             first.facts.glibc)};
}

MaybeVerdict TwinInstructions(const CheckedHost& first, const CheckedHost& other) {
  if (first.facts.instructions == other.facts.instructions) return std::nullopt;
  return CheckVerdict{kWarning, absl::StrCat("uses ", other.facts.instructions, ", ", first.name,
                                             " uses ", first.facts.instructions)};
}

MaybeVerdict TwinText(const CheckedHost& first, const CheckedHost& other) {
  const auto& one = first.facts.text;
  const auto& two = other.facts.text;
  if (!one.has_value() || !two.has_value() || !one->error.empty() || !two->error.empty()) {
    return std::nullopt;
  }
  if (one->bytes == two->bytes && one->hash == two->hash) return std::nullopt;
  return CheckVerdict{kProblem, absl::StrCat("content differs from that on ", first.name, " (",
                                             Bytes(two->bytes), " and ", Bytes(one->bytes), ")")};
}

constexpr TwinCheck kTwinChecks[] = {
    {"glibc",
     "install the same distribution release on all hosts; else the last bits of results may differ "
     "from run to run",
     TwinVersion},
    {"instructions",
     "use hosts with the same CPU type; else the last bits of results depend on which host "
     "computes what",
     TwinInstructions},
    {"same text", "copy the same text to all hosts", TwinText},
};

bool ReadsText(const CheckedHost& host) { return host.needs.workers > 0 || host.needs.coordinates; }

Finding FindingOf(const std::string& thing, const char* check, const char* remedy,
                  CheckVerdict verdict) {
  return {verdict.level, thing, check, std::move(verdict.what), verdict.level == kOk ? "" : remedy};
}

std::string Rate(double bytes_per_second) {
  return absl::StrFormat("%.3g Gbit/s", bytes_per_second * 8e-9);
}

// One direction of a link.
struct Way {
  std::string name;
  double bytes_per_second;
};

std::vector<Way> WaysOf(std::span<const CheckedLink> links) {
  std::vector<Way> ways;
  for (const CheckedLink& link : links) {
    ways.push_back({absl::StrCat(link.from, " -> ", link.to), link.report.there_bytes_per_second});
    ways.push_back({absl::StrCat(link.to, " -> ", link.from), link.report.back_bytes_per_second});
  }
  return ways;
}

void CheckBandwidth(std::span<const CheckedLink> links, uint64_t exchanged_bytes,
                    std::vector<Finding>& findings) {
  const std::vector<Way> ways = WaysOf(links);
  std::vector<double> rates;
  for (const Way& way : ways) rates.push_back(way.bytes_per_second);
  const double median = Median(rates);
  for (const Way& way : ways) {
    CheckVerdict verdict{kOk, Rate(way.bytes_per_second)};
    if (way.bytes_per_second < kSlowLink * median) {
      verdict.level = kWarning;
      absl::StrAppend(&verdict.what, ", the median of all links is ", Rate(median));
    }
    if (exchanged_bytes > 0 && way.bytes_per_second > 0) {
      absl::StrAppendFormat(&verdict.what, "; a worker's %s per step take %.2f s",
                            Bytes(exchanged_bytes),
                            static_cast<double>(exchanged_bytes) / way.bytes_per_second);
    }
    findings.push_back(FindingOf(way.name, kLinkCheck,
                                 "check cable, port and interface of that host (ethtool), or "
                                 "choose another interface with interface=NAME",
                                 std::move(verdict)));
  }
}

}  // namespace

std::span<const HostCheck> HostChecks() { return kHostChecks; }
std::span<const TwinCheck> TwinChecks() { return kTwinChecks; }

std::vector<Finding> CheckHosts(std::span<const CheckedHost> hosts) {
  std::vector<Finding> findings;
  for (const CheckedHost& host : hosts) {
    for (const HostCheck& check : kHostChecks) {
      if (auto verdict = check.judge(host.facts, host.needs)) {
        findings.push_back(FindingOf(host.name, check.name, check.remedy, *std::move(verdict)));
      }
    }
  }
  for (const TwinCheck& check : kTwinChecks) {
    const bool of_text = check.judge == TwinText;
    const CheckedHost* first = nullptr;
    for (const CheckedHost& host : hosts) {
      if (of_text && host.needs.has_job && !ReadsText(host)) continue;
      if (first == nullptr) {
        first = &host;
      } else if (auto verdict = check.judge(*first, host)) {
        findings.push_back(FindingOf(host.name, check.name, check.remedy, *std::move(verdict)));
      }
    }
  }
  return findings;
}

std::vector<Finding> CheckLinks(std::span<const CheckedLink> links, uint64_t exchanged_bytes) {
  std::vector<Finding> findings;
  if (links.empty()) return findings;
  CheckBandwidth(links, exchanged_bytes, findings);
  for (const CheckedLink& link : links) {
    const std::string name = absl::StrCat(link.from, " <-> ", link.to);
    const double round_trip = link.report.round_trip_us;
    findings.push_back(FindingOf(
        name, kLatencyCheck,
        "use hosts on the same network, or set sync.local_steps to communicate less often",
        {round_trip > kSlowRoundTrip_us ? kWarning : kOk,
         absl::StrFormat("a round trip takes %.0f us", round_trip)}));
    const int64_t apart = std::abs(link.report.clock_ahead_ns);
    const bool surely = apart - link.report.clock_error_ns > kClockApart_ns;
    findings.push_back(
        FindingOf(name, kClockCheck, "synchronize both clocks by NTP (apt install chrony)",
                  {surely ? kWarning : kOk,
                   absl::StrFormat("%s is %.3f ms %s (within %.3f ms)", link.to,
                                   static_cast<double>(apart) * 1e-6,
                                   link.report.clock_ahead_ns < 0 ? "behind" : "ahead",
                                   static_cast<double>(link.report.clock_error_ns) * 1e-6)}));
  }
  return findings;
}

namespace {

const char* NameOf(FindingLevel level) {
  if (level == kOk) return "ok";
  return level == kWarning ? "warning" : "problem";
}

}  // namespace

std::string FindingsText(std::span<const Finding> findings) {
  size_t thing = 0, check = 0;
  std::map<FindingLevel, int> counts;
  for (const Finding& finding : findings) {
    thing = std::max(thing, finding.thing.size());
    check = std::max(check, finding.check.size());
    ++counts[finding.level];
  }
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&text, "%-7s  %-*s  %-*s  %s%s%s\n", NameOf(finding.level),
                          static_cast<int>(thing), finding.thing, static_cast<int>(check),
                          finding.check, finding.what,
                          finding.remedy.empty() ? "" : "; remedy: ", finding.remedy);
  }
  absl::StrAppend(&text, counts[kProblem], counts[kProblem] == 1 ? " problem, " : " problems, ",
                  counts[kWarning], counts[kWarning] == 1 ? " warning, " : " warnings, ",
                  counts[kOk], " ok\n");
  return text;
}

nlohmann::json ToJson(std::span<const Finding> findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"level", NameOf(finding.level)},
                    {"thing", finding.thing},
                    {"check", finding.check},
                    {"what", finding.what},
                    {"remedy", finding.remedy}});
  }
  return list;
}

}  // namespace tug
