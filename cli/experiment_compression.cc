#include "cli/experiment_compression.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cli/experiment_job.h"
#include "coordinator/run_folder.h"
#include "experiment/compression_report.h"

namespace tug {
namespace {

std::vector<std::pair<std::string, std::string>> Settings(const CompressionArguments& a,
                                                          const CompressionPlan& plan) {
  std::vector<std::pair<std::string, std::string>> settings = {
      {"training", plan.training.about},
      {"job", absl::StrCat(a.workers, a.workers == 1 ? " worker, " : " workers, ",
                           "a virtual worker each, ", a.servers,
                           a.servers == 1 ? " server" : " servers")}};
  for (const PlannedLink& link : plan.links) {
    settings.push_back(
        {absl::StrCat("link ", link.name),
         link.bits_per_second == 0 ? "this machine as it is"
         : a.hosts == 0
             ? absl::StrCat("loopback of this machine; each process sends at most ", link.name)
             : absl::StrCat(a.hosts, " hosts of deploy/testbed on one machine, links of ",
                            link.name)});
  }
  if (!plan.links.empty()) {
    settings.push_back({"on each link", absl::StrCat(a.link_steps, " steps measured, after ",
                                                     a.warm_up, " that are not")});
  }
  if (const auto learning = std::find_if(plan.jobs.begin(), plan.jobs.end(),
                                         [](const CompressionJob& job) { return job.learns; });
      learning != plan.jobs.end()) {
    settings.push_back(
        {"learning",
         absl::StrCat(learning->steps, " steps on this machine as it is, each codec with ",
                      a.learning_rates.empty()
                          ? absl::StrFormat("the learning rate %g", learning->learning_rate)
                          : absl::StrCat("each of the learning rates ",
                                         absl::StrJoin(a.learning_rates, ", ")))});
  }
  return settings;
}

class Experiment {
 public:
  Experiment(const CompressionArguments& a, CompressionPlan plan)
      : a_(a), plan_(std::move(plan)), hosts_(a.hosts) {}

  absl::Status Run();

 private:
  void PrintPlan() const;
  absl::Status WriteTraining();
  absl::Status RunJob(const CompressionJob& job);
  absl::Status Write() const;

