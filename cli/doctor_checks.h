#ifndef TUG_CLI_DOCTOR_CHECKS_H_
#define TUG_CLI_DOCTOR_CHECKS_H_

// What `tug doctor` makes of what it has read and measured: one row a check. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/doctor_facts.h"
#include "cli/link_probe.h"

namespace tug {

enum class FindingLevel { kOk, kWarning, kProblem };

struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string thing;   // a host, or "a -> b"
  std::string check;   // its name
  std::string what;    // as it is
  std::string remedy;  // what to change; empty if it is well
};

// What a job is to have on a host.
struct HostNeeds {
  bool has_job = false;  // else only what needs no job is checked
  bool by_login = true;  // processes are started by ssh; else on this machine, without it
  bool coordinates = false;
  int servers = 0;
  int workers = 0;
  int compute_threads = 0;    // of all its workers (base/cpu_budget.h)
  uint64_t memory_bytes = 0;  // by the formulas; 0: none says
  uint64_t disk_bytes = 0;    // of checkpoints that are kept, and one more
  uint64_t open_files = 0;    // of the process that has most
  bool wants_gpu = false;     // device: CUDA, and workers here

  int processes() const { return (coordinates ? 1 : 0) + servers + workers; }
  // The run folder is used by it; without a job, by any host.
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

// A check of one host by itself. What it measures, and what is well: docs/doctor.md.
struct HostCheck {
  const char* name;
  const char* remedy;
  // None: it has nothing to say of this host.
  std::optional<CheckVerdict> (*judge)(const HostFacts& facts, const HostNeeds& needs);
};
std::span<const HostCheck> HostChecks();

// A check of a host beside the first one.
struct TwinCheck {
  const char* name;
  const char* remedy;
  std::optional<CheckVerdict> (*judge)(const CheckedHost& first, const CheckedHost& other);
};
std::span<const TwinCheck> TwinChecks();

// One that is measured between two hosts, "from" asking.
struct CheckedLink {
  std::string from;
  std::string to;
  LinkReport report;
};

// By HostChecks of each, then TwinChecks of all but the first one (of the text: the first that
// reads it).
std::vector<Finding> CheckHosts(std::span<const CheckedHost> hosts);

// Names of checks that are made on the way there, or between hosts.
inline constexpr char kLoginCheck[] = "login";
inline constexpr char kProgramCheck[] = "program";
inline constexpr char kSharedRunCheck[] = "shared run folder";
inline constexpr char kLinkCheck[] = "bandwidth";
inline constexpr char kLatencyCheck[] = "latency";
inline constexpr char kClockCheck[] = "clock";
inline constexpr char kConnectionCheck[] = "connection";

inline constexpr double kSlowLink = 0.5;                // of the median of all
inline constexpr double kSlowRoundTrip_us = 5000;       // of a local network, at most
inline constexpr int64_t kClockApart_ns = 100'000'000;  // beyond what the measurement may err

// Bandwidth each way, latency, and clocks. `exchanged_bytes`: of a worker and step, each way; 0:
// not known; then it is said how long a step would take for it.
std::vector<Finding> CheckLinks(std::span<const CheckedLink> links, uint64_t exchanged_bytes);

// "ok       host  memory  3.1 GB of 7.7 GB needed", a line each, and a last one that counts.
std::string FindingsText(std::span<const Finding> findings);
nlohmann::json ToJson(std::span<const Finding> findings);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_CHECKS_H_
