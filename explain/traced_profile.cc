// SPDX-License-Identifier: Apache-2.0
#include "explain/traced_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/shell_word.h"
#include "base/median.h"
#include "base/status_macros.h"
#include "explain/not_modelled.h"
#include "explain/record_command.h"
#include "explain/traced_spans.h"
#include "nlohmann/json.hpp"
#include "plan/link_rate.h"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr double kSlow = 1.15;  // times the others' compute time: a straggler
// Transfers that measure a link's rate. Shorter pauses are waits for replies. With fewer bytes, the
// burst that an idle link lets through at once would dominate (deploy/testbed, burst).
constexpr double kPauseSeconds = 2e-3;
constexpr double kTellingBytes = 256 << 10;
constexpr double kOwnLinkBitsPerSecond = 1e9;  // of hosts of their own
constexpr double kPercentile = 0.9;

double MedianOver(const std::map<uint64_t, double>& by_step) {
  std::vector<double> values;
  for (const auto& [step, value] : by_step) values.push_back(value);
  return Median(values);
}

// Compute time of a step, by virtual worker.
std::map<uint32_t, double> ComputeSeconds(const TracedSpans& spans) {
  std::map<uint32_t, double> seconds;
  for (const auto& [pass, by_step] : spans.passes) {
    seconds[std::get<0>(pass)] += MedianOver(by_step);
  }
  return seconds;
}

struct Slow {
  uint32_t virtual_worker = 0;
  double slowdown = 1;
};

