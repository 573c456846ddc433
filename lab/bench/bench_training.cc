// SPDX-License-Identifier: Apache-2.0
// tug bench training: trains a job's model alone on this machine's device, without servers, as a
// baseline for jobs.
//
// 1. Load the job file, with one worker and no clipping; tokenize its text in a temporary folder.
// 2. Initialise the weights as lanes do; run warm-up steps, then measured steps.
// 3. Measure the device's time of each pass and update; a step lasts from the end of one update to
// the end of the next.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/cpu_affinity.h"
#include "base/cpu/thread_pool.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "config/job_config.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/service/job_setup.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "lab/bench/bench_table.h"
#include "lab/recorded/checkpoint_values.h"
#include "limits/bench_stats.h"
#include "model/layout.h"
#include "nlohmann/json.hpp"
#include "process/commands.h"
#include "process/temporary_folder.h"
#include "worker/solo/solo_gpu.h"
#include "worker/solo/solo_training.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct BenchTraining {
  std::string job_file;
  std::vector<std::string> overrides;
  uint32_t warm_up = 5;
  uint32_t steps = 20;
  int gpu = 0;
  std::string json;
};

absl::StatusOr<JobConfig> LoadConfig(const BenchTraining& a) {
  std::vector<std::string> overrides = a.overrides;
  // One worker computes the whole batch.
  overrides.insert(overrides.end(), {"cluster.workers=1", "cluster.virtual_workers=1"});
  ASSIGN_OR_RETURN(JobConfig config, LoadJobConfig(a.job_file, overrides));
  if (config.compute() == JobConfig::REPLAY || config.model().external() ||
      config.sync().local_steps() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(a.job_file,
                     ": bench training needs a job with its own model: remove compute: REPLAY, "
                     "model.external and sync.local_steps"));
  }
  return config;
}

absl::StatusOr<std::unique_ptr<SoloDevice>> MakeDevice(const BenchTraining& a,
                                                       const SoloDeviceOptions& options,
                                                       ThreadPool& pool, bool& on_gpu) {
  on_gpu = false;
  if (options.config.device() == ClusterConfig::CPU) return NewSoloCpu(options, pool);
  absl::StatusOr<std::unique_ptr<SoloDevice>> made = NewSoloGpu(a.gpu, options);
  on_gpu = made.ok();
  const bool must = options.config.device() == ClusterConfig::CUDA;
  const bool none = absl::IsUnavailable(made.status()) || absl::IsUnimplemented(made.status()) ||
                    absl::IsResourceExhausted(made.status());
  if (made.ok() || (!must && !none)) return made;
  if (must) {
    return absl::FailedPreconditionError(
        absl::StrCat("device: CUDA, but ", made.status().message(), ": set device to AUTO or CPU"));
  }
  return NewSoloCpu(options, pool);
}

// Includes the step before the measured ones: the first measured step begins with the end of its
// update.
TraceRange TracedSteps(const BenchTraining& a) {
  return {.first = uint64_t{a.warm_up} - 1, .end = uint64_t{a.warm_up} + a.steps};
}

// Checks that all passes of these steps can be recorded. Errors: INVALID_ARGUMENT.
absl::Status CheckPasses(const BenchTraining& a, const JobConfig& config, size_t blocks) {
  const TraceRange traced = TracedSteps(a);
  const uint64_t micro_batches = config.train().global_batch() / config.train().micro_batch();
  const uint64_t passes = (traced.end - traced.first) * (2 * blocks * micro_batches + 1);
  if (passes <= Trace::kEventsPerTrack) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--steps ", a.steps, ": ", passes, " passes and updates, of which only ",
                   Trace::kEventsPerTrack, " can be recorded: lower --steps"));
}

// Per measured step, from the end of the previous update to the end of its own. `utilisation`: part
// of that time in which the device was busy, over all steps.
struct StepTimes {
  std::vector<double> seconds;
  double utilisation = 0;
};

