// SPDX-License-Identifier: Apache-2.0
// tug plan: computes what a model needs on a cluster (docs/plan.md).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "plan/link_rate.h"
#include "plan/tables/plan_job.h"
#include "plan/tables/plan_options.h"
#include "plan/tables/plan_presets.h"
#include "plan/tables/plan_sections.h"
#include "plan/tables/plan_table.h"
#include "process/commands.h"

namespace tug {
namespace {

// Limits that keep counts exact in a double, and layouts small.
constexpr double kMaxParameters = 1e14, kMaxTokens = 1e18, kMaxGpus = 1e6, kMaxLayers = 65536,
                 kMaxWidth = 1 << 20, kMaxVocabulary = 1e7, kMaxContext = 1e8;

struct PlanArguments {
  std::string preset;
  std::string job_file;
  std::vector<std::string> overrides;
  PlanInputs inputs;
  std::string json;
  std::optional<uint32_t> job_vocabulary;
};

// Accepts 7500000000 or 7.5e9 within a range; with `whole` no fraction.
CLI::Validator Number(double least, double most, bool whole) {
  const auto check = [=](std::string& text) -> std::string {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value >= least && value <= most) ||
        (whole && value != std::floor(value))) {
      return absl::StrFormat("%s is not a %s such as %s, from %.9g to %.9g", text,
                             whole ? "whole number" : "number",
                             whole ? "64 or 1e3" : "0.5 or 7.5e9", least, most);
    }
    if (whole) text = absl::StrFormat("%.0f", value);
    return "";
  };
  return CLI::Validator(check, "");
}
CLI::Validator Count(double most) { return Number(1, most, /*whole=*/true); }

CLI::Validator Rate() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return ParseLinkRate(text).ok()
                   ? ""
                   : absl::StrCat(text, ": not a rate such as 100mbit or 400gbit");
      },
      "");
}

absl::Status Print(const PlanArguments& arguments, const PlanInputs& plan, const std::string& name,
                   const LectureFigures& lectures, const PlanSection* memory_of_job) {
  std::vector<PlanSection> sections = {InputsSection(plan, name), ParametersSection(plan)};
  if (memory_of_job == nullptr) {
    sections.push_back(StatesSection(plan, lectures));
    sections.push_back(StagesSection(plan, lectures));
    sections.push_back(ParameterServerSection(plan));
  } else {
    sections.push_back(*memory_of_job);
    sections.push_back(StagesSection(plan, lectures));
  }
  sections.push_back(ActivationsSection(plan));
  sections.push_back(StepSection(plan));
  sections.push_back(DeadlineSection(plan, lectures));
  sections.push_back(TensorSection(plan));
  sections.push_back(PipelineSection(plan));
  std::printf("%s", PlanText(sections).c_str());
  return arguments.json.empty() ? absl::OkStatus()
                                : WriteFile(arguments.json, PlanJson(sections).dump(1) + "\n");
}

absl::Status PlanAJob(const PlanArguments& arguments) {
  ASSIGN_OR_RETURN(const PlanJob job, ReadPlanJob(arguments.job_file, arguments.overrides,
                                                  arguments.inputs, arguments.job_vocabulary));
  return Print(arguments, job.inputs, arguments.job_file, {}, &job.memory);
}

// Sets the options that the command line does not have.
void ApplyPreset(CLI::App& command, const PlanPreset& preset) {
  for (const auto& [name, value] : preset.arguments) {
    CLI::Option* option = command.get_option(name);
    if (option->count() > 0) continue;
    option->add_result(value);
    option->run_callback();
  }
}

// Whether a preset keeps the lectures' figures: only options are given that change none of them.
bool KeepsFigures(const CLI::App& command) {
  constexpr std::array kOthers = {"--preset", "--json",      "--servers",   "--memory-gb",
                                  "--link",   "--host-link", "--host-gpus", "--latency-us"};
  const auto keeps = [&](const CLI::Option* option) {
    return option->count() == 0 ||
           std::find(kOthers.begin(), kOthers.end(), option->get_name()) != kOthers.end();
  };
  const std::vector<const CLI::Option*> options = command.get_options();
  return std::all_of(options.begin(), options.end(), keeps);
}

Command PlanAModel(CLI::App& command, const std::shared_ptr<PlanArguments>& a) {
  std::string name = "a model given by options";
  LectureFigures lectures;
  for (const PlanPreset& preset : PlanPresets()) {
    if (preset.name != a->preset) continue;
    if (KeepsFigures(command)) lectures = preset.lectures;
    ApplyPreset(command, preset);
    name = absl::StrCat(preset.name, ": ", preset.description);
  }
  if (command.count("--days") > 0 && a->inputs.tokens == 0) {
    throw CLI::RequiresError("--days", "--tokens");
  }
  const absl::Status status = ResolvePlan(a->inputs);
  if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
  return [=] { return Print(*a, a->inputs, name, lectures, nullptr); };
}

// A job does not describe machines, so their options have no defaults.
Command PlanTheJob(const CLI::App& command, const std::shared_ptr<PlanArguments>& a) {
  PlanOptions& o = a->inputs;
  if (command.count("--tflops") == 0) o.tflops = 0;
  if (command.count("--link") == 0) o.link.clear();
  if (command.count("--host-link") == 0) o.host_link.clear();
  if (command.count("--memory-gb") == 0) o.memory_gb = 0;
  if (command.count("--vocabulary") > 0) a->job_vocabulary = static_cast<uint32_t>(o.vocabulary);
  return [a] { return PlanAJob(*a); };
}

