// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/status_macros.h"
#include "lab/bench/bench_arithmetic.h"
#include "lab/bench/bench_command.h"
#include "lab/bench/bench_memory.h"
#include "lab/bench/bench_sizes.h"
#include "lab/bench/bench_table.h"
#include "limits/bench_stats.h"
#include "nlohmann/json.hpp"
#include "process/standard_streams.h"

namespace tug {
namespace {

// Bytes that STREAM counts per element of a += b: two read, one written.
constexpr double kStreamBytes = 12;

struct ServerArguments {
  uint64_t parameters = 0;  // 0: depends on the measurement
  uint32_t virtual_workers = 2;
  int runs = 5;
  bool memory = false;
  std::vector<uint32_t> workers = {1, 2, 4, 8};
  std::string format = "fp32";
  std::string credit = "64M";
  double seconds = 2;
  std::string json;
};

absl::Status Check(const ServerArguments& a) {
  if (a.parameters > uint64_t{4} << 30) {
    return absl::InvalidArgumentError("--parameters takes at most 4294967296");
  }
  if (a.virtual_workers < 1 || a.virtual_workers > 64 || a.runs < 1 || a.runs > 1000) {
    return absl::InvalidArgumentError("--virtual-workers takes 1 to 64, --runs 1 to 1000");
  }
  for (const uint32_t workers : a.workers) {
    if (workers < 1 || workers > 64) {
      return absl::InvalidArgumentError("--workers takes numbers from 1 to 64");
    }
  }
  if (!(a.seconds >= 0.01 && a.seconds <= 3600)) {
    return absl::InvalidArgumentError("--seconds takes 0.01 to 3600");
  }
  if (a.format != "fp32" && a.format != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format ", a.format, " is unknown: use fp32 or bf16"));
  }
  return absl::OkStatus();
}

std::vector<double> Rates(const std::vector<double>& ns) {
  std::vector<double> rates;
  for (const double each : ns) rates.push_back(kStreamBytes / each);
  return rates;
}

std::vector<double> Quotients(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> quotients;
  for (size_t i = 0; i < a.size(); ++i) quotients.push_back(a[i] / b[i]);
  return quotients;
}

absl::Status RunArithmetic(const ServerArguments& a, nlohmann::json& json) {
  ArithmeticSetting setting;
  if (a.parameters > 0) setting.parameters = a.parameters;
  setting.virtual_workers = a.virtual_workers;
  setting.bf16_copy = a.format == "bf16";
  setting.runs = a.runs;
  for (const Home home : {Home::kReceiver, Home::kSender}) {
    setting.home = home;
    const char* const whose = home == Home::kReceiver ? "received into memory of the server"
                                                      : "read in memory of the worker";
    ASSIGN_OR_RETURN(const ArithmeticFigures figures, MeasureArithmetic(setting));
    const std::vector<double> of_stream = SumOfStream(figures, setting.virtual_workers);
    const std::vector<double> updates = Quotients(figures.update_ns, figures.stream_ns);
    const auto text = [](const std::vector<double>& v) { return FormatSpread(SpreadOf(v), 3); };
    std::printf(
        "\n%llu parameters, gradients of %u virtual workers %s; one core; %d runs: median (range)\n"
        "  sum                %s ns a parameter",
        static_cast<unsigned long long>(setting.parameters), setting.virtual_workers, whose,
        setting.runs, text(figures.sum_ns).c_str());
    if (!of_stream.empty()) {
      std::printf(": its additions at %s of STREAM's rate", text(of_stream).c_str());
    }
    std::printf(
        "\n  update by AdamW%s %s ns a parameter: %s times STREAM's time\n"
        "  STREAM a += b      %s ns an element: %s GB/s\n",
        setting.bf16_copy ? ", with bf16 copy" : "   ", text(figures.update_ns).c_str(),
        text(updates).c_str(), text(figures.stream_ns).c_str(),
        text(Rates(figures.stream_ns)).c_str());
    FlushResults().IgnoreError();  // an error is reported at the end
    json["arithmetic"].push_back({{"payloads", whose},
                                  {"parameters", setting.parameters},
                                  {"virtual_workers", setting.virtual_workers},
                                  {"sum_ns", figures.sum_ns},
                                  {"update_ns", figures.update_ns},
                                  {"stream_ns", figures.stream_ns},
                                  {"sum_of_stream", of_stream},
                                  {"update_over_stream", updates}});
  }
  return absl::OkStatus();
}

absl::Status RunMemory(const ServerArguments& a, nlohmann::json& json) {
  MemorySetting setting;
  if (a.parameters > 0) setting.parameters = a.parameters;
  setting.bf16 = a.format == "bf16";
  setting.length = absl::Seconds(a.seconds);
  ASSIGN_OR_RETURN(setting.credit_bytes, ParseByteSize(a.credit));
  std::printf(
      "\n"
      "%llu parameters, %s, credit of each worker %s: peak anonymous memory of the server, "
      "compared with the line\n"
      "%8s  %-22s %8s %10s %10s %7s\n",
      static_cast<unsigned long long>(setting.parameters), a.format.c_str(),
      ByteSizeText(setting.credit_bytes).c_str(), "workers", "order of arrival", "clocks",
      "peak MiB", "line MiB", "ratio");
  for (const uint32_t workers : a.workers) {
    for (const auto order : {BenchLoad::Order::kTogether, BenchLoad::Order::kEvenFirst,
                             BenchLoad::Order::kBackwards, BenchLoad::Order::kStraggler}) {
      if (workers == 1 && order != BenchLoad::Order::kTogether) continue;
      setting.workers = workers;
      setting.order = order;
      ASSIGN_OR_RETURN(const MemoryFigures figures, MeasureMemory(setting));
      const double ratio =
          static_cast<double>(figures.peak_bytes) / static_cast<double>(figures.line_bytes);
      std::printf("%8u  %-22s %8llu %10.0f %10.0f %7.2f%s\n", workers, OrderName(order),
                  static_cast<unsigned long long>(figures.clocks),
                  static_cast<double>(figures.peak_bytes) / (1 << 20),
                  static_cast<double>(figures.line_bytes) / (1 << 20), ratio,
                  ratio > 1 ? "  ABOVE" : "");
      FlushResults().IgnoreError();  // an error is reported at the end
      json["memory"].push_back({{"workers", workers},
                                {"order", OrderName(order)},
                                {"clocks", figures.clocks},
                                {"peak_bytes", figures.peak_bytes},
                                {"line_bytes", figures.line_bytes}});
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const ServerArguments& a) {
  RETURN_IF_ERROR(Check(a));
  nlohmann::json json = {{"machine", MachineAsJson()}};
  RETURN_IF_ERROR(a.memory ? RunMemory(a, json) : RunArithmetic(a, json));
  return a.json.empty() ? absl::OkStatus() : WriteJsonFile(a.json, json);
}

}  // namespace

void AddBenchServer(CLI::App& bench, Command& chosen) {
  auto a = std::make_shared<ServerArguments>();
  CLI::App* command = bench.add_subcommand(
      "server", "A lane's arithmetic without a network, or with --memory the memory of a server");
  command->add_option("--parameters", a->parameters,
                      "Number of parameters; default: 100000000, with --memory 33554432");
  command->add_option("--virtual-workers", a->virtual_workers, "Gradients in a sum")
      ->capture_default_str();
  command->add_option("--runs", a->runs, "Measurements of each; they alternate")
      ->capture_default_str();
  command->add_flag(
      "--memory", a->memory,
      "Measure the server's memory, with real workers over TCP in four orders of arrival");
  command->add_option("--workers", a->workers, "With --memory: numbers of workers")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--format", a->format,
                   "Format of pulls, with --memory also of pushes: fp32, bf16; with bf16 the "
                   "update writes a copy")
      ->capture_default_str();
  command->add_option("--credit", a->credit, "With --memory: bytes a worker may have in flight")
      ->capture_default_str();
  command->add_option("--seconds", a->seconds, "With --memory: seconds per measurement")
      ->capture_default_str();
  command->add_option("--json", a->json, "JSON file for all runs")->type_name("FILE");
  command->footer(
      "The line is the expected memory: per parameter 12 bytes for weights and Adam's state, 4 for "
      "the sum, 4 for the previous\n"
      "copy that pulls may request, 2 for a bf16 copy, if any; plus the credit of all workers and "
      "64 MiB.\n"
      "Examples:\n"
      "  tug bench server --parameters 100000000\n"
      "  tug bench server --memory --workers 1,2,4,8");
  command->callback([a, &chosen] { chosen = [a] { return Run(*a); }; });
}

}  // namespace tug