StepTimes TimesOf(const TraceTrack& track, uint64_t first) {
  StepTimes times;
  int64_t begin_ns = 0, end_ns = 0, busy_ns = 0;
  for (const TraceEvent& event : track.events()) {
    if (event.clock >= first) busy_ns += event.end_ns - event.begin_ns;
    if (event.kind != TraceKind::kOptimizer) continue;
    if (event.clock >= first) {
      times.seconds.push_back(static_cast<double>(event.end_ns - end_ns) * 1e-9);
    } else {
      begin_ns = event.end_ns;
    }
    end_ns = event.end_ns;
  }
  times.utilisation = static_cast<double>(busy_ns) / static_cast<double>(end_ns - begin_ns);
  return times;
}

Json SpansJson(const TraceTrack& track) {
  Json spans = Json::array();
  const int64_t origin_ns = track.events().front().begin_ns;
  for (const TraceEvent& event : track.events()) {
    spans.push_back({{"kind", kTraceKindNames[static_cast<size_t>(event.kind)]},
                     {"step", event.clock + 1},
                     {"block", event.block},
                     {"begin_seconds", static_cast<double>(event.begin_ns - origin_ns) * 1e-9},
                     {"end_seconds", static_cast<double>(event.end_ns - origin_ns) * 1e-9}});
  }
  return spans;
}

struct Prepared {
  CoordinatorOptions job;
  BlockTable blocks;
  SegmentTable table;
  std::optional<TokenFile> tokens;
  std::unique_ptr<Sampler> sampler;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(const BenchTraining& a,
                                                  const std::string& folder) {
  ASSIGN_OR_RETURN(const JobConfig config, LoadConfig(a));
  ASSIGN_OR_RETURN(CoordinatorOptions job, SetUpJob(config, folder, std::nullopt));
  const BlockTable blocks = ModelLayout(job.config.model(), job.config.data().resolved_symbols(),
                                        DataClasses(job.config.data()));
  ASSIGN_OR_RETURN(SegmentTable table,
                   SegmentTable::Create(blocks, job.config.comm().segment_elements()));
  auto prepared = std::make_unique<Prepared>(
      Prepared{std::move(job), blocks, std::move(table), std::nullopt, nullptr});
  const JobConfig& resolved = prepared->job.config;
  if (resolved.data().random().samples() == 0) {
    ASSIGN_OR_RETURN(prepared->tokens, TokenFile::Open(absl::StrCat(folder, "/", kTokenFile)));
  }
  ASSIGN_OR_RETURN(prepared->sampler,
                   MakeSampler(resolved, prepared->tokens ? &*prepared->tokens : nullptr));
  return prepared;
}

Spread MillisecondsOf(const StepTimes& times) {
  std::vector<double> values;
  for (const double seconds : times.seconds) values.push_back(seconds * 1e3);
  return SpreadOf(values);
}

uint64_t ParametersOf(const SegmentTable& table) {
  uint64_t parameters = 0;
  for (uint32_t b = 0; b < table.num_blocks(); ++b) parameters += table.block_elements(b);
  return parameters;
}

absl::Status Bench(const BenchTraining& a) {
  TemporaryFolder folder;  // for the tokens
  RETURN_IF_ERROR(folder.Make("bench"));
  ASSIGN_OR_RETURN(const std::unique_ptr<Prepared> prepared, Prepare(a, folder.path()));
  const JobConfig& config = prepared->job.config;
  RETURN_IF_ERROR(CheckPasses(a, config, prepared->table.num_blocks()));
  const SoloDeviceOptions options{config, prepared->table};
  const int threads = config.cluster().compute_threads() > 0
                          ? static_cast<int>(config.cluster().compute_threads())
                          : ReadCpuBudget().usable;
  ThreadPool pool(threads);
  bool on_gpu = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<SoloDevice> device, MakeDevice(a, options, pool, on_gpu));
  ASSIGN_OR_RETURN(const std::vector<std::vector<float>> weights,
                   StartWeights(config, prepared->blocks, prepared->table));
  RETURN_IF_ERROR(device->SetWeights(weights));

