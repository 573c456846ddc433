// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_offload.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/files/replace_file.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "coordinator/observe/run_folder.h"
#include "lab/experiment/measures/figure_text.h"
#include "lab/experiment/measures/run_figures.h"
#include "lab/experiment/run/experiment_job.h"
#include "lab/experiment/sections/offload_report.h"
#include "lab/experiment/sections/offload_text.h"
#include "launch/launcher.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, std::string>> Settings(const OffloadArguments& a,
                                                          const OffloadPlan& plan) {
  const JobConfig& config = plan.config;
  const ModelConfig& model = config.model();
  return {
      {"training", plan.training.about},
      {"model", absl::StrFormat("%d layers of width %d, context %d, batch %d, %s", model.layers(),
                                model.width(), model.context(), config.train().global_batch(),
                                TrainConfig::Precision_Name(config.train().precision()))},
      {"device", absl::StrCat(ClusterConfig::Device_Name(config.device()), "; on a CPU ",
                              config.cluster().compute_threads(), " compute threads in all cases")},
      {"job", absl::StrCat("1 worker and ", a.servers, " servers on this machine")},
      {"clipping", "never takes effect, so that weights are the same in all cases"},
      {"steps", absl::StrCat(a.steps, " measured, after ", a.warm_up, " warm-up steps")}};
}

// Restricts all cases to one GPU, the first that this process may use: `plain` uses one, but a
// worker would use all. REQUIRES: the process has one thread.
absl::Status ShowOneGpu() {
  constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";
  const char* const visible = getenv(kVisible);
  const std::string all = visible == nullptr ? "0" : visible;
  if (setenv(kVisible, all.substr(0, all.find(',')).c_str(), /*overwrite=*/1) == 0) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("no memory for the environment");
}

// Runs a program to its end. Errors: ABORTED with its last output if it fails; CANCELLED:
// interrupted. REQUIRES: the process has one thread.
absl::Status RunProgram(const Program& program) {
  Launcher launcher;
  RETURN_IF_ERROR(launcher.Start(program).status());
  while (true) {
    const LaunchEvent event = launcher.Wait(absl::InfiniteFuture());
    if (event.interrupted) {
      return absl::CancelledError(absl::StrCat(program.name, ": interrupted"));
    }
    if (!event.ended.has_value()) continue;
    if (event.ended->exited_with_zero()) return absl::OkStatus();
    const std::string words = LastWords(program.log_path);
    return absl::AbortedError(
        absl::StrCat(program.name, " ", event.ended->How(), words.empty() ? "" : ": ", words));
  }
}

class OffloadExperiment {
 public:
  OffloadExperiment(const OffloadArguments& a, OffloadPlan plan) : a_(a), plan_(std::move(plan)) {}

  absl::Status Run();

 private:
  absl::Status WriteJobFile();
  absl::Status RunCase(OffloadKind kind);
  absl::StatusOr<OffloadRun> Measure(OffloadKind kind);
  absl::StatusOr<OffloadRun> MeasurePlain(const std::vector<std::string>& overrides);
  absl::StatusOr<OffloadRun> MeasureJob(OffloadKind kind,
                                        const std::vector<std::string>& overrides);
  absl::Status Write() const;
  absl::Status End() const;

  const OffloadArguments& a_;
  const OffloadPlan plan_;
  std::string out_;
  std::string job_file_;
  OffloadResults results_;
};

void PrintRun(const OffloadRun& run) {
  const std::string result =
      run.error.empty()
          ? absl::StrFormat("%8.1f ms per step, utilisation %s; bubbles: BP %.1f ms, FP %.1f ms",
                            run.StepSeconds() * 1e3, PercentText(Utilisation(run.steps)),
                            run.BpBubbleSeconds() * 1e3, run.FpBubbleSeconds() * 1e3)
          : absl::StrCat("failed: ", run.error);
  PrintLineToStderr(absl::StrFormat("  %-11s%s", run.row().name, result));
}

absl::Status OffloadExperiment::Run() {
  RETURN_IF_ERROR(CheckOutFolder(a_.out));
  ASSIGN_OR_RETURN(out_, CreateRunFolder(a_.out, "offload"));
  RETURN_IF_ERROR(WriteJobFile());
  const JobConfig& config = plan_.config;
  results_ = {.command = a_.command,
              .settings = Settings(a_, plan_),
              .tokens_per_step = static_cast<double>(config.train().global_batch()) *
                                 static_cast<double>(config.model().context())};
  for (const auto& [name, value] : results_.settings) PrintLineToStderr(name + ": " + value);
  for (const OffloadKind kind : plan_.cases) {
    RETURN_IF_ERROR(RunCase(kind));
    RETURN_IF_ERROR(Write());
  }
  std::printf("\n%s\n%s/report.html\n", OffloadMarkdown(results_).c_str(), out_.c_str());
  return End();
}

absl::Status OffloadExperiment::WriteJobFile() {
  job_file_ = plan_.training.job_path;
  if (!job_file_.empty()) return absl::OkStatus();
  job_file_ = out_ + "/job.textproto";
  RETURN_IF_ERROR(WriteFile(job_file_, plan_.training.job_text));
  return WriteTrainingText(out_);
}

