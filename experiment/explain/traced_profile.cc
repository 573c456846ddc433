// SPDX-License-Identifier: Apache-2.0
#include "experiment/explain/traced_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/median.h"
#include "base/status_macros.h"
#include "config/placement_mode.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr double kSlow = 1.15;  // times the others' compute time: a straggler
// Transfers that measure a link's rate. Shorter pauses are waits for replies. With fewer bytes, the
// burst that an idle link lets through at once would dominate (deploy/testbed, burst).
constexpr double kPauseSeconds = 2e-3;
constexpr double kTellingBytes = 256 << 10;
constexpr double kPercentile = 0.9;

// A message in flight.
struct Transfer {
  double begin = 0;  // seconds
  double end = 0;
  double bytes = 0;
};

// One direction of a host's link.
struct LinkEnd {
  uint32_t node = 0;
  bool out = false;
  friend auto operator<=>(const LinkEnd&, const LinkEnd&) = default;
};

// Key of a pass over a block: virtual worker, block, whether backward.
using Pass = std::tuple<uint32_t, std::string, bool>;

struct Spans {
  std::map<Pass, std::map<uint64_t, double>> passes;  // seconds
  // Bytes by block, then by worker and step.
  std::map<std::string, std::map<std::pair<uint32_t, uint64_t>, double>> pulled;
  std::map<LinkEnd, std::vector<Transfer>> transfers;
  double lane_seconds = 0;    // sums, updates and decoding, of all lanes
  double encode_seconds = 0;  // of all workers
  double decode_seconds = 0;
  std::set<uint64_t> clocks;  // with sums
  std::set<uint32_t> devices;
  std::map<uint32_t, std::string> hosts;  // by node
  std::map<uint32_t, bool> is_server;
};

// Whether only the embedding rows that a step touches are sent.
bool SendsRows(const JobConfig& config) {
  const ModelConfig& model = config.model();
  const bool tied = model.family() != ModelConfig::ENCODER && model.tied_head();
  return config.compute() != JobConfig::REPLAY && !tied && config.comm().sparse_embeddings();
}

// Feature of the job that the simulator does not model, in words; empty: none. Those that
// simulate/schedule/replay_traffic.cc refuses, which needs a profile first, come first.
std::string NotModelled(const JobConfig& config) {
  const ImpairConfig& impair = config.comm().impair();
  if (config.sync().policy() != SyncConfig::BSP) return "sync.policy other than BSP";
  if (AllReduces(config)) return "exchange ALL_REDUCE";
  if (config.placement().kind() != PlacementConfig::SERVERS)
    return "placement.kind other than SERVERS";
  if (config.sync().replicas() > 1) return "sync.replicas";
  if (config.sync().local_steps() > 1) return "sync.local_steps";
  if (impair.delay_ms() > 0 || impair.jitter_ms() > 0 || impair.loss() > 0 ||
      impair.rate_mbit() > 0) {
    return "comm.impair (give hosts links instead: deploy/testbed)";
  }
  if (config.comm().push_codec().has_auto_() ||
      config.comm().pull_format() == CommConfig::PULL_AUTO) {
    return "codecs chosen at run time (auto)";
  }
  if (config.comm().scheduler() == CommConfig::AUTO) return "comm.scheduler AUTO";
  if (SendsRows(config)) return "comm.sparse_embeddings (set it to false)";
  return "";
}

class Reader {
 public:
  explicit Reader(const Json& trace) : trace_(trace) {}

  Spans Read() {
    for (const Json& event : trace_.at("traceEvents")) {
      if (event.at("ph") == "M") Name(event);
    }
    for (const Json& event : trace_.at("traceEvents")) {
      if (event.at("ph") == "X") Span(event);
    }
    for (const auto& [key, sum] : sums_) {
      const auto sent = sent_.find(key);
      if (sent == sent_.end()) continue;
      Carried(std::get<0>(key), sum.first, {sent->second, sum.second.end, sum.second.bytes});
    }
    return std::move(spans_);
  }

 private:
  // "worker-2 (host, pid 123)"
  void Name(const Json& event) {
    const auto pid = event.at("pid").get<uint32_t>();
    if (event.at("name") == "thread_name" && event.at("args").at("name") == "device") {
      spans_.devices.insert(pid);
    }
    if (event.at("name") == "thread_name" && event.at("args").at("name") == "compute") {
      compute_track_[pid] = event.at("tid").get<uint32_t>();
    }
    if (event.at("name") != "process_name") return;
    const auto name = event.at("args").at("name").get<std::string>();
    const size_t open = name.find('('), comma = name.find(", pid");
    if (open == std::string::npos || comma == std::string::npos) return;
    const std::string process(absl::StripTrailingAsciiWhitespace(name.substr(0, open)));
    pids_[process] = pid;
    spans_.is_server[pid] = ProcessIndexOf(kServerRole, process).has_value();
    spans_.hosts[pid] = name.substr(open + 1, comma - open - 1);
  }