// Options of a model and of its training, which a job file sets itself.
void AddModelOptions(CLI::App& command, CLI::Option* job, PlanOptions& o) {
  const auto add = [&](const char* name, auto& to, const CLI::Validator& form, const char* what) {
    return command.add_option(name, to, what)->transform(form)->excludes(job);
  };
  add("--parameters", o.parameters, Number(1, kMaxParameters, true),
      "Parameters, such as 7.5e9 [the shape's]");
  add("--layers", o.layers, Count(kMaxLayers), "Layers");
  add("--width", o.width, Count(kMaxWidth), "Width of the residual stream");
  add("--heads", o.heads, Count(kMaxWidth), "Attention heads");
  add("--context", o.context, Count(kMaxContext), "Tokens of a sequence")->capture_default_str();
  add("--precision", o.precision, CLI::IsMember({"mixed", "fp32"}),
      "mixed: 16-bit parameters and gradients, FP32 master weights; or fp32")
      ->capture_default_str();
  add("--activations-gb", o.activations_gb, Number(0, 1e9, false),
      "Activations per GPU, if known [by formula, from the shape]");
  add("--buffers-gb", o.buffers_gb, Number(0, 1e9, false), "Buffers and fragmentation per GPU")
      ->capture_default_str();
  add("--gpus", o.gpus, Count(kMaxGpus), "GPUs in all: data parallel x tensor x pipeline")
      ->capture_default_str();
  add("--tensor", o.tensor, Count(kMaxGpus), "GPUs that share a layer; divides the heads")
      ->capture_default_str();
  add("--pipeline", o.pipeline, Count(kMaxGpus), "Stages of layers; divides the layers")
      ->capture_default_str();
  command
      .add_flag("--sequence-parallel", o.sequence_parallel,
                "With tensor parallelism: divide all activations along the sequence")
      ->excludes(job);
  add("--servers", o.servers, Count(kMaxGpus),
      "Numbers of parameter servers in all [1, workers / 8, workers]")
      ->delimiter(',');
  add("--tokens", o.tokens, Number(1, kMaxTokens, true), "Tokens of the training, such as 300e9");
  add("--batch-tokens", o.batch_tokens, Number(1, kMaxTokens, true),
      "Tokens per step, over all GPUs [one micro-batch per GPU]");
  add("--micro-batch", o.micro_batch, Count(1e6), "Sequences that a GPU computes at once")
      ->capture_default_str();
  add("--recompute", o.recompute, CLI::IsMember({"none", "selective", "full"}),
      "Activations to recompute: none, selective or full")
      ->capture_default_str();
}

// Options of machines, and of what only a job's text determines; allowed with a job, but then
// without defaults.
void AddMachineOptions(CLI::App& command, PlanOptions& o) {
  const auto add = [&](const char* name, auto& to, const CLI::Validator& form, const char* what) {
    return command.add_option(name, to, what)->transform(form)->capture_default_str();
  };
  add("--vocabulary", o.vocabulary, Count(kMaxVocabulary),
      "Vocabulary size; for a job, if it depends on the text");
  add("--host-gpus", o.host_gpus, Count(kMaxGpus), "GPUs per host");
  add("--memory-gb", o.memory_gb, Number(1e-3, 1e6, false), "Memory of a GPU");
  add("--tflops", o.tflops, Number(1e-6, 1e9, false), "Peak of a GPU; default: an A100 in bf16");
  add("--utilization", o.utilization, Number(1e-6, 1, false),
      "Fraction of the peak achieved from end to end; default: 160 TFLOPS");
  add("--link", o.link, Rate(), "Link of a GPU to other hosts, each way")->type_name("RATE");
  add("--host-link", o.host_link, Rate(), "Link of a GPU within its host")->type_name("RATE");
  add("--latency-us", o.latency_us, Number(0, 1e9, false),
      "Latency of a message, in addition to its transmission");
  add("--days", o.days, Number(1e-3, 1e6, false), "Deadline of the training, in days");
}

}  // namespace

void AddPlanCommand(CLI::App& app, Command& chosen) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Estimates by formula what a model needs: memory, traffic, time, GPUs for a deadline");
  CLI::Option* job = command->add_option(
      "JOB", a->job_file, "Job file to plan; its settings can be changed with --set only");
  command
      ->add_option("--set", a->overrides, "Override a field of the job file: path.to.field=value")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->needs(job);
  std::vector<std::string> names;
  std::string presets = "Model from the lectures, as a set of the other options:";
  for (const PlanPreset& preset : PlanPresets()) {
    names.push_back(preset.name);
    absl::StrAppend(&presets, " ", preset.name, " (", preset.description, ")");
  }
  command->add_option("--preset", a->preset, presets)->check(CLI::IsMember(names))->excludes(job);
  AddModelOptions(*command, job, a->inputs);
  AddMachineOptions(*command, a->inputs);
  command->add_option("--json", a->json, "File to write all figures to, not rounded")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  tug plan --preset gpt3\n"
      "  tug plan --preset gpt3 --tensor 8 --pipeline 16 --recompute selective\n"
      "  tug plan --parameters 7.5e9 --gpus 64 --servers 1,8,64 --link 100gbit\n"
      "  tug plan --layers 32 --width 4096 --heads 32 --tokens 1e12 --days 60\n"
      "  tug plan job.textproto --set cluster.workers=4 --tflops 0.5 --link 1gbit");
  command->callback([a, job, command, &chosen] {
    chosen = job->count() > 0 ? PlanTheJob(*command, a) : PlanAModel(*command, a);
  });
}

}  // namespace tug