absl::Status OffloadExperiment::RunCase(OffloadKind kind) {
  absl::StatusOr<OffloadRun> run = Measure(kind);
  if (absl::IsCancelled(run.status())) return run.status();
  const absl::Status status = run.ok() ? CheckSameDevice(results_, *run) : run.status();
  if (status.ok()) {
    results_.runs.push_back(*std::move(run));
  } else {
    OffloadRun& failed = results_.runs.emplace_back();
    failed.kind = kind;
    failed.error = std::string(status.message());
  }
  PrintRun(results_.runs.back());
  return absl::OkStatus();
}

absl::StatusOr<OffloadRun> OffloadExperiment::Measure(OffloadKind kind) {
  const std::vector<std::string> overrides = JobOverrides(a_, plan_, kind, TrainingTextPath(out_));
  return kind == OffloadKind::kPlain ? MeasurePlain(overrides) : MeasureJob(kind, overrides);
}

absl::StatusOr<OffloadRun> OffloadExperiment::MeasurePlain(
    const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const std::string executable, OwnExecutable());
  const std::string json = out_ + "/plain.json";
  Program program{
      .name = "plain",
      .argv = {executable, "bench", "training", job_file_, "--warm-up", absl::StrCat(a_.warm_up),
               "--steps", absl::StrCat(a_.steps), "--json", json},
      .log_path = out_ + "/plain.log"};
  for (const std::string& set : overrides) {
    program.argv.push_back("--set");
    program.argv.push_back(set);
  }
  RETURN_IF_ERROR(RunProgram(program));
  return ReadPlainRun(json);
}

absl::StatusOr<OffloadRun> OffloadExperiment::MeasureJob(
    OffloadKind kind, const std::vector<std::string>& overrides) {
  OffloadRun run{.kind = kind};
  const ExperimentJob job = {
      .name = run.row().name, .job_file = job_file_, .overrides = overrides, .servers = a_.servers};
  RETURN_IF_ERROR(RunExperimentJob(job, out_, /*testbed=*/nullptr));
  const std::string run_dir = absl::StrCat(out_, "/", job.name);
  ASSIGN_OR_RETURN(run.timeline, ReadDeviceTimeline(absl::StrCat(run_dir, "/", kTraceFile)));
  run.steps = DeviceSteps(run.timeline);
  run.device = run.timeline.on_gpu ? "a GPU" : "the CPU";
  ASSIGN_OR_RETURN(const RunFigures figures,
                   ReadRunFigures(absl::StrCat(run_dir, "/", kMetricsFile)));
  double seconds = 0, waited = 0;
  for (const StepPoint& point : StepsAfter(figures, a_.warm_up)) {
    seconds += point.step_seconds;
    waited += point.wait_seconds;
    run.loss = point.loss;
  }
  run.exposed = waited / seconds;
  for (const NodeFigures& node : figures.nodes) {
    if (!node.server) run.state_bytes = static_cast<double>(node.held.weights);
  }
  return run;
}

absl::Status OffloadExperiment::Write() const {
  RETURN_IF_ERROR(WriteFile(out_ + "/report.html", OffloadReportHtml(results_)));
  RETURN_IF_ERROR(WriteJson(out_ + "/offload.json", OffloadJson(results_)));
  return WriteFile(out_ + "/offload.md", OffloadMarkdown(results_));
}

absl::Status OffloadExperiment::End() const {
  const std::vector<std::string> failures = OffloadFailures(results_);
  if (failures.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(failures.size(), " of ", plan_.cases.size(),
                                         " cases failed: ", absl::StrJoin(failures, "; ")));
}

}  // namespace

absl::Status RunOffloadExperiment(const OffloadArguments& arguments) {
  RETURN_IF_ERROR(ShowOneGpu());
  ASSIGN_OR_RETURN(OffloadPlan plan, PlanOffload(arguments, ReadCpuBudget()));
  return OffloadExperiment(arguments, std::move(plan)).Run();
}

void AddExperimentOffload(CLI::App& experiment, Command& chosen) {
  auto a = std::make_shared<OffloadArguments>();
  CLI::App* command =
      experiment.add_subcommand("offload",
                                "Compares optimizer state on the device with state on servers: "
                                "utilisation over time, bubbles, memory");
  const auto one = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->capture_default_str();
  };
  command->add_option("JOB", a->job_file,
                      "Job file of a training run [a small GPT on a made-up text]");
  command
      ->add_option(
          "--cases", a->cases,
          "plain: all on the device, no servers; offload: servers in the host's memory, updates "
          "wait for the whole backward pass; overlapped: the same, but updates do not wait")
      ->delimiter(',')
      ->capture_default_str();
  one("--servers", a->servers, "Server processes, on this machine");
  one("--warm-up", a->warm_up, "Warm-up steps, not measured");
  one("--steps", a->steps, "Measured steps, all traced");
  AddOutAndSet(*command, "offload", a->out, a->overrides);
  command->footer(
      "Writes report.html (self-contained), offload.json, offload.md, and a run folder with "
      "trace.json for each job. The report lists failed cases.\n"
      "On a host with several GPUs all cases use the first one in CUDA_VISIBLE_DEVICES.\n"
      "Examples:\n"
      "  tug experiment offload --set device=CPU\n"
      "  tug experiment offload deploy/jobs/gpt2_124m.textproto --set device=CUDA --set "
      "train.precision=BF16 --set train.global_batch=32");
  command->callback([a, command, &chosen] {
    a->command = CommandLine("tug experiment offload", *command);
    chosen = [a] { return RunOffloadExperiment(*a); };
  });
}

}  // namespace tug