  const CompressionArguments& a_;
  const CompressionPlan plan_;
  std::string out_;
  std::string job_file_;
  LinkedHosts hosts_;
  CompressionResults results_;
};

void PrintLine(const CompressionResults& results, const LinkRun& run) {
  std::printf("  %-20s %8.1f ms a step, waits %.1f ms, pushes %.1f kB, pulls %.1f kB",
              run.codec.name.c_str(), run.StepSeconds() * 1e3, run.WaitSeconds() * 1e3,
              run.PushedBytes() * 1e-3, run.PulledBytes() * 1e-3);
  if (const auto verdict = results.VerdictOf(run)) {
    std::printf(", %.2fx fp32: %s", verdict->SpeedUp(), verdict->pays() ? "pays" : "does not");
  }
  std::printf("\n");
  std::fflush(stdout);
}

void PrintLine(const LearningRun& run) {
  std::printf("  %-20s learning rate %g: loss %.4f after %.1f s, %.1f MB pushed, %.1f MB pulled\n",
              run.codec.name.c_str(), run.learning_rate, FinalLoss(run.figures).value_or(NAN),
              run.Seconds(), run.PushedBytes() * 1e-6, run.PulledBytes() * 1e-6);
  std::fflush(stdout);
}

absl::Status Experiment::Run() {
  RETURN_IF_ERROR(CheckOutFolder(a_.out));
  // Whether there can be a testbed is known before anything else runs.
  for (const PlannedLink& link : plan_.links) {
    if (link.bits_per_second == 0) continue;
    RETURN_IF_ERROR(hosts_.Take(link));
    break;
  }
  ASSIGN_OR_RETURN(out_, CreateRunFolder(a_.out, "compression"));
  RETURN_IF_ERROR(WriteTraining());
  results_ = {.command = a_.command,
              .settings = Settings(a_, plan_),
              .loss_margin = a_.loss_margin,
              .codecs = plan_.codecs};
  for (const PlannedLink& link : plan_.links) results_.link_names.push_back(link.name);
  PrintPlan();
  const CompressionJob* before = nullptr;
  for (const CompressionJob& job : plan_.jobs) {
    if (before == nullptr || job.learns != before->learns || !(job.link == before->link)) {
      std::printf("%s\n", job.learns ? "learning" : ("link " + job.link.name).c_str());
      std::fflush(stdout);
    }
    before = &job;
    RETURN_IF_ERROR(hosts_.Take(job.link));
    RETURN_IF_ERROR(RunJob(job));
    RETURN_IF_ERROR(Write());
  }
  std::printf("\n%s\n%s/report.html\n", ResultsMarkdown(results_).c_str(), out_.c_str());
  return absl::OkStatus();
}

void Experiment::PrintPlan() const {
  PrintSettings(results_.settings);
  std::printf("jobs: %zu\n", plan_.jobs.size());
  std::fflush(stdout);
}

absl::Status Experiment::WriteTraining() {
  job_file_ = plan_.training.job_path;
  if (!job_file_.empty()) return absl::OkStatus();
  job_file_ = out_ + "/training.textproto";
  RETURN_IF_ERROR(WriteFile(job_file_, plan_.training.job_text));
  return WriteTrainingText(out_);
}

absl::Status Experiment::RunJob(const CompressionJob& job) {
  const ExperimentJob one = {.name = job.name,
                             .job_file = job_file_,
                             .overrides = JobOverrides(a_, plan_, job, TrainingTextPath(out_)),
                             .workers = a_.workers,
                             .servers = a_.servers};
  RETURN_IF_ERROR(RunExperimentJob(one, out_, hosts_.testbed()));
  ASSIGN_OR_RETURN(RunFigures figures,
                   ReadRunFigures(absl::StrCat(out_, "/", job.name, "/", kMetricsFile)));
  if (job.learns) {
    ASSIGN_OR_RETURN(const JobConfig config, ReadRunConfig(absl::StrCat(out_, "/", job.name)));
    results_.learning.push_back({.codec = job.codec,
                                 .learning_rate = job.learning_rate,
                                 .whole_steps = config.comm().push_codec().warmup_steps(),
                                 .figures = std::move(figures)});
    PrintLine(results_.learning.back());
  } else {
    results_.links.push_back({.codec = job.codec,
                              .link = job.link.name,
                              .servers = a_.servers,
                              .warm_up = a_.warm_up,
                              .figures = std::move(figures)});
    PrintLine(results_, results_.links.back());
  }
  return absl::OkStatus();
}

absl::Status Experiment::Write() const {
  RETURN_IF_ERROR(WriteFile(out_ + "/report.html", CompressionReportHtml(results_)));
  RETURN_IF_ERROR(WriteJson(out_ + "/compression.json", ResultsJson(results_)));
  return WriteFile(out_ + "/compression.md", ResultsMarkdown(results_));
}

}  // namespace

absl::Status RunCompressionExperiment(const CompressionArguments& arguments) {
  ASSIGN_OR_RETURN(CompressionPlan plan, PlanCompression(arguments));
  return Experiment(arguments, std::move(plan)).Run();
}

void AddExperimentCompression(CLI::App& experiment, Command& chosen) {
  auto a = std::make_shared<CompressionArguments>();
  CLI::App* command = experiment.add_subcommand(
      "compression", "Codecs of gradients and weights side by side: bytes, step time and loss");
  const auto list = [&](const char* name, auto& to, const char* what) {
    return command->add_option(name, to, what)->delimiter(',');
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->capture_default_str();
  };
  command->add_option("JOB", a->job_file,
                      "Job file of the training [a small GPT on a made-up text]");
  list("--parts", a->parts, "links: some steps on each link; learning: the training, for losses")
      ->capture_default_str();
  list(
      "--codecs", a->codecs,
      "CODEC[:NUMBER][+ef|-ef][/PULL], with CODEC fp32 or one of comm.push_codec (tug help job), "
      "NUMBER its density, levels or rank, +ef and -ef with and without error feedback, PULL fp32, "
      "bf16, int8, changes[:DENSITY] or auto")
      ->capture_default_str();
  list(
      "--links", a->links,
      "Rates as tc writes them; none: this machine as it is. Without --hosts each process sends at "
      "most as much")
      ->capture_default_str();
  one("--workers", a->workers, "Worker processes, a virtual worker each");
  one("--servers", a->servers, "Server processes");
  one("--hosts", a->hosts,
      "Hosts on this machine, as deploy/testbed makes them, for every link but none; needs root. "
      "As many as workers and servers: one for each. 0: none");
  one("--warm-up", a->warm_up, "Links: steps that are not measured");
  one("--link-steps", a->link_steps, "Links: steps that are");
  command->add_option("--train-steps", a->train_steps, "Learning: steps [as the job says]");
  list("--learning-rates", a->learning_rates,
       "Learning: every codec runs with each, and the one that ends with the least validation loss "
       "counts [as the job says]");
  one("--loss-margin", a->loss_margin,
      "A final validation loss that is so much above FP32's is as good");
  AddOutAndSet(*command, "compression", a->out, a->overrides);
  command->footer(
      "Leaves report.html (needs no other file), compression.json, compression.md and a run folder "
      "for each job.\n"
      "Examples:\n"
      "  tug experiment compression\n"
      "  tug experiment compression JOB.textproto --codecs fp32,top_k:0.01/int8 --links 100mbit\n"
      "  tug experiment compression --parts learning --learning-rates 1e-3,2e-3,4e-3\n"
      "  sudo tug experiment compression --parts links --hosts 6 --links none,1gbit,100mbit");
  command->callback([a, command, &chosen] {
    a->command = CommandLine("tug experiment compression", *command);
    chosen = [a] { return RunCompressionExperiment(*a); };
  });
}

}  // namespace tug
