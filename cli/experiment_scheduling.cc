#include "cli/experiment_scheduling.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/median.h"
#include "base/status_macros.h"
#include "cli/experiment_job.h"
#include "cli/testbed.h"
#include "cli/worked_out_steps.h"
#include "coordinator/run_folder.h"
#include "experiment/scheduling_report.h"
#include "proto/job_config.h"

namespace tug {
namespace {

std::string RunName(const SchedulingCase& c, const PolicyResult& policy) {
  return absl::StrFormat("%s-ratio%g-%s", absl::StrReplaceAll(c.profile, {{"/", "-"}}), c.ratio,
                         policy.policy);
}

std::string JobFile(const SchedulingArguments& a, const std::string& out) {
  return a.job_file.empty() ? out + "/job.textproto" : a.job_file;
}

std::vector<std::pair<std::string, std::string>> Settings(const SchedulingArguments& a,
                                                          const SchedulingPlan& plan) {
  const std::string nodes = absl::StrCat(a.workers, " workers, ", a.servers, " servers");
  const std::string hosts =
      a.hosts == 0
          ? absl::StrCat("this machine, loopback; each process sends at most ", a.link)
          : absl::StrCat(a.hosts, " hosts of deploy/testbed on one machine, links of ", a.link);
  return {
      {"job", nodes + ", compute: replay, optimizer.clip: OFF"},
      {"network", hosts},
      {"link carries", absl::StrFormat("%.2f MB/s of TCP payload each way",
                                       PayloadBytesPerSecond(plan.link_bits_per_second) * 1e-6)},
      {"steps", absl::StrCat(a.steps, " measured, after ", a.warm_up, " that are not")}};
}

class Experiment {
 public:
  Experiment(const SchedulingArguments& a, SchedulingPlan plan) : a_(a), plan_(std::move(plan)) {}

  absl::Status Run();

 private:
  // Also takes over the sizes that --set has changed.
  absl::Status CheckJobs();
  void PrintPlan() const;
  absl::Status RunCase(SchedulingCase& c);
  absl::StatusOr<std::string> RunJob(const SchedulingCase& c, const PolicyResult& policy);
  // Figures, and the timeline if there is one.
  absl::Status ReadRun(const std::string& run_dir, const SchedulingCase& c,
                       PolicyResult& policy) const;
  absl::Status Write() const;

