// SPDX-License-Identifier: Apache-2.0
#include "explain/traced_spans.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  explicit Reader(const Json& trace) : trace_(trace) {}

  TracedSpans Read() {
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
  TracedSpans spans_;
  std::map<std::string, uint32_t> pids_;  // by name
  std::map<uint32_t, uint32_t> compute_track_;
  std::map<Key, double> sent_;                         // pushes
  std::map<Key, std::pair<uint32_t, Transfer>> sums_;  // server; end and bytes of the transfer
};

}  // namespace

TracedSpans ReadSpans(const Json& trace) { return Reader(trace).Read(); }

}  // namespace tug
