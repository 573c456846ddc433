// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/bench_collectives.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "base/status_macros.h"
#include "lab/bench/bench_command.h"
#include "lab/bench/bench_sizes.h"
#include "lab/bench/bench_table.h"
#include "lab/bench/link_measurement.h"
#include "limits/bench_stats.h"
#include "limits/raw_limits.h"
#include "nlohmann/json.hpp"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr uint32_t kMinRanks = 2;  // a single rank has no peer and no link to measure
constexpr uint32_t kMaxRanks = 64;
constexpr uint64_t kByteLimit = uint64_t{4} << 30;
// Over TCP, messages up to 8 KiB are batched (AllReduceSettings::min_part_bytes).
constexpr uint64_t kMinTcpPartBytes = 16 << 10;
constexpr uint64_t kMinBufferBytes = uint64_t{64} << 20;  // larger than the caches, for the fit

absl::StatusOr<ElementType> ParseType(const std::string& text) {
  if (text == "fp32") return ElementType::kFp32;
  if (text == "bf16") return ElementType::kBf16;
  if (text == "fp16") return ElementType::kFp16;
  return absl::InvalidArgumentError(
      absl::StrCat("--type ", text, " is unknown: use fp32, bf16 or fp16"));
}

absl::StatusOr<uint64_t> SizeOf(const std::string& option, const std::string& text) {
  absl::StatusOr<uint64_t> bytes = ParseByteSize(text);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", std::string(bytes.status().message())));
}

// Checks the memory that the ranks touch: all of them run on this machine, also in a testbed.
absl::Status CheckMemory(const CollectiveSetting& setting) {
  const uint64_t wanted = setting.world * CollectiveRanks::MemoryBytes(setting);
  const uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (wanted <= memory) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--ranks ", setting.world, " with buffers of ",
                                                 ByteSizeText(setting.max_size_bytes), " need ",
                                                 wanted >> 30, " GiB, but this machine has ",
                                                 memory >> 30, ": lower --ranks or --bytes"));
}