  void Span(const Json& event) {
    const auto kind = event.at("cat").get<std::string>();
    const auto pid = event.at("pid").get<uint32_t>();
    const double seconds = event.at("dur").get<double>() * 1e-6;
    const double begin = event.at("ts").get<double>() * 1e-6;
    const Json& args = event.at("args");
    const auto step = args.at("step").get<uint64_t>();
    if (kind == "forward" || kind == "backward") {
      const bool queued =
          spans_.devices.contains(pid) && compute_track_[pid] == event.at("tid").get<uint32_t>();
      if (queued) return;
      const auto name = event.at("name").get<std::string>();
      const Pass pass(args.at("virtual_worker").get<uint32_t>(),
                      std::string(absl::StripPrefix(name, kind + " ")), kind == "backward");
      spans_.passes[pass][step] += seconds;
    } else if (kind == "pull") {
      const double bytes = args.value("bytes", 0.0);
      const auto name = event.at("name").get<std::string>();
      spans_.pulled[std::string(absl::StripPrefix(name, "pull "))][{pid, step}] += bytes;
      Carried(PidOf(args.at("server")), pid, {begin, begin + seconds, bytes});
    } else if (kind == "push") {
      sent_[KeyOf(event, pid)] = begin;
    } else if (kind == "sum") {
      spans_.clocks.insert(step);
      spans_.lane_seconds += seconds;
      sums_[KeyOf(event, PidOf(args.at("worker")))] = {
          pid, {.end = begin, .bytes = args.value("bytes", 0.0)}};
    } else if (kind == "optimizer") {
      spans_.lane_seconds += seconds;
    } else if (kind == "encode") {
      spans_.encode_seconds += seconds;
    } else if (kind == "decode") {
      (spans_.is_server[pid] ? spans_.lane_seconds : spans_.decode_seconds) += seconds;
    }
  }

  // Worker, name of the block, first segment, step, virtual worker.
  using Key = std::tuple<uint32_t, std::string, uint64_t, uint64_t, uint64_t>;
  static Key KeyOf(const Json& event, uint32_t worker) {
    const auto name = event.at("name").get<std::string>();
    const Json& args = event.at("args");
    return {worker, name.substr(name.find(' ')), args.value("first_segment", uint64_t{0}),
            args.at("step").get<uint64_t>(), args.at("virtual_worker").get<uint64_t>()};
  }

  void Carried(uint32_t from, uint32_t to, const Transfer& transfer) {
    if (transfer.end < transfer.begin) return;  // clocks of two nodes agree only approximately
    spans_.transfers[{from, true}].push_back(transfer);
    spans_.transfers[{to, false}].push_back(transfer);
  }

  // 0, which no node has, for a node that the trace lacks.
  uint32_t PidOf(const Json& process) const {
    const auto found = pids_.find(process.get<std::string>());
    return found == pids_.end() ? 0 : found->second;
  }

  const Json& trace_;
  Spans spans_;
  std::map<std::string, uint32_t> pids_;  // by name
  std::map<uint32_t, uint32_t> compute_track_;
  std::map<Key, double> sent_;                         // pushes
  std::map<Key, std::pair<uint32_t, Transfer>> sums_;  // server; end and bytes of the transfer
};

double MedianOver(const std::map<uint64_t, double>& by_step) {
  std::vector<double> values;
  for (const auto& [step, value] : by_step) values.push_back(value);
  return Median(values);
}

