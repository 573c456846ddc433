// tug plan: what a model needs on a cluster, by formula (docs/plan.md).
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/bench_table.h"
#include "cli/commands.h"
#include "cli/plan_job.h"
#include "cli/plan_options.h"
#include "cli/plan_presets.h"
#include "cli/plan_sections.h"
#include "cli/plan_table.h"

namespace tug {
namespace {

struct PlanArguments {
  std::string preset;
  std::string job_file;
  std::vector<std::string> overrides;
  PlanOptions options;
  std::string json;
};

std::vector<PlanSection> SectionsOf(const PlanInputs& plan, const LectureFigures& lectures) {
  return {InputsSection(plan),
          ParametersSection(plan),
          StatesSection(plan, lectures),
          StagesSection(plan, lectures),
          ParameterServerSection(plan),
          ActivationsSection(plan),
          StepSection(plan),
          DeadlineSection(plan, lectures),
          TensorSection(plan),
          PipelineSection(plan)};
}

absl::Status Plan(const PlanArguments& arguments) {
  PlanOptions options = arguments.options;
  LectureFigures lectures;
  std::string name = "a model by its options";
  for (const PlanPreset& preset : PlanPresets()) {
    if (preset.name != arguments.preset) continue;
    options = Overlay(options, preset.options);
    lectures = preset.lectures;
    name = absl::StrCat(preset.name, ": ", preset.description);
  }
  std::vector<PlanSection> memory_of_job;
  if (!arguments.job_file.empty()) {
    ASSIGN_OR_RETURN(PlanJob job,
                     ReadPlanJob(arguments.job_file, arguments.overrides, options.vocabulary));
    options.vocabulary.reset();  // the job's, which is at least as large
    options = Overlay(options, job.options);
    memory_of_job.push_back(std::move(job.memory));
    name = arguments.job_file;
  }
  ASSIGN_OR_RETURN(const PlanInputs plan, ResolvePlan(options));
  std::vector<PlanSection> sections = SectionsOf(plan, lectures);
  sections.front().title = absl::StrCat("Plan of ", name);
  sections.insert(sections.begin() + 5, memory_of_job.begin(), memory_of_job.end());
  std::printf("%s", PlanText(sections).c_str());
  return arguments.json.empty() ? absl::OkStatus()
                                : WriteJsonFile(arguments.json, PlanJson(sections));
}

// The model: one of a preset, a job file, a count, a shape (and a count).
void AddModelOptions(CLI::App& command, PlanArguments& a) {
  std::vector<std::string> names;
  std::string presets = "A model of the lectures:";
  for (const PlanPreset& preset : PlanPresets()) {
    names.push_back(preset.name);
    absl::StrAppend(&presets, " ", preset.name, " (", preset.description, ")");
  }
  CLI::Option* job = command.add_option("JOB", a.job_file,
                                        "Job file whose model, workers and servers are planned");
  command.add_option("--set", a.overrides, "Override a field of the job file: path.to.field=value")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->needs(job);
  CLI::Option* preset =
      command.add_option("--preset", a.preset, presets)->check(CLI::IsMember(names))->excludes(job);
  PlanOptions& o = a.options;
  const auto own = [&](CLI::Option* option) { option->excludes(job)->excludes(preset); };
  own(command.add_option("--parameters", o.parameters, "Parameters, such as 7.5e9 [the shape's]"));
  own(command.add_option("--layers", o.layers, "Layers"));
  own(command.add_option("--width", o.width, "Width of the residual stream"));
  own(command.add_option("--heads", o.heads, "Attention heads"));
  command.add_option("--context", o.context, "Tokens of a sequence [2048]")->excludes(job);
  command
      .add_option("--vocabulary", o.vocabulary, "Symbols; of a job, if its text decides [50257]")
      ->excludes(preset);
  command.add_option(
      "--precision", o.precision,
      "mixed (16-bit parameters and gradients, FP32 master weights) or fp32 [mixed]");
  command.add_option("--activations-gb", o.activations_gb,
                     "Activations of a GPU, where they are known [by formula, of a shape]");
  command.add_option("--buffers-gb", o.buffers_gb, "Buffers and fragmentation of a GPU [0]");
}

void AddClusterOptions(CLI::App& command, PlanOptions& o) {
  command.add_option("--gpus", o.gpus, "GPUs in all: data parallel x tensor x pipeline [64]");
  command.add_option("--tensor", o.tensor, "GPUs that share a layer; divides the heads [1]");
  command.add_option("--pipeline", o.pipeline, "Stages of layers; divides the layers [1]");
  command.add_option("--servers", o.servers, "Numbers of parameter servers [1, 2, 4, ... workers]")
      ->delimiter(',');
  command.add_option("--memory-gb", o.memory_gb, "Memory of a GPU [80]");
  command.add_option("--tflops", o.tflops, "Peak of a GPU [312, an A100 in bf16]");
  command.add_option("--utilization", o.utilization,
                     "Part of the peak that is achieved [160/312, as the lectures count]");
  command.add_option("--link", o.link, "Link of a GPU to other hosts, each way [400gbit]")
      ->type_name("RATE");
  command.add_option("--host-link", o.host_link, "Link of a GPU within its host [2400gbit]")
      ->type_name("RATE");
  command.add_option("--latency-us", o.latency_us, "Of a message, besides its transmission [5]");
}

void AddTrainingOptions(CLI::App& command, PlanOptions& o) {
  command.add_option("--tokens", o.tokens, "Tokens of the training, such as 300e9");
  command.add_option("--days", o.days, "Days that it may take [30]");
  command.add_option("--batch-tokens", o.batch_tokens,
                     "Tokens of a step, over all GPUs [a micro-batch each]");
  command.add_option("--micro-batch", o.micro_batch, "Sequences that a GPU computes at once [1]");
  command.add_option("--recompute", o.recompute,
                     "Activations that are computed again: none, selective or full [none]");
}

}  // namespace

void AddPlanCommand(CLI::App& app, Command& chosen) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Works out by formula what a model needs: memory, traffic, time, GPUs for a deadline");
  AddModelOptions(*command, *a);
  AddClusterOptions(*command, a->options);
  AddTrainingOptions(*command, a->options);
  command->add_option("--json", a->json, "File for all figures, not rounded")->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  tug plan --preset gpt3\n"
      "  tug plan --preset gpt3 --tensor 8 --pipeline 16 --recompute selective\n"
      "  tug plan --parameters 7.5e9 --gpus 64 --servers 1,8,64 --link 100gbit\n"
      "  tug plan --layers 32 --width 4096 --heads 32 --tokens 1e12 --days 60\n"
      "  tug plan job.textproto --set cluster.workers=4");
  command->callback([a, &chosen] { chosen = [a] { return Plan(*a); }; });
}

}  // namespace tug
