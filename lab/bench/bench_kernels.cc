// SPDX-License-Identifier: Apache-2.0
// tug bench kernels: arithmetic of a server lane, compared with the memory limit of one core.
//
// 1. Fill the arrays, which are large, so that all data comes from memory.
// 2. Warm up: everything once.
// 3. `runs` times, everything in turn, `a += b` just before each, so that drift of the machine
// affects both and their ratio stays. Times are the thread's processor time, which excludes other
// users of the core.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "kernels/adamw.h"
#include "kernels/bf16.h"
#include "kernels/sum.h"
#include "lab/bench/bench_command.h"
#include "limits/bench_stats.h"
#include "limits/huge_array.h"
#include "limits/stream_loops.h"
#include "proto/wire.h"

namespace tug {
namespace {

struct BenchKernels {
  int64_t parameters = 100'000'000;
  int runs = 5;
};

// A lane's state of a segment, and a gradient: 22 bytes per parameter.
struct Arrays {
  explicit Arrays(size_t n) : g(n), w(n), m(n), v(n), out(n), narrow(n) {
    for (size_t i = 0; i < n; ++i) {
      const float spread = static_cast<float>(i % 1000) * 1e-3f;  // varied values, none denormal
      g.data()[i] = 0.01f + 0.01f * spread;
      w.data()[i] = 1.0f + spread;
      m.data()[i] = 1e-3f + 1e-3f * spread;
      v.data()[i] = 1e-4f + 1e-4f * spread;
    }
  }
  HugeArray<float> g, w, m, v, out;
  HugeArray<kernels::Bf16> narrow;
};

struct Case {
  const char* name;
  int bytes;  // read and written per element by the program, without read-for-ownership
  std::function<void()> work;
};

// Receives results that are otherwise unused, so that they are computed.
volatile uint64_t sink;

std::vector<Case> Limits(const Arrays& arrays) {
  const auto n = static_cast<int64_t>(arrays.g.span().size());
  const float* g = arrays.g.data();
  const float* w = arrays.w.data();
  float* out = arrays.out.data();
  const size_t bytes = arrays.g.span().size_bytes();
  return {
      {"a += b", 12, [=] { StreamAdd(out, g, n); }},
      {"memcpy", 8, [=] { std::memcpy(out, g, bytes); }},
      {"triad a = b + s c", 12, [=] { StreamTriad(out, w, g, 3.0f, n); }},
      {"read", 4, [=] { sink = StreamRead(reinterpret_cast<const uint32_t*>(g), n); }},
  };
}

std::vector<Case> Kernels(const Arrays& arrays) {
  const auto n = static_cast<int64_t>(arrays.g.span().size());
  const float* g = arrays.g.data();
  float* w = arrays.w.data();
  float* m = arrays.m.data();
  float* v = arrays.v.data();
  float* out = arrays.out.data();
  kernels::Bf16* narrow = arrays.narrow.data();
  const auto adamw = [=](float* w_out, kernels::Bf16* w_out_bf16) {
    const kernels::AdamWParams params{.weight_decay = 0.1f, .t = 1000};
    kernels::AdamWStep(params, {n, g, w, w_out, m, v, w_out_bf16});
  };
  return {
      {"AddAndCheck", 12, [=] { sink = kernels::AddAndCheck(g, out, n); }},
      {"SumAndCheck", 12, [=] { sink = kernels::SumAndCheck(w, g, out, n); }},
      {"CopyAndCheck", 8, [=] { sink = kernels::CopyAndCheck(g, out, n); }},
      {"AllFinite", 4, [=] { sink = kernels::AllFinite(g, n); }},
      {"Bf16FromFloat", 6, [=] { kernels::Bf16FromFloat(w, narrow, n); }},
      {"FloatFromBf16", 6, [=] { kernels::FloatFromBf16(narrow, out, n); }},
      {"AddAndCheckBf16", 10, [=] { sink = kernels::AddAndCheckBf16(narrow, out, n); }},
      {"CopyAndCheckBf16", 6, [=] { sink = kernels::CopyAndCheckBf16(narrow, out, n); }},
      {"AdamW", 28, [=] { adamw(w, nullptr); }},
      {"AdamW + bf16 copy", 30, [=] { adamw(w, narrow); }},
      {"AdamW apart", 28, [=] { adamw(out, nullptr); }},
      {"AdamW apart + bf16 copy", 30, [=] { adamw(out, narrow); }},
      {"XXH3 checksum", 4,
       [=, bytes = std::as_bytes(arrays.g.span())] { sink = PayloadChecksum(bytes); }},
  };
}

// Per element, one value per run.
struct Times {
  std::vector<double> ns;
  std::vector<double> of_add;  // divided by the time of `a += b` just before
};

void PrintLine(const Case& measured, int add_bytes, const Times& times) {
  const Spread ns = SpreadOf(times.ns);
  const Spread of_add = SpreadOf(times.of_add);
  std::printf("%-24s %-24s %6.2f  %-24s %6.3f\n", measured.name, FormatSpread(ns, 3).c_str(),
              measured.bytes / ns.median, FormatSpread(of_add, 3).c_str(),
              measured.bytes / of_add.median / add_bytes);
}

absl::Status Bench(const BenchKernels& command) {
  ASSIGN_OR_RETURN(const int core, PinToThisCore());
  const double elements = static_cast<double>(command.parameters);
  const Arrays arrays(static_cast<size_t>(command.parameters));
  std::vector<Case> cases = Limits(arrays);
  const Case add = cases[0];
  const size_t limits = cases.size();
  for (Case& kernel : Kernels(arrays)) cases.push_back(std::move(kernel));
  for (const Case& warm_up : cases) warm_up.work();

  std::vector<Times> times(cases.size());
  const auto ns_of = [&](const Case& one) { return CpuSecondsOf(one.work) * 1e9 / elements; };
  for (int run = 0; run < command.runs; ++run) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const double add_ns = ns_of(add);
      const double ns = ns_of(cases[i]);
      times[i].ns.push_back(ns);
      times[i].of_add.push_back(ns / add_ns);
    }
  }

  std::printf(
      "%lld elements, core %d, %s; medians of %d runs (range)\n\n"
      "%-24s %-24s %6s  %-24s %6s\n",
      static_cast<long long>(command.parameters), core, InstructionSet().c_str(), command.runs, "",
      "ns per element", "GB/s", "time / that of a += b", "rate /");
  for (size_t i = 0; i < cases.size(); ++i) {
    if (i == limits) std::printf("\n");
    PrintLine(cases[i], add.bytes, times[i]);
  }
  std::printf(
      "\n"
      "Times are processor time; GB/s counts the bytes that the program reads and writes. Both "
      "are\n"
      "also shown relative to `a += b`, run just before.\n");
  return absl::OkStatus();
}

}  // namespace

void AddBenchKernels(CLI::App& bench, Command& chosen) {
  auto arguments = std::make_shared<BenchKernels>();
  CLI::App* command = bench.add_subcommand(
      "kernels", "The arithmetic of a server on one core: sums, casts, AdamW, checksum");
  command
      ->add_option("--parameters", arguments->parameters,
                   "Elements of every array; 22 bytes of memory each")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000'000'000}))
      ->capture_default_str();
  command->add_option("--runs", arguments->runs, "Repetitions; the table shows medians")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->footer(
      "Examples:\n  tug bench kernels\n  tug bench kernels --parameters 262144 --runs 101\n"
      "The second measures one segment, which stays in the caches.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Bench(*arguments); }; });
}

}  // namespace tug