// Compute time of a step, by virtual worker.
std::map<uint32_t, double> ComputeSeconds(const Spans& spans) {
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
double PassMs(const Spans& spans, const std::string& block, bool backward,
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

absl::StatusOr<uint64_t> ParametersOf(const Spans& spans, const std::string& block,
                                      CommConfig::Format format) {
  const auto found = spans.pulled.find(block);
  if (found == spans.pulled.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trace has no pull of block ", block, ": trace more steps"));
  }
  if (format != CommConfig::FP32 && format != CommConfig::BF16) {
    return absl::UnimplementedError(
        "no what-if: block sizes can be derived only from pulls in FP32 or BF16 "
        "(comm.pull_format)");
  }
  std::vector<double> bytes;
  for (const auto& [key, sum] : found->second) bytes.push_back(sum);
  // A step at the edge of the trace may be incomplete.
  const double whole = *std::max_element(bytes.begin(), bytes.end());
  return static_cast<uint64_t>(whole / (format == CommConfig::BF16 ? 2 : 4));
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

// Rate at or below which kPercentile of the bytes were sent; 0: too few bytes.
double RateOf(std::vector<Transfer> busy) {
  std::erase_if(busy, [](const Transfer& time) {
    return time.bytes < kTellingBytes || time.end <= time.begin;
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

double BusiestRate(const Spans& spans) {
  double most = 0;
  for (const auto& [end, transfers] : spans.transfers) {
    most = std::max(most, RateOf(BusyTimes(transfers)));
  }
  return most;
}

absl::Status CheckHosts(const Spans& spans, const JobConfig& config,
                        std::vector<std::string>& notes) {
  std::map<std::string, std::pair<bool, bool>> kinds;  // worker, server
  for (const auto& [node, host] : spans.hosts) {
    (spans.is_server.at(node) ? kinds[host].second : kinds[host].first) = true;
  }
  const bool beside = std::any_of(kinds.begin(), kinds.end(), [](const auto& entry) {
    return entry.second.first && entry.second.second;
  });
  if (beside && config.comm().shared_memory()) {
    return absl::UnimplementedError(
        "no what-if: workers and servers on one host exchange through shared memory, but the "
        "simulator models only links; trace with comm.shared_memory=false");
  }
  if (kinds.size() < spans.hosts.size()) {
    notes.push_back("nodes that share a host are simulated on separate hosts");
  }
  return absl::OkStatus();
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

// Profile with the blocks of the trace. Parameters come from the profile of a replay (`ran`), else
// from pulls.
absl::StatusOr<ReplayProfile> BlocksOf(const Json& trace, const Spans& spans,
                                       const JobConfig& config, const std::optional<Slow>& slow) {
  const ReplayProfile& ran = config.replay().resolved_profile();
  ReplayProfile profile = ran;
  profile.clear_blocks();
  if (profile.name().empty()) profile.set_name(config.name());
  if (profile.batch() == 0) profile.set_batch(1);
  for (const std::string& name :
       trace.at("otherData").at("blocks").get<std::vector<std::string>>()) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(name);
    const auto known = std::find_if(ran.blocks().begin(), ran.blocks().end(),
                                    [&](const ReplayBlock& b) { return b.name() == name; });
    if (known != ran.blocks().end()) {
      block.set_parameters(known->parameters());
    } else {
      ASSIGN_OR_RETURN(const uint64_t parameters,
                       ParametersOf(spans, name, config.comm().pull_format()));
      block.set_parameters(parameters);
    }
    const double forward = PassMs(spans, name, false, slow);
    const double backward = PassMs(spans, name, true, slow);
    if (!std::isfinite(forward) || !std::isfinite(backward)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no what-if: the trace lacks the forward or the backward pass of block ",
                       name, ": trace more steps"));
    }
    block.set_forward_ms(forward);
    block.set_backward_ms(backward);
  }
  return profile;
}

absl::StatusOr<SimulatedHosts> HostsOf(const Spans& spans, const ReplayProfile& profile,
                                       const ClusterConfig& cluster, double link_bytes_per_second) {
  double model_bytes = 0;
  for (const ReplayBlock& block : profile.blocks()) {
    model_bytes += static_cast<double>(block.parameters()) * sizeof(float);
  }
  const auto clocks = static_cast<double>(spans.clocks.size());
  const double pushed = model_bytes * clocks * cluster.virtual_workers();
  const double pulled = model_bytes * clocks * cluster.workers();
  const double link = link_bytes_per_second > 0 ? link_bytes_per_second : BusiestRate(spans);
  if (link <= 0) {
    return absl::UnimplementedError(
        "no what-if: transfers in the trace are too small to estimate the rate of a link; pass "
        "--link RATE");
  }
  SimulatedHosts hosts = TestbedHosts(link);
  hosts.server_bytes_per_second = RateFor(pushed, spans.lane_seconds);
  hosts.encode_bytes_per_second = RateFor(pushed, spans.encode_seconds);
  hosts.decode_bytes_per_second = RateFor(pulled, spans.decode_seconds);
  return hosts;
}

absl::StatusOr<TracedProfile> ProfileOf(const Json& trace, const JobConfig& config,
                                        double link_bytes_per_second) {
  const Spans spans = Reader(trace).Read();
  TracedProfile traced{.job = config};
  RETURN_IF_ERROR(CheckHosts(spans, config, traced.notes));
  NoteWhatIsMissing(trace, traced.notes);
  const std::optional<Slow> slow = SlowOne(ComputeSeconds(spans));
  ASSIGN_OR_RETURN(const ReplayProfile profile, BlocksOf(trace, spans, config, slow));
  ASSIGN_OR_RETURN(traced.hosts, HostsOf(spans, profile, config.cluster(), link_bytes_per_second));
  traced.job.set_compute(JobConfig::REPLAY);
  *traced.job.mutable_replay()->mutable_resolved_profile() = profile;
  StragglerConfig& straggler = *traced.job.mutable_straggler();
  straggler.Clear();
  straggler.set_slowdown(1);
  if (slow.has_value()) {
    traced.slowdown = slow->slowdown;
    straggler.set_virtual_worker(slow->virtual_worker);
    straggler.set_slowdown(slow->slowdown);
  }
  return traced;
}

}  // namespace

absl::StatusOr<TracedProfile> ProfileOfTrace(const Json& trace, const JobConfig& config,
                                             double link_bytes_per_second) {
  if (const std::string what = NotModelled(config); !what.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("no what-if: the simulator does not model ", what));
  }
  try {
    return ProfileOf(trace, config, link_bytes_per_second);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a trace of tug: ", error.what()));
  }
}

}  // namespace tug