  const uint64_t first = a.warm_up, last = first + a.steps - 1;
  const RealTime time;
  TraceTrack track("device", TracedSteps(a), Trace::kEventsPerTrack, time);
  SoloTraining training(config, *prepared->sampler, *device, track);
  LossSums sums;
  for (uint64_t step = 0; step <= last; ++step) {
    RETURN_IF_ERROR(training.Step(step, step == last ? &sums : nullptr));
  }
  RETURN_IF_ERROR(device->model().Synchronize());
  RETURN_IF_ERROR(device->Collect());
  TUG_CHECK_EQ(track.dropped(), 0u);

  const StepTimes times = TimesOf(track, first);
  const Spread ms = MillisecondsOf(times);
  const double tokens = static_cast<double>(config.train().global_batch()) *
                        static_cast<double>(config.model().context());
  const double loss = sums.loss / static_cast<double>(sums.targets);
  const uint64_t parameters = ParametersOf(prepared->table);
  std::printf("%.2fM parameters on %s, %u samples of %u tokens per step\n",
              static_cast<double>(parameters) * 1e-6, device->name().c_str(),
              config.train().global_batch(), config.model().context());
  std::printf("step         %s ms (median of %u, range)\n", FormatSpread(ms, 2).c_str(), a.steps);
  std::printf("tokens/s     %.0f\n", tokens / ms.median * 1e3);
  std::printf("utilisation  %.1f%%\n", times.utilisation * 100);
  std::printf("on device    %.2f MB of weights, m and v, %.2f MB of gradients\n",
              static_cast<double>(device->state_bytes()) * 1e-6,
              static_cast<double>(device->gradient_bytes()) * 1e-6);
  std::printf("loss         %.6f in step %llu\n", loss, static_cast<unsigned long long>(last + 1));
  if (a.json.empty()) return absl::OkStatus();
  return WriteJsonFile(a.json, Json{{"device", device->name()},
                                    {"on_gpu", on_gpu},
                                    {"compute_threads", threads},
                                    {"parameters", parameters},
                                    {"tokens_per_step", tokens},
                                    {"state_bytes", device->state_bytes()},
                                    {"gradient_bytes", device->gradient_bytes()},
                                    {"step_seconds", times.seconds},
                                    {"utilisation", times.utilisation},
                                    {"loss", loss},
                                    {"spans", SpansJson(track)},
                                    {"machine", MachineAsJson()}});
}

}  // namespace

void AddBenchTraining(CLI::App& app, Command& chosen) {
  auto a = std::make_shared<BenchTraining>();
  CLI::App* command = app.get_subcommand("bench")->add_subcommand(
      "training",
      "Trains a model on this machine's device without an exchange: the baseline for a job");
  command->add_option("JOB", a->job_file, "Job file: model, data, batch, optimizer, device")
      ->required();
  command
      ->add_option("--set", a->overrides,
                   "Override a field: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command->add_option("--warm-up", a->warm_up, "Warm-up steps, not measured")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--steps", a->steps, "Measured steps")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--gpu", a->gpu, "Number of the GPU, unless device is CPU")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  command->add_option("--json", a->json, "JSON file for all figures and the times of each pass");
  command->footer(
      "Weights, gradients and AdamW's state are on the device. One worker, no clipping; on a CPU "
      "the\n"
      "weights are bit-identical to those of such a job. Utilisation: share of the time in which a "
      "pass or update runs.\n"
      "Examples:\n"
      "  tug bench training deploy/jobs/gpt_10m.textproto\n"
      "  tug bench training deploy/jobs/gpt2_124m.textproto --set device=CUDA --set "
      "train.precision=BF16");
  command->callback([a, &chosen] { chosen = [a] { return Bench(*a); }; });
}

}  // namespace tug