  const SchedulingArguments& a_;
  SchedulingPlan plan_;
  std::string out_;
  std::unique_ptr<Testbed> testbed_;
  SchedulingResults results_;
};

void PrintLine(const SchedulingCase& c, const PolicyResult& done) {
  std::printf("  %-13s %5.0f ms a step, %4.0f ms exposed", done.Label().c_str(),
              done.seconds() * 1e3, Median(done.steps.exposed_seconds) * 1e3);
  if (const auto over = c.OverBound(done)) std::printf(", %.2f x bound", *over);
  if (const auto deviation = SchedulingCase::Deviation(done)) {
    std::printf(", simulated %+.1f%%", *deviation * 100);
  }
  if (const auto speed_up = c.SpeedUp(done); speed_up.has_value() && done.policy != kFifoPolicy) {
    std::printf(", speed-up %.2f", *speed_up);
  }
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status Experiment::Run() {
  // Mistakes in the job are found before anything is made.
  RETURN_IF_ERROR(CheckJobs());
  RETURN_IF_ERROR(CheckOutFolder(a_.out));
  if (a_.hosts > 0) {
    ASSIGN_OR_RETURN(testbed_, Testbed::Up(a_.hosts, a_.link));
  }
  ASSIGN_OR_RETURN(out_, CreateRunFolder(a_.out, "scheduling"));
  if (a_.job_file.empty()) RETURN_IF_ERROR(WriteFile(JobFile(a_, out_), kExperimentJobText));
  results_ = {.command = a_.command, .settings = Settings(a_, plan_)};
  PrintPlan();
  for (SchedulingCase& c : plan_.cases) RETURN_IF_ERROR(RunCase(c));
  std::printf("\n%s\n%s/report.html\n", ResultsMarkdown(results_).c_str(), out_.c_str());
  return absl::OkStatus();
}

absl::Status Experiment::CheckJobs() {
  for (SchedulingCase& c : plan_.cases) {
    for (const PolicyResult& policy : c.policies) {
      ASSIGN_OR_RETURN(const JobConfig job,
                       LoadExperimentJob(a_, JobOverrides(a_, plan_, c, policy)));
      c.grain = {.segment_elements = job.comm().segment_elements(),
                 .partition_bytes = job.comm().partition_bytes(),
                 .credit_bytes = job.comm().credit_bytes(),
                 .pull_credit_bytes = job.comm().pull_credit_bytes()};
    }
  }
  return absl::OkStatus();
}

void Experiment::PrintPlan() const {
  PrintSettings(results_.settings);
  size_t jobs = 0;
  for (const SchedulingCase& c : plan_.cases) jobs += c.policies.size();
  std::printf("jobs: %zu, about %.0f minutes\n", jobs, std::ceil(LongestSeconds(a_, plan_) / 60));
  std::fflush(stdout);
}

absl::Status Experiment::RunCase(SchedulingCase& planned) {
  SchedulingCase& c = results_.cases.emplace_back(planned);
  c.policies.clear();
  std::printf("%s: %.2f MB, %s; %.0f ms of compute\n", CaseTitle(c).c_str(),
              c.scale.model_bytes * 1e-6, GrainText(c.grain).c_str(),
              c.scale.compute_seconds * 1e3);
  for (PolicyResult policy : planned.policies) {
    ASSIGN_OR_RETURN(const std::string run_dir, RunJob(c, policy));
    RETURN_IF_ERROR(ReadRun(run_dir, c, policy));
    if (plan_.worked_out) {
      const double link = PayloadBytesPerSecond(plan_.link_bits_per_second);
      RETURN_IF_ERROR(WorkOutSteps(run_dir, link, c, policy));
    }
    c.policies.push_back(std::move(policy));
    PrintLine(c, c.policies.back());
    RETURN_IF_ERROR(Write());
  }
  return absl::OkStatus();
}

absl::Status Experiment::ReadRun(const std::string& run_dir, const SchedulingCase& c,
                                 PolicyResult& policy) const {
  const MeasuredSteps measured = MeasuredStepsOf(a_, plan_, c, policy.policy);
  const std::string metrics = run_dir + "/" + kMetricsFile;
  ASSIGN_OR_RETURN(policy.steps, ReadStepSeries(metrics, measured.first, measured.last));
  if (policy.policy == kAutoPolicy) {
    ASSIGN_OR_RETURN(policy.tuned, ReadTunedSchedule(metrics, measured.settled_before));
  }
  absl::StatusOr<Timeline> timeline =
      ReadTimeline(run_dir + "/" + kTraceFile, measured.last - kTracedSteps, c.blocks);
  if (timeline.ok()) {
    policy.timeline = *std::move(timeline);
  } else {  // the figures are worth having without it
    std::fprintf(stderr, "tug: warning: %s has no timeline: %s\n", RunName(c, policy).c_str(),
                 std::string(timeline.status().message()).c_str());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Experiment::RunJob(const SchedulingCase& c,
                                               const PolicyResult& policy) {
  const ExperimentJob job = {.name = RunName(c, policy),
                             .job_file = JobFile(a_, out_),
                             .overrides = JobOverrides(a_, plan_, c, policy),
                             .workers = a_.workers,
                             .servers = a_.servers};
  RETURN_IF_ERROR(RunExperimentJob(job, out_, testbed_.get()));
  return absl::StrCat(out_, "/", job.name);
}

absl::Status Experiment::Write() const {
  RETURN_IF_ERROR(WriteFile(out_ + "/report.html", SchedulingReportHtml(results_)));
  RETURN_IF_ERROR(WriteJson(out_ + "/scheduling.json", ResultsJson(results_)));
  return WriteFile(out_ + "/scheduling.md", ResultsMarkdown(results_));
}

}  // namespace

absl::Status RunSchedulingExperiment(const SchedulingArguments& arguments) {
  ASSIGN_OR_RETURN(SchedulingPlan plan, PlanScheduling(arguments));
  return Experiment(arguments, std::move(plan)).Run();
}

void AddExperimentScheduling(CLI::App& experiment, Command& chosen) {
  auto a = std::make_shared<SchedulingArguments>();
  CLI::App* command = experiment.add_subcommand(
      "scheduling", "Policies of comm.scheduler side by side: step times, timelines, lower bound");
  const auto list = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->delimiter(',')->capture_default_str();
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    return command->add_option(name, to, what)->capture_default_str();
  };
  command->add_option("JOB", a->job_file,
                      "Job file for what the experiment does not set; default: none");
  list("--profiles", a->profiles, "Of models: names (tug help job, ReplayConfig) or files");
  list("--ratios", a->ratios,
       "Time of a step's bytes one way over the busiest link, to the compute time of a step");
  list("--policies", a->policies, "fifo, priority, bytescheduler, auto");
  one("--workers", a->workers, "Worker processes");
  one("--servers", a->servers, "Server processes");
  one("--hosts", a->hosts,
      "Hosts on this machine, as deploy/testbed makes them; needs root. As many as workers and "
      "servers: one for each. 0: none, loopback");
  one("--link", a->link,
      "Rate of every host's link, as tc writes it; without --hosts, of what each process sends");
  one("--transfer", a->transfer_seconds,
      "Seconds that a step's bytes take one way over the busiest link; sets replay.size_scale");
  one("--warm-up", a->warm_up, "Steps that are not measured; auto: after its trials");
  one("--steps", a->steps, "Steps that are");
  AddOutAndSet(*command, "scheduling", a->out, a->overrides);
  command->footer(
      "Leaves report.html (needs no other file), scheduling.json, scheduling.md and a run folder "
      "for each job.\n"
      "Examples:\n"
      "  sudo tug experiment scheduling --hosts 6 --link 200mbit\n"
      "  sudo tug experiment scheduling --hosts 6 --profiles vgg16 --ratios 1 --out /tmp/vgg\n"
      "  tug experiment scheduling --profiles resnet50 --ratios 0.5,1 --link 500mbit\n"
      "  tug experiment scheduling --profiles vgg16 --ratios 1 --set comm.credit_bytes=65536");
  command->callback([a, command, &chosen] {
    a->command = CommandLine("tug experiment scheduling", *command);
    chosen = [a] { return RunSchedulingExperiment(*a); };
  });
}

}  // namespace tug
