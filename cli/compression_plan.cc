#include "cli/compression_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
#include "cli/ruled_fields.h"
#include "experiment/link_plan.h"
#include "google/protobuf/descriptor.h"
#include "proto/job_config.h"

namespace tug {
namespace {

constexpr uint32_t kLeastMeasuredSteps = 3;

constexpr RuledField kRuledFields[] = {
    {"compute", "the experiment is of trainings"},
    {"replay.", "the experiment is of trainings"},
    {"cluster.workers", "use --workers"},
    {"cluster.virtual_workers", "each worker carries one; use --workers"},
    {"cluster.servers", "use --servers"},
    {"train.steps", "use --link-steps and --train-steps"},
    {"sync.policy", "the experiment is of BSP"},
    {"comm.push_codec", "use --codecs"},
    {"comm.push_codec.error_feedback", "use --codecs"},
    {"comm.pull_format", "use --codecs"},
    {"comm.impair.rate_mbit", "use --links"},
};

// Codecs within comm.push_codec; how they are applied (min_elements, blocks) is the user's.
absl::Status CheckCodecOverrides(const CompressionArguments& a) {
  for (const std::string& text : a.overrides) {
    absl::string_view path = text;
    if (!absl::ConsumePrefix(&path, "comm.push_codec.")) continue;
    const auto* field = PushCodecConfig::descriptor()->FindFieldByName(
        std::string(path.substr(0, path.find_first_of(".="))));
    if (field != nullptr && field->real_containing_oneof() != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", text, ": not in this experiment: use --codecs"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const CompressionArguments& a) {
  RETURN_IF_ERROR(CheckNumber("--workers", a.workers, 1, kMostWorkers));
  RETURN_IF_ERROR(CheckNumber("--servers", a.servers, 1, kMostServers));
  RETURN_IF_ERROR(CheckNumber("--hosts", a.hosts, 0, kMostHosts));
  RETURN_IF_ERROR(CheckNumber("--link-steps", a.link_steps, kLeastMeasuredSteps, 1e6));
  RETURN_IF_ERROR(CheckNumber("--warm-up", a.warm_up, 0, 1e6));
  RETURN_IF_ERROR(CheckNumber("--loss-margin", a.loss_margin, 0, 100));
  for (const double rate : a.learning_rates) {
    RETURN_IF_ERROR(CheckNumber("--learning-rates", rate, 1e-9, 100));
  }
  if (a.parts.empty() || a.codecs.empty() || a.links.empty()) {
    return absl::InvalidArgumentError("--parts, --codecs and --links need a value each");
  }
  RETURN_IF_ERROR(CheckOverrides(a.overrides, kRuledFields));
  return CheckCodecOverrides(a);
}

absl::StatusOr<std::vector<CodecCase>> PlanCodecs(const CompressionArguments& a) {
  ASSIGN_OR_RETURN(std::vector<CodecCase> codecs, ParseList("--codecs", a.codecs, &ParseCodecCase));
  if (std::none_of(codecs.begin(), codecs.end(), [](const CodecCase& c) { return c.is_fp32(); })) {
    return absl::InvalidArgumentError(
        "--codecs: name fp32 too, which the others are measured against");
  }
  return codecs;
}

absl::StatusOr<std::vector<PlannedLink>> PlanLinks(const CompressionArguments& a) {
  ASSIGN_OR_RETURN(std::vector<PlannedLink> links,
                   ParseList("--links", a.links, &ParsePlannedLink));
  const bool crosses =
      BusiestLinkModels({.servers = a.servers, .workers = a.workers, .hosts = a.hosts}) > 0;
  for (const PlannedLink& link : links) {
    if (link.bits_per_second == 0 || crosses) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--hosts ", a.hosts, ": nothing would cross a link; give at least 2"));
  }
  return links;
}

// As the folder of a run can be called, each codec otherwise.
std::string FolderName(const CodecCase& codec) {
  return absl::StrReplaceAll(
      codec.name, {{":", ""}, {"/", "-pull-"}, {"+ef", "-with-ef"}, {"-ef", "-without-ef"}});
}

// As its file and the command line have it, with FP32.
absl::StatusOr<JobConfig> ConfigOf(const CompressionArguments& a, const CompressionPlan& plan) {
  CompressionJob job{.codec = {.name = "fp32"}, .learns = true};
  ASSIGN_OR_RETURN(JobConfig config,
                   ParseJobConfig(plan.training.job_text, plan.training.FileName(),
                                  JobOverrides(a, plan, job, "text.txt")));
  if (config.compute() == JobConfig::REPLAY) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.training.FileName(), ": a replay has no gradients to compress"));
  }
  if (config.sync().policy() != SyncConfig::BSP) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.training.FileName(), ": sync.policy: the experiment is of BSP"));
  }
  return config;
}