absl::Status CheckAlgorithms(const std::vector<std::string>& names) {
  std::vector<std::string> known = {"auto"};
  for (const AllReduceAlgorithm& a : AllReduceAlgorithms()) known.emplace_back(a.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--algorithm ", name, " is unknown: use one of ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<CollectivesCase> CaseOf(const CollectivesArguments& a, const std::string& transport,
                                       uint32_t ranks) {
  CollectivesCase c;
  c.transport = transport;
  if (transport != "tcp" && transport != "shm") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport ", transport, " is unknown: use tcp or shm"));
  }
  if (transport == "shm" && !a.hosts.empty()) {
    return absl::InvalidArgumentError("--transport shm needs one host: remove --hosts");
  }
  if (ranks < kMinRanks || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ranks ", ranks, " is out of range: give ", kMinRanks, " to ", kMaxRanks));
  }
  c.setting.world = ranks;
  c.setting.shared_memory = transport == "shm";
  c.setting.hosts = a.hosts;
  ASSIGN_OR_RETURN(c.setting.checksum, ParseOnOrOff("--checksum", a.checksum));
  ASSIGN_OR_RETURN(c.setting.type, ParseType(a.type));
  ASSIGN_OR_RETURN(c.setting.chunk_bytes, SizeOf("--chunk", a.chunk));
  if (c.setting.chunk_bytes < 1024 || c.setting.chunk_bytes > kMaxPayloadBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--chunk ", a.chunk, " is out of range: give 1K to 512M"));
  }
  c.setting.max_size_bytes = std::max(kMinBufferBytes, ranks * *std::rbegin(kLinkBytes));
  for (const std::string& size : a.sizes) {
    ASSIGN_OR_RETURN(const uint64_t bytes, SizeOf("--bytes", size));
    if (bytes > kByteLimit || bytes % ElementBytes(c.setting.type) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--bytes ", size, " is invalid: give a multiple of the element size, at most 4G"));
    }
    c.sizes.push_back(bytes);
    c.setting.max_size_bytes = std::max(c.setting.max_size_bytes, bytes);
  }
  RETURN_IF_ERROR(CheckMemory(c.setting));
  RETURN_IF_ERROR(CheckAlgorithms(a.algorithms));
  c.algorithms = a.algorithms;
  if (a.ranks_per_host < 1)
    return absl::InvalidArgumentError("--ranks-per-host must be at least 1");
  c.ranks_per_host = a.ranks_per_host;
  return c;
}

// One algorithm at one size.
struct Row {
  uint64_t bytes = 0;
  std::string name;  // as requested
  const AllReduceAlgorithm* algorithm = nullptr;
  AllReduceSettings settings;
  double predicted = 0;  // seconds
  uint64_t calls = 0;    // per run
  std::vector<double> seconds;
};

std::vector<Row> RowsOf(const CollectivesCase& c, const LinkCost& link) {
  std::vector<Row> rows;
  for (const uint64_t bytes : c.sizes) {
    for (const std::string& name : c.algorithms) {
      // All links were measured alike; hosts exist only for the hierarchical algorithm.
      AllReduceSettings settings;
      if (c.transport == "tcp") settings.min_part_bytes = kMinTcpPartBytes;
      if (name == "hierarchical") {
        settings.ranks_per_host = c.ranks_per_host;
        settings.within_host = link;
        const bool has_ports = c.transport == "tcp" && c.setting.world > 2;
        if (!has_ports) settings.chunk_bytes = c.setting.chunk_bytes;
      }
      Row& row = rows.emplace_back();
      row.bytes = bytes;
      row.name = name;
      if (name == "auto") {
        const AllReduceChoice choice = PickAllReduce(link, c.setting.world, bytes, settings);
        row.algorithm = choice.algorithm;
        row.settings = choice.settings;
        row.predicted = choice.seconds;
        row.name = absl::StrCat("auto: ", choice.algorithm->name);
      } else {
        row.algorithm = FindAllReduce(name);
        row.settings = WithBestParts(*row.algorithm, link, c.setting.world, bytes, settings);
        row.predicted = row.algorithm->seconds(link, c.setting.world, bytes, row.settings);
      }
    }
  }
  return rows;
}

// Measures all rows once, then all again, so that drift of the machine affects all of them.
absl::Status MeasureRows(CollectiveRanks& ranks, const CollectivesArguments& a,
                         std::vector<Row>& rows) {
  for (Row& row : rows) {
    ASSIGN_OR_RETURN(const double once,
                     ranks.TimeAllReduce(*row.algorithm, row.settings, row.bytes, 2));
    row.calls = CallsIn(a.seconds, once);
  }
  for (int run = 0; run < a.runs; ++run) {
    for (Row& row : rows) {
      ASSIGN_OR_RETURN(row.seconds.emplace_back(),
                       ranks.TimeAllReduce(*row.algorithm, row.settings, row.bytes, row.calls));
    }
  }
  return absl::OkStatus();
}

// Lower bound for two ranks: bytes over plain TCP in both directions at once, and the sum.
struct Ceiling {
  double seconds_per_byte_each_way = 0;
  double gamma = 0;

  double Seconds(uint32_t world, uint64_t bytes) const {
    const double n = world;
    return static_cast<double>(bytes) * (n - 1) / n * (2 * seconds_per_byte_each_way + gamma);
  }
};

absl::StatusOr<std::optional<Ceiling>> MeasureCeiling(const CollectivesArguments& a,
                                                      const CollectivesCase& c, double gamma) {
  if (a.limits == "off" || c.transport != "tcp" || c.setting.world != 2) return std::nullopt;
  RawSetting raw;
  raw.bytes = c.setting.chunk_bytes;
  if (!c.setting.hosts.empty()) {
    raw.server_host = c.setting.hosts[0];
    raw.worker_host = c.setting.hosts[1 % c.setting.hosts.size()];
  }
  raw.window.length = absl::Seconds(std::max(0.5, 2 * a.seconds));
  ASSIGN_OR_RETURN(const BenchWindow window, OpposingTcpStreams(raw));
  const double each_way = std::min(window.there_bytes, window.back_bytes) / window.seconds;
  return Ceiling{1 / each_way, gamma};
}

std::string Micros(double seconds) {
  const double us = seconds * 1e6;
  return absl::StrFormat("%.*f", us < 100 ? 1 : 0, us);
}

// "4 KiB 120 us (1.05 of the fit), ..."
std::string MessagesText(const LinkMeasurement& measured) {
  std::vector<std::string> texts;
  for (const TimedMessage& message : measured.messages) {
    const double fitted = SendSeconds(measured.cost, static_cast<double>(message.bytes));
    texts.push_back(absl::StrFormat("%s %s (%.2f)", ByteSizeText(message.bytes),
                                    Micros(message.seconds), message.seconds / fitted));
  }
  return absl::StrJoin(texts, ", ");
}

void Print(const CollectivesArguments& a, const CollectivesCase& c, const LinkMeasurement& measured,
           const std::optional<Ceiling>& ceiling, const std::vector<Row>& rows) {
  const LinkCost& link = measured.cost;
  std::printf(
      "\nall-reduce over %s, %d ranks, %s, chunks of %s; %d runs of %.3g s: median (range)\n"
      "fitted: alpha %s us, beta %.4f ns/B (%.4g GB/s each way), gamma %.4f ns/B (%.2f GB/s)\n"
      "messages, us (measured/fitted): %s\n",
      c.transport.c_str(), c.setting.world, ElementTypeName(c.setting.type),
      ByteSizeText(c.setting.chunk_bytes).c_str(), a.runs, a.seconds, Micros(link.alpha).c_str(),
      link.beta * 1e9, 1e-9 / link.beta, link.gamma * 1e9, 1e-9 / link.gamma,
      MessagesText(measured).c_str());
  if (ceiling.has_value()) {
    std::printf(
        "two opposing TCP streams: %.2f GB/s each way; ceiling: the bytes of the all-reduce at "
        "that rate, then the sum\n",
        1e-9 / ceiling->seconds_per_byte_each_way);
  }
  std::printf("%-10s%-28s%-30s%10s%10s%14s%12s%s\n", "size", "algorithm", "us", "S/t GB/s",
              "bus GB/s", "predicted us", "measured/", ceiling.has_value() ? "  of ceiling" : "");
  const double n = c.setting.world;
  for (const Row& row : rows) {
    const Spread spread = SpreadOf(row.seconds);
    const double rate = static_cast<double>(row.bytes) * 1e-9 / spread.median;
    std::printf("%-10s%-28s%-30s%10.3f%10.3f%14s%12.2f%s\n", ByteSizeText(row.bytes).c_str(),
                row.name.c_str(),
                absl::StrFormat("%s (%s..%s)", Micros(spread.median), Micros(spread.min),
                                Micros(spread.max))
                    .c_str(),
                rate, 2 * (n - 1) / n * rate, Micros(row.predicted).c_str(),
                spread.median / row.predicted,
                ceiling.has_value()
                    ? absl::StrFormat("%12.2f",
                                      ceiling->Seconds(c.setting.world, row.bytes) / spread.median)
                          .c_str()
                    : "");
  }
  std::fflush(stdout);
}

nlohmann::json AsJson(const CollectivesCase& c, const LinkMeasurement& measured,
                      const std::optional<Ceiling>& ceiling, const std::vector<Row>& rows) {
  const LinkCost& link = measured.cost;
  nlohmann::json table = {
      {"transport", c.transport},
      {"ranks", c.setting.world},
      {"type", ElementTypeName(c.setting.type)},
      {"chunk_bytes", c.setting.chunk_bytes},
      {"link", {{"alpha", link.alpha}, {"beta", link.beta}, {"gamma", link.gamma}}},
      {"messages", nlohmann::json::array()},
      {"rows", nlohmann::json::array()}};
  for (const TimedMessage& message : measured.messages) {
    table["messages"].push_back({{"bytes", message.bytes}, {"seconds", message.seconds}});
  }
  for (const Row& row : rows) {
    nlohmann::json one = {{"bytes", row.bytes},     {"algorithm", row.algorithm->name},
                          {"name", row.name},       {"parts", row.settings.parts},
                          {"seconds", row.seconds}, {"predicted_seconds", row.predicted}};
    if (ceiling.has_value()) {
      one["ceiling_seconds"] = ceiling->Seconds(c.setting.world, row.bytes);
    }
    table["rows"].push_back(std::move(one));
  }
  return table;
}

absl::StatusOr<nlohmann::json> RunCase(const CollectivesArguments& a, const CollectivesCase& c) {
  LinkMeasurement link;
  std::vector<Row> rows;
  {
    CollectiveRanks ranks;
    RETURN_IF_ERROR(ranks.Start(c.setting));
    ASSIGN_OR_RETURN(link, MeasureLink(ranks, a.seconds, a.runs));
    rows = RowsOf(c, link.cost);
    RETURN_IF_ERROR(MeasureRows(ranks, a, rows));
  }
  ASSIGN_OR_RETURN(const std::optional<Ceiling> ceiling, MeasureCeiling(a, c, link.cost.gamma));
  Print(a, c, link, ceiling, rows);
  return AsJson(c, link, ceiling, rows);
}

}  // namespace

