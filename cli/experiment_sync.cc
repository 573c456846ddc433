#include "cli/experiment_sync.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu_affinity.h"
#include "base/status_macros.h"
#include "cli/experiment_job.h"
#include "cli/experiment_training.h"
#include "cli/testbed.h"
#include "coordinator/run_folder.h"
#include "experiment/sync_report.h"

namespace tug {
namespace {

std::vector<std::pair<std::string, std::string>> Settings(const SyncArguments& a,
                                                          const SyncPlan& plan) {
  const auto cores = static_cast<uint32_t>(ReadCpuBudget().usable);
  std::vector<std::pair<std::string, std::string>> settings = {
      {"job", absl::StrCat(a.workers, " workers, a virtual worker each, ", a.servers,
                           a.servers == 1 ? " server" : " servers")},
      {"network",
       a.hosts == 0
           ? absl::StrCat("this machine", plan.link.empty()
                                              ? ", shared memory"
                                              : absl::StrCat(", loopback; each process sends "
                                                             "at most ",
                                                             plan.link))
           : absl::StrCat(a.hosts, " hosts of deploy/testbed on one machine, links of ",
                          plan.link)},
      {"persistent straggler",
       absl::StrFormat("virtual worker 0 computes %g times as long", a.slowdown)},
      {"random pauses",
       absl::StrFormat("each worker with probability %g in a step, %g undisturbed steps long on "
                       "average (exponential)",
                       a.pause_probability, a.pause_steps)}};
  for (const PlannedPart& part : plan.parts) {
    if (part.throughput) {
      settings.push_back({"throughput", absl::StrCat(a.steps, " batches measured, after ",
                                                     a.warm_up, " that are not")});
    } else if (cores < a.workers + a.servers) {
      settings.push_back(
          {"learning", absl::StrFormat("%d workers share %d cores: while one is made slow, the "
                                       "others have its part. Compare speeds by the replay",
                                       a.workers, cores)});
    }
  }
  return settings;
}

class Experiment {
 public:
  Experiment(const SyncArguments& a, SyncPlan plan) : a_(a), plan_(std::move(plan)) {}

  absl::Status Run();

 private:
  void PrintPlan() const;
  absl::Status WriteJobFiles();
  absl::Status RunPart(PlannedPart& planned);
  absl::StatusOr<SyncRun> RunJob(const PlannedPart& planned, const SyncJob& job);
  absl::Status Write() const;