void PlanLinkJobs(const CompressionArguments& a, const JobConfig& config, CompressionPlan& plan) {
  for (const PlannedLink& link : plan.links) {
    for (const CodecCase& codec : plan.codecs) {
      CompressionJob job{.codec = codec, .link = link};
      job.name = absl::StrCat("link-", link.name, "-", FolderName(codec));
      job.steps = uint64_t{a.warm_up} + a.link_steps;
      job.schedule = ScheduleOverrides(config, job.steps);
      plan.jobs.push_back(std::move(job));
    }
  }
}

void PlanLearningJobs(const CompressionArguments& a, const JobConfig& config,
                      CompressionPlan& plan) {
  std::vector<double> rates = a.learning_rates;
  if (rates.empty()) rates = {config.optimizer().learning_rate()};
  for (const CodecCase& codec : plan.codecs) {
    for (const double rate : rates) {
      CompressionJob job{
          .codec = codec, .link = {.name = kNoLink}, .learns = true, .learning_rate = rate};
      job.name = absl::StrCat("learning-", FolderName(codec),
                              rates.size() == 1 ? "" : absl::StrFormat("-rate%g", rate));
      job.steps = a.train_steps > 0 ? a.train_steps : config.train().steps();
      job.schedule = ScheduleOverrides(config, job.steps);
      plan.jobs.push_back(std::move(job));
    }
  }
}

// What a link adds, whatever the user says: the report says so.
std::vector<std::string> LinkOverrides(const CompressionArguments& a, const CompressionJob& job) {
  // Every measured step is one that the codec encodes, as it does at last.
  std::vector<std::string> overrides = {"comm.push_codec.warmup_steps=0"};
  if (absl::StartsWith(job.codec.push_text, "dgc ")) {
    overrides.push_back("comm.push_codec.dgc.density_warmup_steps=0");
  }
  if (job.link.bits_per_second == 0) return overrides;
  overrides.push_back("comm.shared_memory=false");
  if (a.hosts > 0) return overrides;
  overrides.push_back(
      absl::StrFormat("comm.impair.rate_mbit=%.9g", job.link.bits_per_second * 1e-6));
  overrides.push_back("cluster.lanes_per_server=1");  // each lane would have the rate
  return overrides;
}

}  // namespace

absl::StatusOr<CompressionPlan> PlanCompression(const CompressionArguments& a) {
  RETURN_IF_ERROR(CheckArguments(a));
  CompressionPlan plan;
  ASSIGN_OR_RETURN(plan.training, LoadExperimentTraining(a.job_file));
  ASSIGN_OR_RETURN(plan.codecs, PlanCodecs(a));
  ASSIGN_OR_RETURN(const JobConfig config, ConfigOf(a, plan));
  std::set<std::string> parts;
  for (const std::string& part : a.parts) {
    if ((part != "links" && part != "learning") || !parts.insert(part).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--parts ", part, ": links, learning or both, each once"));
    }
    if (part == "links") {
      ASSIGN_OR_RETURN(plan.links, PlanLinks(a));
      PlanLinkJobs(a, config, plan);
    } else {
      PlanLearningJobs(a, config, plan);
    }
  }
  std::set<std::string> names;
  for (const CompressionJob& job : plan.jobs) {
    if (!names.insert(job.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--learning-rates: two are one: ", job.name, " would run twice"));
    }
    // Mistakes are found before anything runs.
    const auto parsed = ParseJobConfig(plan.training.job_text, plan.training.FileName(),
                                       JobOverrides(a, plan, job, "text.txt"));
    if (!parsed.ok()) {
      return absl::Status(parsed.status().code(), absl::StrCat("--codecs ", job.codec.name, ": ",
                                                               parsed.status().message()));
    }
  }
  return plan;
}

std::vector<std::string> JobOverrides(const CompressionArguments& a, const CompressionPlan& plan,
                                      const CompressionJob& job, const std::string& text_path) {
  std::vector<std::string> overrides = {
      absl::StrCat("cluster.workers=", a.workers),
      absl::StrCat("cluster.virtual_workers=", a.workers),
      absl::StrCat("cluster.servers=", a.servers), "checkpoint.interval=0",
      // Steps are dated when the coordinator hears of them.
      "fault.heartbeat_ms=20", absl::StrCat("comm.push_codec={", job.codec.push_text, "}"),
      absl::StrCat("comm.pull_format=", CommConfig::Format_Name(job.codec.pull))};
  if (job.codec.pull_density > 0) {
    overrides.push_back(absl::StrFormat("comm.pull_density=%.9g", job.codec.pull_density));
  }
  const auto add = [&](const std::vector<std::string>& more) {
    overrides.insert(overrides.end(), more.begin(), more.end());
  };
  if (plan.training.job_path.empty()) add({absl::StrCat("data.path=", text_path)});
  if (job.steps > 0) add({absl::StrCat("train.steps=", job.steps)});
  add(job.schedule);
  add(a.overrides);
  if (!job.learns) {
    add({"train.eval_interval=0"});
    add(LinkOverrides(a, job));
  } else if (job.learning_rate > 0) {
    add({absl::StrFormat("optimizer.learning_rate=%.9g", job.learning_rate)});
  }
  return overrides;
}

}  // namespace tug