absl::StatusOr<std::vector<CollectivesCase>> CollectivesCases(
    const CollectivesArguments& arguments) {
  if (!(arguments.seconds >= 0.001 && arguments.seconds <= 10) || arguments.runs < 1 ||
      arguments.runs > 1000) {
    return absl::InvalidArgumentError("--seconds takes 0.001 to 10, --runs 1 to 1000");
  }
  RETURN_IF_ERROR(ParseOnOrOff("--limits", arguments.limits).status());
  std::vector<std::string> transports = arguments.transports;
  if (transports.empty()) transports = {"tcp"};
  if (arguments.transports.empty() && arguments.hosts.empty()) transports.emplace_back("shm");
  std::vector<CollectivesCase> cases;
  for (const std::string& transport : transports) {
    for (const uint32_t ranks : arguments.ranks) {
      ASSIGN_OR_RETURN(cases.emplace_back(), CaseOf(arguments, transport, ranks));
    }
  }
  return cases;
}

absl::Status RunCollectives(const CollectivesArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<CollectivesCase> cases, CollectivesCases(arguments));
  nlohmann::json json = {{"machine", MachineAsJson()}, {"tables", nlohmann::json::array()}};
  for (const CollectivesCase& c : cases) {
    ASSIGN_OR_RETURN(nlohmann::json table, RunCase(arguments, c));
    json["tables"].push_back(std::move(table));
  }
  if (arguments.json.empty()) return absl::OkStatus();
  return WriteJsonFile(arguments.json, json);
}

