// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_DOCTOR_CHECKS_H_
#define TUG_DOCTOR_DOCTOR_CHECKS_H_

// Checks of `tug doctor`: derive findings from facts and measurements, one row per check. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doctor/doctor_facts.h"
#include "doctor/link_probe.h"

namespace tug {

enum class FindingLevel { kOk, kWarning, kProblem };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string thing;   // a host, or "a -> b"
  std::string check;   // name of the check
  std::string what;    // actual state
  std::string remedy;  // what to change; empty if all is well
};

// Requirements of a job on one host.
struct HostNeeds {
  bool has_job = false;  // false: only checks that need no job apply
  bool by_login = true;  // processes are started by ssh; false: on this machine, directly
  bool coordinates = false;
  int servers = 0;
  int workers = 0;
  int compute_threads = 0;    // total of its workers (base/cpu/cpu_budget.h)
  uint64_t memory_bytes = 0;  // predicted; 0: unknown
  uint64_t disk_bytes = 0;    // kept checkpoints plus one
  uint64_t open_files = 0;    // of the process with most
  bool wants_gpu = false;     // device: CUDA, and the host has workers

  int processes() const { return (coordinates ? 1 : 0) + servers + workers; }
  // Whether the host uses the run folder; without a job every host may.
  bool keeps_run() const { return !has_job || coordinates || servers > 0; }
};

struct CheckedHost {
  std::string name;
  HostFacts facts;
  HostNeeds needs;
};

struct CheckVerdict {
  FindingLevel level = FindingLevel::kOk;
  std::string what;
};

// A check of a single host. docs/doctor.md explains its measurement and thresholds.
struct HostCheck {
  const char* name;
  const char* remedy;
  // Nothing: does not apply to this host.
  std::optional<CheckVerdict> (*judge)(const HostFacts& facts, const HostNeeds& needs);
};
std::span<const HostCheck> HostChecks();

// A check of a host against the first one.
struct TwinCheck {
  const char* name;
  const char* remedy;
  std::optional<CheckVerdict> (*judge)(const CheckedHost& first, const CheckedHost& other);
};
std::span<const TwinCheck> TwinChecks();

// Measurement between two hosts; "from" sends the requests.
struct CheckedLink {
  std::string from;
  std::string to;
  LinkReport report;
};

// Applies HostChecks to each host, then TwinChecks to all but the first one (for the text: the
// first host that reads it).
std::vector<Finding> CheckHosts(std::span<const CheckedHost> hosts);

// Names of checks made while connecting, or between hosts.
inline constexpr char kLoginCheck[] = "login";
inline constexpr char kProgramCheck[] = "program";
inline constexpr char kSharedRunCheck[] = "shared run folder";
inline constexpr char kLinkCheck[] = "bandwidth";
inline constexpr char kLatencyCheck[] = "latency";
inline constexpr char kClockCheck[] = "clock";
inline constexpr char kConnectionCheck[] = "connection";

inline constexpr double kSlowLink = 0.5;                // relative to the median of all
inline constexpr double kSlowRoundTrip_us = 5000;       // limit for a local network
inline constexpr int64_t kClockApart_ns = 100'000'000;  // in addition to the measurement error

// Checks bandwidth each way, latency, and clocks. `exchanged_bytes`: per worker and step, each way;
// if known, findings state the resulting time per step. 0: unknown.
std::vector<Finding> CheckLinks(std::span<const CheckedLink> links, uint64_t exchanged_bytes);

// "ok       host  memory  3.1 GB of 7.7 GB needed", one line each, and a last line with counts.
std::string FindingsText(std::span<const Finding> findings);
nlohmann::json ToJson(std::span<const Finding> findings);

}  // namespace tug

#endif  // TUG_DOCTOR_DOCTOR_CHECKS_H_