  const SyncArguments& a_;
  SyncPlan plan_;
  std::string out_;
  std::unique_ptr<Testbed> testbed_;
  SyncResults results_;
};

void PrintLine(const SyncPart& part, const SyncRun& run) {
  std::printf("  %-10s %7.2f batches/s", run.mode.name.c_str(), run.BatchesPerSecond());
  if (const auto of_bsp = part.OfBsp(run)) std::printf(", %.2f of undisturbed bsp", *of_bsp);
  std::printf(", waits %.0f%%", run.WaitShare() * 100);
  if (!run.figures.staleness.empty() && MostStaleness(run.figures) > 0) {
    std::printf(", staleness %.1f", MeanStaleness(run.figures));
  }
  if (const auto loss = FinalLoss(run.figures); loss.has_value() && !part.replay) {
    std::printf(", loss %.4f after %.1f s", *loss, run.figures.steps.back().seconds);
  }
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status Experiment::Run() {
  RETURN_IF_ERROR(CheckOutFolder(a_.out));
  if (a_.hosts > 0) {
    ASSIGN_OR_RETURN(testbed_, Testbed::Up(a_.hosts, plan_.link));
  }
  ASSIGN_OR_RETURN(out_, CreateRunFolder(a_.out, "sync"));
  RETURN_IF_ERROR(WriteJobFiles());
  results_ = {.command = a_.command, .settings = Settings(a_, plan_)};
  PrintPlan();
  for (PlannedPart& planned : plan_.parts) RETURN_IF_ERROR(RunPart(planned));
  std::printf("\n%s\n%s/report.html\n", ResultsMarkdown(results_).c_str(), out_.c_str());
  return absl::OkStatus();
}

void Experiment::PrintPlan() const {
  PrintSettings(results_.settings);
  for (const PlannedPart& planned : plan_.parts) {
    std::printf("%s: %zu jobs", planned.part.title.c_str(), planned.jobs.size());
    if (planned.throughput) {
      std::printf(", about %.0f minutes", std::ceil(LeastSeconds(planned) / 60));
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

absl::Status Experiment::WriteJobFiles() {
  for (PlannedPart& planned : plan_.parts) {
    if (!planned.job_path.empty()) continue;
    planned.job_path =
        absl::StrCat(out_, planned.throughput ? "/throughput" : "/learning", ".textproto");
    RETURN_IF_ERROR(WriteFile(planned.job_path, planned.job_text));
    if (planned.throughput) continue;
    RETURN_IF_ERROR(WriteTrainingText(out_));
  }
  return absl::OkStatus();
}

absl::Status Experiment::RunPart(PlannedPart& planned) {
  const size_t number = results_.parts.size();
  results_.parts.push_back(planned.part);
  SyncPart& part = results_.parts[number];
  std::printf("\n%s: %s\n", part.title.c_str(), part.about.c_str());
  for (size_t i = 0; i < planned.jobs.size(); ++i) {
    const SyncJob& job = planned.jobs[i];
    if (i == 0 || job.straggler != planned.jobs[i - 1].straggler) {
      std::printf("stragglers: %s\n", NameOf(job.straggler));
      std::fflush(stdout);
    }
    ASSIGN_OR_RETURN(SyncRun run, RunJob(planned, job));
    part.runs.push_back(std::move(run));
    const SyncRun& done = part.runs.back();
    // Pauses last as long in whatever order modes are named.
    const bool of_bsp = done.mode.policy == SyncConfig::BSP && done.mode.local_steps == 1 &&
                        done.straggler == StragglerKind::kNone;
    if ((planned.undisturbed_seconds == 0 || (of_bsp && !planned.throughput)) &&
        done.BatchesPerSecond() > 0) {
      planned.undisturbed_seconds = 1 / done.BatchesPerSecond();
    }
    PrintLine(part, done);
    RETURN_IF_ERROR(Write());
  }
  return absl::OkStatus();
}

absl::StatusOr<SyncRun> Experiment::RunJob(const PlannedPart& planned, const SyncJob& job) {
  const ExperimentJob one = {
      .name = job.name,
      .job_file = planned.job_path,
      .overrides = JobOverrides(a_, plan_, planned, job, TrainingTextPath(out_)),
      .workers = a_.workers,
      .servers = a_.servers};
  RETURN_IF_ERROR(RunExperimentJob(one, out_, testbed_.get()));
  const std::string run_dir = absl::StrCat(out_, "/", job.name);
  SyncRun run{.mode = job.mode, .straggler = job.straggler, .warm_up = job.warm_up};
  ASSIGN_OR_RETURN(run.figures, ReadRunFigures(absl::StrCat(run_dir, "/", kMetricsFile)));
  if (job.traced_steps == 0) return run;
  absl::StatusOr<std::vector<WorkerTimeline>> timeline =
      ReadWorkerTimelines(absl::StrCat(run_dir, "/", kTraceFile));
  if (timeline.ok()) {
    run.timeline = *std::move(timeline);
  } else {  // the figures are worth having without it
    std::fprintf(stderr, "tug: warning: %s has no timeline: %s\n", job.name.c_str(),
                 std::string(timeline.status().message()).c_str());
  }
  return run;
}

absl::Status Experiment::Write() const {
  RETURN_IF_ERROR(WriteFile(out_ + "/report.html", SyncReportHtml(results_)));
  RETURN_IF_ERROR(WriteJson(out_ + "/sync.json", ResultsJson(results_)));
  return WriteFile(out_ + "/sync.md", ResultsMarkdown(results_));
}

}  // namespace

absl::Status RunSyncExperiment(const SyncArguments& arguments) {
  ASSIGN_OR_RETURN(SyncPlan plan, PlanSync(arguments));
  return Experiment(arguments, std::move(plan)).Run();
}

void AddExperimentSync(CLI::App& experiment, Command& chosen) {
  auto a = std::make_shared<SyncArguments>();
  CLI::App* command = experiment.add_subcommand(
      "sync", "Sync policies side by side: speed, waits, staleness and loss, with slow workers");
  const auto list = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->delimiter(',')->capture_default_str();
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    return command->add_option(name, to, what)->capture_default_str();
  };
  command->add_option("JOB", a->job_file,
                      "Job file of the training [a small GPT on a made-up text]");
  list("--parts", a->parts,
       "throughput: a replay, whose workers do not disturb one another on any machine; learning: a "
       "training, for losses");
  list("--modes", a->modes, "bsp, ssp:S, asp, backup:K, local:H (H local steps under bsp)");
  list("--stragglers", a->stragglers,
       "none; persistent: one worker is slow throughout; pauses: all pause at random");
  one("--slowdown", a->slowdown, "Times as slow as the others the persistent straggler is");
  one("--pause-probability", a->pause_probability, "That a worker pauses in a step");
  one("--pause-steps", a->pause_steps,
      "Mean length of a pause, in undisturbed steps of bsp (of the first of --modes without it)");
  one("--workers", a->workers, "Worker processes, a virtual worker each");
  one("--servers", a->servers, "Server processes");
  one("--hosts", a->hosts,
      "Hosts on this machine, as deploy/testbed makes them; needs root. As many as workers and "
      "servers: one for each. 0: none");
  command->add_option("--link", a->link,
                      "Rate of every host's link, as tc writes it; without --hosts, of what each "
                      "process sends [none; with --hosts 200mbit]");
  one("--replay", a->profile, "Throughput: profile, a name (tug help job, ReplayConfig) or a file");
  one("--step-ms", a->step_ms, "Throughput: computing of a step; sets replay.time_scale");
  one("--ratio", a->ratio,
      "Throughput, with a link: time of a step's bytes one way over the busiest link, to "
      "--step-ms; "
      "sets replay.size_scale");
  one("--warm-up", a->warm_up, "Batches that are not measured");
  one("--steps", a->steps, "Throughput: batches that are");
  command->add_option("--train-steps", a->train_steps, "Learning: batches [as the job says]");
  AddOutAndSet(*command, "sync", a->out, a->overrides);
  command->footer(
      "A batch is a step of all virtual workers; a job step of local:H is H of them. Leaves "
      "report.html (needs no other file), sync.json, sync.md and a run folder for each job.\n"
      "Examples:\n"
      "  tug experiment sync\n"
      "  tug experiment sync deploy/jobs/quickstart.textproto --parts learning --train-steps 1000\n"
      "  tug experiment sync --parts throughput --modes bsp,asp --stragglers none,persistent\n"
      "  sudo tug experiment sync --parts throughput --hosts 6 --link 200mbit --replay resnet50");
  command->callback([a, command, &chosen] {
    a->command = CommandLine("tug experiment sync", *command);
    chosen = [a] { return RunSyncExperiment(*a); };
  });
}

}  // namespace tug