std::optional<Slow> SlowOne(const std::map<uint32_t, double>& seconds) {
  if (seconds.size() < 2) return std::nullopt;
  const auto slowest =
      std::max_element(seconds.begin(), seconds.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<double> others;
  for (const auto& [virtual_worker, time] : seconds) {
    if (virtual_worker != slowest->first) others.push_back(time);
  }
  const double usual = Median(others);
  if (usual <= 0 || slowest->second < kSlow * usual) return std::nullopt;
  return Slow{slowest->first, slowest->second / usual};
}

// Median time of a pass over all virtual workers except the slow one.
double PassMs(const TracedSpans& spans, const std::string& block, bool backward,
              const std::optional<Slow>& slow) {
  std::vector<double> times;
  for (const auto& [pass, by_step] : spans.passes) {
    const auto& [virtual_worker, of_block, is_backward] = pass;
    if (of_block != block || is_backward != backward) continue;
    if (slow.has_value() && slow->virtual_worker == virtual_worker) continue;
    times.push_back(MedianOver(by_step));
  }
  return Median(times) * 1e3;
}

// Bytes of a block in one pull; 0: none in the trace.
double PulledBytes(const TracedSpans& spans, const std::string& block) {
  const auto found = spans.pulled.find(block);
  if (found == spans.pulled.end()) return 0;
  double most = 0;  // a step at the edge of the trace may be incomplete
  for (const auto& [key, bytes] : found->second) most = std::max(most, bytes);
  return most;
}

// Periods of transfers without a pause.
std::vector<Transfer> BusyTimes(std::vector<Transfer> transfers) {
  std::sort(transfers.begin(), transfers.end(),
            [](const Transfer& a, const Transfer& b) { return a.begin < b.begin; });
  std::vector<Transfer> busy;
  for (const Transfer& next : transfers) {
    if (busy.empty() || next.begin > busy.back().end + kPauseSeconds) {
      busy.push_back(next);
      continue;
    }
    busy.back().end = std::max(busy.back().end, next.end);
    busy.back().bytes += next.bytes;
  }
  return busy;
}

// Rate at or below which kPercentile of the bytes were sent; 0: no period has `telling_bytes`.
double RateOf(std::vector<Transfer> busy, double telling_bytes) {
  std::erase_if(busy, [&](const Transfer& time) {
    return time.bytes < telling_bytes || time.end <= time.begin;
  });
  const auto rate = [](const Transfer& time) { return time.bytes / (time.end - time.begin); };
  std::sort(busy.begin(), busy.end(),
            [&](const Transfer& a, const Transfer& b) { return rate(a) < rate(b); });
  double all = 0, slower = 0;
  for (const Transfer& time : busy) all += time.bytes;
  for (const Transfer& time : busy) {
    slower += time.bytes;
    if (slower >= kPercentile * all) return rate(time);
  }
  return 0;
}

double BusiestRate(const TracedSpans& spans, double telling_bytes) {
  double most = 0;
  for (const auto& [end, transfers] : spans.transfers) {
    most = std::max(most, RateOf(BusyTimes(transfers), telling_bytes));
  }
  return most;
}

// Kinds of nodes on a host.
struct HostRoles {
  bool worker = false;
  bool server = false;
};

std::map<std::string, HostRoles> RolesByHost(const TracedSpans& spans) {
  std::map<std::string, HostRoles> roles;
  for (const auto& [node, host] : spans.hosts) {
    (spans.is_server.at(node) ? roles[host].server : roles[host].worker) = true;
  }
  return roles;
}

void NoteWhatIsMissing(const Json& trace, std::vector<std::string>& notes) {
  const Json& other = trace.at("otherData");
  if (other.value("spans_left_out", uint64_t{0}) == 0 &&
      other.value("events_dropped", uint64_t{0}) == 0 &&
      other.value("nodes_missing", Json::array()).empty()) {
    return;
  }
  notes.push_back(
      "spans are missing in the trace, so sizes and rates may be wrong: trace fewer steps "
      "(--trace-steps A..B)");
}

double RateFor(double bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

// Estimates from a trace; errors for a trace that lacks something.
class Estimate {
 public:
  Estimate(const Json& trace, const TracedRun& run)
      : trace_(trace), run_(run), spans_(ReadSpans(trace)), hosts_(RolesByHost(spans_)) {}

  absl::StatusOr<TracedProfile> Profile() const {
    RETURN_IF_ERROR(CheckModelled());
    TracedProfile traced{.job = run_.config};
    traced.is_replay = run_.config.compute() == JobConfig::REPLAY;
    traced.in_memory = SharesMemory() && hosts_.size() == 1;
    NoteWhatIsMissing(trace_, traced.notes);
    const std::optional<Slow> slow = SlowOne(ComputeSeconds(spans_));
    ASSIGN_OR_RETURN(const ReplayProfile profile, Blocks(slow));
    ASSIGN_OR_RETURN(traced.hosts, Hosts(profile, traced.in_memory));
    if (traced.in_memory) {
      const double known = run_.link_bytes_per_second;
      traced.own_link_bytes_per_second =
          known > 0 ? known : PayloadBytesPerSecond(kOwnLinkBitsPerSecond);
      traced.notes.push_back(absl::StrFormat(
          "all nodes ran on one host: processes that a change adds, or moves to hosts of their "
          "own, "
          "are simulated with cores of their own; links between such hosts carry %.1f MB/s (--link "
          "RATE)",
          traced.own_link_bytes_per_second * 1e-6));
    } else if (hosts_.size() < spans_.hosts.size()) {
      traced.notes.push_back("nodes that share a host are simulated on separate hosts");
    }
    SetReplay(profile, slow, traced);
    RETURN_IF_ERROR(CheckCost(traced));
    return traced;
  }

 private:
  // Whether a worker and a server exchange through the memory of their host.
  bool SharesMemory() const {
    return run_.config.comm().shared_memory() &&
           std::any_of(hosts_.begin(), hosts_.end(), [](const auto& entry) {
             return entry.second.worker && entry.second.server;
           });
  }

  std::string Command(const std::vector<std::string>& sets) const {
    return RecordCommand(run_.folder, run_.config, hosts_.size(), sets);
  }

  absl::Status CheckModelled() const {
    std::vector<std::string> features, sets;
    for (const NotModelled& setting : NotModelledIn(run_.config)) {
      features.emplace_back(setting.feature);
      sets.emplace_back(setting.without);
    }
    if (SharesMemory() && hosts_.size() > 1) {
      features.emplace_back("an exchange partly through memory, partly over links");
      sets.emplace_back("comm.shared_memory=false");
    }
    if (features.empty()) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("no what-if: the simulator does not model ", absl::StrJoin(features, ", "),
                     "; this command records a run without: ", Command(sets)));
  }

  absl::Status Incomplete(const std::string& lack) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "no what-if: the trace has no ", lack, "; this command records another: ", Command({})));
  }

  absl::Status CheckCost(const TracedProfile& traced) const {
    ASSIGN_OR_RETURN(const double chunks, SimulatedChunks(traced.job, traced.hosts));
    if (chunks <= kMaxWhatIfChunks) return absl::OkStatus();
    const CommConfig& comm = run_.config.comm();
    const uint64_t partition = 4 * comm.partition_bytes();
    return absl::UnimplementedError(absl::StrFormat(
        "no what-if: %.1g chunks of messages take too long to simulate (limit %.1g); this command "
        "records a run with larger partitions: %s",
        chunks, kMaxWhatIfChunks,
        Command({absl::StrCat("comm.partition_bytes=", partition),
                 absl::StrCat("comm.credit_bytes=", std::max(comm.credit_bytes(), partition))})));
  }

  // Parameters come from the profile of a replay, else from pulls.
  absl::StatusOr<ReplayProfile> Blocks(const std::optional<Slow>& slow) const {
    const ReplayProfile& ran = run_.config.replay().resolved_profile();
    const int pulled = run_.config.comm().pull_format() == CommConfig::BF16 ? 2 : 4;
    ReplayProfile profile = ran;
    profile.clear_blocks();
    if (profile.name().empty()) profile.set_name(run_.config.name());
    if (profile.batch() == 0) profile.set_batch(1);
    for (const std::string& name :
         trace_.at("otherData").at("blocks").get<std::vector<std::string>>()) {
      ReplayBlock& block = *profile.add_blocks();
      block.set_name(name);
      const auto known = std::find_if(ran.blocks().begin(), ran.blocks().end(),
                                      [&](const ReplayBlock& b) { return b.name() == name; });
      block.set_parameters(known != ran.blocks().end()
                               ? known->parameters()
                               : static_cast<uint64_t>(PulledBytes(spans_, name) / pulled));
      if (block.parameters() == 0) return Incomplete(absl::StrCat("pull of block ", name));
      block.set_forward_ms(PassMs(spans_, name, false, slow));
      block.set_backward_ms(PassMs(spans_, name, true, slow));
      if (!std::isfinite(block.forward_ms()) || !std::isfinite(block.backward_ms())) {
        return Incomplete(absl::StrCat("forward or backward pass of block ", name));
      }
    }
    return profile;
  }

  absl::StatusOr<SimulatedHosts> Hosts(const ReplayProfile& profile, bool in_memory) const {
    const bool known = run_.link_bytes_per_second > 0 && !in_memory;
    const double link =
        known ? run_.link_bytes_per_second : BusiestRate(spans_, in_memory ? 1 : kTellingBytes);
    if (link <= 0 && in_memory) return Incomplete("push or pull");
    if (link <= 0) {
      return absl::UnimplementedError(absl::StrCat(
          "no what-if: transfers in the trace are too small to estimate the rate of a link; this "
          "command states it: tug explain ",
          ShellWord(run_.folder), " --link 1gbit"));
    }
    SimulatedHosts hosts = TestbedHosts(link);
    if (in_memory) hosts.unevenness = 1;  // no streams share a link
    SetRates(profile, hosts);
    return hosts;
  }

  void SetRates(const ReplayProfile& profile, SimulatedHosts& hosts) const {
    double model_bytes = 0;
    for (const ReplayBlock& block : profile.blocks()) {
      model_bytes += static_cast<double>(block.parameters()) * sizeof(float);
    }
    const ClusterConfig& cluster = run_.config.cluster();
    const auto clocks = static_cast<double>(spans_.clocks.size());
    const double pushed = model_bytes * clocks * cluster.virtual_workers();
    const double pulled = model_bytes * clocks * cluster.workers();
    hosts.server_bytes_per_second = RateFor(pushed, spans_.lane_seconds);
    hosts.encode_bytes_per_second = RateFor(pushed, spans_.encode_seconds);
    hosts.decode_bytes_per_second = RateFor(pulled, spans_.decode_seconds);
  }

  static void SetReplay(const ReplayProfile& profile, const std::optional<Slow>& slow,
                        TracedProfile& traced) {
    traced.job.set_compute(JobConfig::REPLAY);
    *traced.job.mutable_replay()->mutable_resolved_profile() = profile;
    StragglerConfig& straggler = *traced.job.mutable_straggler();
    straggler.Clear();
    straggler.set_slowdown(1);
    if (!slow.has_value()) return;
    traced.slowdown = slow->slowdown;
    straggler.set_virtual_worker(slow->virtual_worker);
    straggler.set_slowdown(slow->slowdown);
  }

  const Json& trace_;
  const TracedRun& run_;
  const TracedSpans spans_;
  const std::map<std::string, HostRoles> hosts_;
};

}  // namespace

absl::StatusOr<TracedProfile> ProfileOfTrace(const Json& trace, const TracedRun& run) {
  try {
    return Estimate(trace, run).Profile();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("no what-if: not a trace of this version of tug: ", error.what()));
  }
}

}  // namespace tug
