// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_push_pull.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/byte_size.h"
#include "base/status_macros.h"
#include "lab/bench/bench_command.h"
#include "lab/bench/bench_sizes.h"
#include "lab/bench/bench_table.h"
#include "limits/raw_limits.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

// Default bytes in flight and in all blocks: a worker's credit, and more than a cache holds.
constexpr uint64_t kInFlightBytes = uint64_t{32} << 20;
constexpr uint64_t kMaxOutstanding = 64;
constexpr uint64_t kMaxBlocks = 1024;
constexpr uint64_t kArrayBytes = uint64_t{256} << 20;

absl::StatusOr<BenchOp> ParseOp(const std::string& text) {
  if (text == "push") return BenchOp::kPush;
  if (text == "pull") return BenchOp::kPull;
  if (text == "push-pull") return BenchOp::kPushPull;
  return absl::InvalidArgumentError(
      absl::StrCat("--op ", text, " is unknown: use push, pull or push-pull"));
}

const char* OpName(BenchOp op) {
  switch (op) {
    case BenchOp::kPush:
      return "push";
    case BenchOp::kPull:
      return "pull";
    case BenchOp::kPushPull:
      return "push + pull";
  }
  return "";
}

absl::Status CheckCounts(const PushPullArguments& a) {
  if (a.servers < 1 || a.servers > 64 || a.workers < 1 || a.workers > 64 || a.lanes < 1 ||
      a.lanes > 64 || a.virtual_workers_per_worker < 1 || a.virtual_workers_per_worker > 64) {
    return absl::InvalidArgumentError(
        "--servers, --workers, --lanes and --virtual-workers-per-worker take 1 to 64 each");
  }
  if (!(a.seconds >= 0.01 && a.seconds <= 3600) || a.runs < 1 || a.runs > 1000) {
    return absl::InvalidArgumentError("--seconds takes 0.01 to 3600, --runs 1 to 1000");
  }
  if (!a.hosts.empty() && a.hosts.size() != 2) {
    return absl::InvalidArgumentError("--hosts takes two names: SERVERS,WORKERS");
  }
  for (const std::string& transport : a.transports) {
    if (transport != "tcp" && transport != "shm") {
      return absl::InvalidArgumentError(
          absl::StrCat("--transport ", transport, " is unknown: use tcp or shm"));
    }
    if (transport == "shm" && !a.hosts.empty()) {
      return absl::InvalidArgumentError("--transport shm needs one host: remove --hosts");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PushPullCase> CaseOf(const PushPullArguments& a, const std::string& transport,
                                    const std::string& size) {
  PushPullCase c;
  BenchSetting& setting = c.setting;
  setting.transport = transport;
  ASSIGN_OR_RETURN(setting.bytes, ParseByteSize(size));
  RETURN_IF_ERROR(CheckPartitionBytes(setting.bytes));
  setting.servers = a.servers;
  setting.workers = a.workers;
  setting.lanes = a.lanes;
  setting.virtual_workers_per_worker = a.virtual_workers_per_worker;
  ASSIGN_OR_RETURN(setting.checksum, ParseOnOrOff("--checksum", a.checksum));
  if (a.format != "fp32" && a.format != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format ", a.format, " is unknown: use fp32 or bf16"));
  }
  setting.bf16 = a.format == "bf16";
  if (a.hosts.size() == 2) {
    setting.server_host = a.hosts[0];
    setting.worker_host = a.hosts[1];
  }
  if (a.through != "client" && a.through != "machine") {
    return absl::InvalidArgumentError(
        absl::StrCat("--through ", a.through, " is unknown: use client or machine"));
  }
  c.load.through_client = a.through == "client";
  c.load.outstanding = a.outstanding > 0 ? a.outstanding
                                         : static_cast<uint32_t>(std::clamp<uint64_t>(
                                               kInFlightBytes / setting.bytes, 2, kMaxOutstanding));
  uint64_t total = kInFlightBytes;
  if (!a.total.empty()) {
    ASSIGN_OR_RETURN(total, ParseByteSize(a.total));
  }
  const uint64_t most = a.total.empty() ? kMaxBlocks : uint64_t{1} << 16;
  setting.blocks = static_cast<uint32_t>(std::max<uint64_t>(
      {std::min(total / setting.bytes, most), c.load.outstanding, a.servers * a.lanes}));
  for (const std::string& op : a.ops) {
    ASSIGN_OR_RETURN(c.ops.emplace_back(), ParseOp(op));
  }
  for (const std::string& mode : a.security) {
    if (mode != "token" && mode != "curve") {
      return absl::InvalidArgumentError(
          absl::StrCat("--security ", mode, " is unknown: use token or curve"));
    }
    ASSIGN_OR_RETURN(c.secured.emplace_back(),
                     MakeJobKeys(mode == "token" ? SecurityConfig::TOKEN : SecurityConfig::CURVE));
  }
  return c;
}

// Title of a table: "4 MiB partitions over tcp, ..."
std::string TitleOf(const PushPullArguments& a, const PushPullCase& c) {
  return absl::StrFormat(
      "%s partitions over %s%s, %s, checksum %s; servers %d, lanes of each %d,\n"
      "workers %d, virtual workers of each %d, %d of %d blocks in flight; %d runs of %.3g s: "
      "median (range)",
      ByteSizeText(c.setting.payload_bytes()), c.setting.transport,
      a.hosts.empty() ? "" : absl::StrCat(" from ", a.hosts[1], " to ", a.hosts[0]), a.format,
      a.checksum, a.servers, a.lanes, a.workers, a.virtual_workers_per_worker, c.load.outstanding,
      c.setting.blocks, a.runs, a.seconds);
}

// Indices of the rows that ours are compared with.
struct LimitRows {
  std::vector<size_t> of_rate;
  std::vector<size_t> of_round_trip;
};

LimitRows AddLimits(const RawSetting& raw, const BenchSetting& setting,
                    std::vector<BenchRow>& rows) {
  const auto add = [&](const char* name, auto measure, bool by_latency = false) {
    rows.push_back({.name = name, .measure = measure, .by_latency = by_latency});
    return rows.size() - 1;
  };
  const size_t stream = add("plain TCP stream", [=] { return TcpStream(raw); });
  const size_t opposing = add("two opposing TCP streams", [=] { return OpposingTcpStreams(raw); });
  const size_t zmq = add("ZeroMQ stream", [=] { return ZmqStream(raw); });
  const size_t zmq_trip = add(
      "ZeroMQ round trip", [=] { return ZmqRoundTrip(raw); }, true);
  const size_t tcp_trip = add(
      "plain TCP round trip", [=] { return TcpRoundTrip(raw); }, true);
  LimitRows limits{{stream, opposing, zmq}, {zmq_trip, tcp_trip}};
  if (!setting.server_host.empty()) return limits;  // memory does not limit a network link
  const size_t shared = add("one-copy shared memory", [=] { return OneCopySharedMemory(raw); });
  add("memcpy, one core", [=] { return MemoryCopy(raw, kArrayBytes); });
  add("STREAM a += b, one core", [=] { return StreamAddition(raw, kArrayBytes); });
  if (setting.transport == "shm") limits.of_rate = {shared, stream};
  return limits;
}

BenchRow ExchangeRow(const std::string& suffix, const BenchSetting& setting, BenchLoad load,
                     BenchOp op, const BenchWindowOptions& window) {
  load.op = op;
  if (op == BenchOp::kPull) load.through_client = false;
  return {.name = absl::StrCat(OpName(op), suffix),
          .measure = [=] { return MeasureExchange(setting, load, window); }};
}

std::vector<BenchRow> RowsOf(const PushPullArguments& a, const PushPullCase& c) {
  BenchWindowOptions window;
  window.length = absl::Seconds(a.seconds);
  window.warm_up = std::min(window.warm_up, window.length);
  std::vector<BenchRow> rows;
  for (const BenchOp op : c.ops) rows.push_back(ExchangeRow("", c.setting, c.load, op, window));
  BenchLoad alone = c.load;
  alone.outstanding = 1;
  alone.through_client = false;
  const size_t round_trip = rows.size();
  rows.push_back(ExchangeRow(" round trip, alone", c.setting, alone, BenchOp::kPush, window));
  rows.back().by_latency = true;
  for (const JobKeys& keys : c.secured) {
    BenchSetting secured = c.setting;
    secured.keys = keys;
    const std::string with = absl::StrCat(", ", ModeName(keys.mode));
    for (const BenchOp op : c.ops) rows.push_back(ExchangeRow(with, secured, c.load, op, window));
    rows.push_back(
        ExchangeRow(" round trip, alone" + with, secured, alone, BenchOp::kPush, window));
    rows.back().by_latency = true;
  }
  if (a.limits == "off") return rows;

  RawSetting raw;
  raw.bytes = c.setting.payload_bytes();
  raw.server_host = c.setting.server_host;
  raw.worker_host = c.setting.worker_host;
  raw.window = window;
  const LimitRows limits = AddLimits(raw, c.setting, rows);
  for (size_t r = 0; r < round_trip; ++r) rows[r].limits = limits.of_rate;
  rows[round_trip].limits = limits.of_round_trip;
  if (c.setting.transport != "shm") return rows;
  BenchSetting over_tcp = c.setting;  // baseline for shared memory, in the same run
  over_tcp.transport = "tcp";
  for (size_t r = 0; r < round_trip; ++r) {
    rows[r].limits.push_back(rows.size());
    rows.push_back(ExchangeRow(" over TCP", over_tcp, c.load, c.ops[r], window));
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<PushPullCase>> PushPullCases(const PushPullArguments& arguments) {
  RETURN_IF_ERROR(CheckCounts(arguments));
  RETURN_IF_ERROR(ParseOnOrOff("--limits", arguments.limits).status());
  std::vector<PushPullCase> cases;
  for (const std::string& transport : arguments.transports) {
    for (const std::string& size : arguments.sizes) {
      ASSIGN_OR_RETURN(cases.emplace_back(), CaseOf(arguments, transport, size));
    }
  }
  return cases;
}

absl::Status RunPushPull(const PushPullArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<PushPullCase> cases, PushPullCases(arguments));
  nlohmann::json json = {{"machine", MachineAsJson()}, {"tables", nlohmann::json::array()}};
  for (const PushPullCase& c : cases) {
    std::vector<BenchRow> rows = RowsOf(arguments, c);
    RETURN_IF_ERROR(MeasureRows(rows, arguments.runs));
    PrintRows(TitleOf(arguments, c), rows);
    json["tables"].push_back({{"title", TitleOf(arguments, c)}, {"rows", RowsAsJson(rows)}});
  }
  if (arguments.json.empty()) return absl::OkStatus();
  return WriteJsonFile(arguments.json, json);
}

void AddBenchPushPull(CLI::App& bench, Command& chosen) {
  auto a = std::make_shared<PushPullArguments>();
  CLI::App* command = bench.add_subcommand(
      "push-pull", "Real workers against real lanes, compared with the limits of the machine");
  const auto list = [&](const char* name, std::vector<std::string>& to, const char* what) {
    command->add_option(name, to, what)->delimiter(',')->capture_default_str();
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->capture_default_str();
  };
  list("--transport", a->transports, "Transports: tcp; shm: shared memory, compared with tcp");
  list("--bytes", a->sizes, "Sizes of a partition in FP32, powers of two from 4K to 256M");
  list("--op", a->ops, "Operations of a worker on every block: push, pull, push-pull");
  one("--servers", a->servers, "Server processes");
  one("--workers", a->workers, "Worker processes");
  one("--lanes", a->lanes, "Lanes of each server");
  one("--virtual-workers-per-worker", a->virtual_workers_per_worker,
      "Virtual workers of each worker, which pushes one gradient of each block per virtual worker");
  command->add_option(
      "--outstanding", a->outstanding,
      "Blocks (of one partition) in flight per worker; default: 32 MiB, 2 to 64 blocks");
  command->add_option("--total-bytes", a->total,
                      "Size of all blocks, in FP32; default: 32M, at most 1,024 blocks");
  one("--seconds", a->seconds, "Seconds per measurement");
  one("--runs", a->runs, "Measurements per row; rows alternate");
  one("--checksum", a->checksum, "XXH3 checksum of every payload: on, off");
  one("--format", a->format, "Format of pushes and pulls: fp32, bf16");
  one("--through", a->through,
      "client: through the client, as a worker does; machine: without the client's thread (always "
      "for op pull)");
  list("--security", a->security, "Security modes to measure in addition to none: token, curve");
  one("--limits", a->limits, "Also measure the limits of the machine: on, off");
  list("--hosts", a->hosts, "Hosts of deploy/testbed: SERVERS,WORKERS; default: this host");
  command->add_option("--json", a->json, "JSON file for all runs of all rows")->type_name("FILE");
  command->footer(
      "Servers sum every push and answer pulls, without an optimizer. GB/s: payload of pushes plus "
      "pulls. An\n"
      "operation is a partition pushed, pulled, or both. Answered: until the lane has received the "
      "push; round trips are\n"
      "measured with nothing else in flight. CPU is that of all processes of the row.\n"
      "Examples:\n"
      "  tug bench push-pull --bytes 4M\n"
      "  tug bench push-pull --bytes 4K --op push-pull --outstanding 64 --json out.json");
  command->callback([a, &chosen] { chosen = [a] { return RunPushPull(*a); }; });
}

}  // namespace tug
