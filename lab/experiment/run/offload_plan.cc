// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/offload_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "lab/experiment/run/experiment_arguments.h"
#include "process/ruled_fields.h"

namespace tug {
namespace {

constexpr uint32_t kMinMeasuredSteps = 3;
constexpr double kMaxTracedSteps = 1000;  // limit of trace.steps

constexpr char kOffloadJob[] =
    "# A small GPT on a made-up text (text.txt), large enough that a step is mostly computing.\n"
    "name: \"offload\"\n"
    "data { path: \"text.txt\" tokenizer: CHARACTER }\n"
    "model { layers: 6 width: 256 heads: 4 context: 128 vocabulary: 4096 }\n"
    "train { steps: 100 global_batch: 4 }\n"
    "optimizer { learning_rate: 1e-3 warmup_steps: 10 }\n"
    "comm { segment_elements: 65536 }\n";

constexpr RuledField kRuledFields[] = {
    {"compute", "name a JOB that trains a model"},
    {"cluster.workers", "the experiment uses one worker"},
    {"cluster.virtual_workers", "the experiment uses one worker"},
    {"cluster.servers", "use --servers"},
    {"train.steps", "use --warm-up and --steps"},
    {"train.eval_interval", "the experiment measures steps without evaluations between them"},
    {"trace.", "the experiment traces the measured steps"},
    {"optimizer.clip", "use --cases: clipping decides what an update waits for"},
    {"optimizer.clip_norm", "no case clips gradients, so that weights are the same in all cases"},
    {"sync.", "the experiment uses BSP"},
    {"placement.kind", "the experiment compares with servers"},
    {"exchange", "the experiment compares with servers"},
    {"comm.push_codec", "gradients are not encoded, so that weights are the same in all cases"},
    {"comm.push_codec.", "gradients are not encoded, so that weights are the same in all cases"},
    {"comm.pull_format", "weights are pulled in the format that the model computes in"},
    {"comm.scheduler", "use --cases"},
};

absl::Status CheckArguments(const OffloadArguments& a) {
  RETURN_IF_ERROR(CheckNumber("--servers", a.servers, 1, kMaxServers));
  RETURN_IF_ERROR(CheckNumber("--warm-up", a.warm_up, 1, 1e6));
  RETURN_IF_ERROR(CheckNumber("--steps", a.steps, kMinMeasuredSteps, kMaxTracedSteps));
  if (a.cases.empty()) return absl::InvalidArgumentError("--cases needs a value");
  return CheckOverrides(a.overrides, kRuledFields);
}

// All cases get as many compute threads as the worker of a job, so that they do not differ in that.
std::string ComputeThreads(const OffloadArguments& a, const CpuBudget& host,
                           const ClusterConfig& cluster) {
  if (cluster.compute_threads() > 0) return "";
  const HostLoad load{.servers = static_cast<int>(a.servers),
                      .lanes_per_server = static_cast<int>(cluster.lanes_per_server()),
                      .workers = 1};
  return absl::StrCat("cluster.compute_threads=", DefaultComputeThreads(host.usable, load));
}

}  // namespace

absl::StatusOr<OffloadPlan> PlanOffload(const OffloadArguments& a, const CpuBudget& host) {
  RETURN_IF_ERROR(CheckArguments(a));
  OffloadPlan plan;
  ASSIGN_OR_RETURN(plan.cases, ParseList("--cases", a.cases, &ParseOffloadKind));
  if (a.job_file.empty()) {
    plan.training = {.job_text = kOffloadJob,
                     .about = "Training of a small GPT on a made-up text."};
  } else {
    ASSIGN_OR_RETURN(plan.training, LoadExperimentTraining(a.job_file));
  }
  // Parsed before plan.schedule is set, the job has its own schedule and threads.
  const auto parse = [&] {
    return ParseJobConfig(plan.training.job_text, plan.training.FileName(),
                          JobOverrides(a, plan, plan.cases.front(), ""));
  };
  ASSIGN_OR_RETURN(plan.config, parse());
  if (plan.config.compute() == JobConfig::REPLAY || plan.config.model().external()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.training.FileName(),
                     ": the experiment needs a job that trains tug's own model (no compute: "
                     "REPLAY, no model.external)"));
  }
  plan.schedule = ScheduleOverrides(plan.config, uint64_t{a.warm_up} + a.steps);
  const std::string threads = ComputeThreads(a, host, plan.config.cluster());
  if (!threads.empty()) plan.schedule.push_back(threads);
  ASSIGN_OR_RETURN(plan.config, parse());
  return plan;
}

std::vector<std::string> JobOverrides(const OffloadArguments& a, const OffloadPlan& plan,
                                      OffloadKind kind, const std::string& text_path) {
  std::vector<std::string> overrides = {"cluster.workers=1",
                                        "cluster.virtual_workers=1",
                                        absl::StrCat("cluster.servers=", a.servers),
                                        "placement.kind=SERVERS",
                                        "exchange=PUSH_PULL",
                                        "sync.policy=BSP",
                                        "sync.local_steps=1",
                                        "sync.record=OFF",
                                        "comm.push_codec={}",
                                        "comm.pull_format=FORMAT_DEFAULT",
                                        "train.eval_interval=0",
                                        "checkpoint.interval=0",
                                        absl::StrCat("trace.first_step=", a.warm_up + 1),
                                        absl::StrCat("trace.steps=", a.steps),
                                        "optimizer.clip_norm=1000000"};
  const auto add = [&](const std::vector<std::string>& more) {
    overrides.insert(overrides.end(), more.begin(), more.end());
  };
  if (kind == OffloadKind::kOffload) {
    // The norm of all blocks is known at the end of the backward pass, so updates wait for it.
    add({"optimizer.clip=GLOBAL", "comm.scheduler=FIFO"});
  } else {
    add({"optimizer.clip=OFF", "comm.scheduler=BYTESCHEDULER"});
  }
  if (a.job_file.empty() && !text_path.empty()) add({absl::StrCat("data.path=", text_path)});
  if (!plan.schedule.empty()) {
    add({absl::StrCat("train.steps=", uint64_t{a.warm_up} + a.steps)});
    add(plan.schedule);
  }
  add(a.overrides);
  return overrides;
}

}  // namespace tug