void AddBenchCollectives(CLI::App& bench, Command& chosen) {
  auto a = std::make_shared<CollectivesArguments>();
  CLI::App* command = bench.add_subcommand(
      "collectives", "All-reduce between processes, compared with the alpha-beta model");
  const auto list = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->delimiter(',')->capture_default_str();
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->capture_default_str();
  };
  command
      ->add_option("--transport", a->transports,
                   "Transports: tcp, shm (shared memory); default: both, with --hosts tcp")
      ->delimiter(',');
  list("--bytes", a->sizes, "Buffer sizes per rank");
  list("--ranks", a->ranks, "Numbers of ranks, one process per rank");
  list("--algorithm", a->algorithms,
       "ring, halving_doubling, recursive_doubling, binary_tree, hierarchical, torus_2d, torus_3d; "
       "auto: the fastest by the fitted model");
  one("--type", a->type, "Elements: fp32, bf16, fp16");
  one("--ranks-per-host", a->ranks_per_host, "Ranks that hierarchical treats as one host");
  one("--chunk", a->chunk, "Largest message");
  one("--checksum", a->checksum, "XXH3 checksum of TCP payloads: on, off");
  one("--limits", a->limits, "Also measure plain TCP streams, with two ranks over TCP: on, off");
  one("--seconds", a->seconds, "Seconds per run");
  one("--runs", a->runs, "Measurements per row; rows alternate");
  list("--hosts", a->hosts,
       "Hosts of deploy/testbed, assigned to the ranks in turn; default: this host");
  command->add_option("--json", a->json, "JSON file for all runs of all rows")->type_name("FILE");
  command->footer(
      "S/t is size divided by time, bus bandwidth 2 (N - 1) / N of that. alpha and beta are fitted "
      "to the times of messages\n"
      "from every rank to the next one, all at once, gamma to that of the sum in memory. With "
      "shared memory peers read the\n"
      "buffers in place. Ceiling: 2 (N - 1) / N S bytes at the rate of two opposing plain TCP "
      "streams, then the sum.\n"
      "Examples:\n"
      "  tug bench collectives --transport shm --bytes 1M,64M\n"
      "  tug bench collectives --ranks 2,4 --algorithm ring,auto --json out.json");
  command->callback([a, &chosen] { chosen = [a] { return RunCollectives(*a); }; });
}

}  // namespace tug
