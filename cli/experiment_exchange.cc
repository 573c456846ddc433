#include "cli/experiment_exchange.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/experiment_job.h"
#include "cli/experiment_links.h"
#include "coordinator/run_folder.h"
#include "experiment/exchange_report.h"
#include "experiment/exchange_text.h"

namespace tug {
namespace {

std::vector<std::pair<std::string, std::string>> Settings(const ExchangeArguments& a,
                                                          const ExchangePlan& plan) {
  std::vector<std::pair<std::string, std::string>> settings = {
      {"training", plan.training.about},
      {"job", absl::StrCat(a.workers, " workers, a virtual worker each, FP32")}};
  for (const PlannedSize& size : plan.sizes) {
    if (!plan.replays) break;
    settings.push_back({absl::StrFormat("model of %g MB", size.bytes * 1e-6),
                        absl::StrFormat("segments of %d elements, credit of %d bytes",
                                        size.grain.segment_elements, size.grain.credit_bytes)});
  }
  for (const PlannedLink& link : plan.links) {
    settings.push_back(
        {absl::StrCat("link ", link.name),
         link.bits_per_second == 0
             ? "this machine as it is, shared memory: nothing goes over links"
             : absl::StrFormat("hosts of deploy/testbed on one machine; a link carries %.2f MB/s "
                               "of TCP payload each way",
                               PayloadBytesPerSecond(link.bits_per_second) * 1e-6)});
  }
  if (plan.hosts == 0) {
    settings.push_back(
        {"links", "none has a rate; --links 1gbit,200mbit makes hosts (needs root)"});
  } else {
    settings.push_back({"alpha", absl::StrFormat("%g us a message, as was said", a.latency_us)});
  }
  settings.push_back(
      {"steps", absl::StrCat(a.steps, " measured, after ", a.warm_up, " that are not")});
  return settings;
}

class Experiment {
 public:
  Experiment(const ExchangeArguments& a, ExchangePlan plan)
      : a_(a), plan_(std::move(plan)), hosts_(plan_.hosts) {}

  absl::Status Run();

 private:
  // Whether there can be a testbed is known before anything runs.
  absl::Status CheckTestbed();
  void PrintPlan() const;
  absl::Status WriteJobFile();
  absl::Status RunJob(const ExchangeJob& job);
  // Figures, and what went over links.
  absl::Status Measure(const ExchangeJob& job, ExchangeRun& run);
  absl::Status Write() const;
  absl::Status End() const;

  const ExchangeArguments& a_;
  const ExchangePlan plan_;
  std::string out_;
  std::string job_file_;
  LinkedHosts hosts_;
  ExchangeResults results_;
};

void PrintLine(const ExchangeResults& results, const ExchangeRun& run) {
  std::printf("  %-18s ", run.exchange.name.c_str());
  if (!run.error.empty()) {
    std::printf("failed: %s\n", run.error.c_str());
    std::fflush(stdout);
    return;
  }
  std::printf("%8.1f ms a step", run.StepSeconds() * 1e3);
  if (const auto cost = results.CostOf(run)) {
    std::printf(", alpha-beta %.1f, overlapped %.1f", cost->seconds * 1e3,
                cost->overlapped_seconds * 1e3);
  }
  if (const auto bytes = run.BusiestBytes()) {
    std::printf("; %.2f MB over the busiest link", *bytes * 1e-6);
  }
  const auto held = [](const char* who, const std::optional<HeldBytes>& bytes) {
    if (!bytes.has_value()) return;
    std::printf("; a %s holds %.2f MB", who, static_cast<double>(bytes->total()) * 1e-6);
  };
  held("worker", run.WorkerHeld());
  held("server", run.ServerHeld());
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status Experiment::Run() {
  RETURN_IF_ERROR(CheckOutFolder(a_.out));
  RETURN_IF_ERROR(CheckTestbed());
  ASSIGN_OR_RETURN(out_, CreateRunFolder(a_.out, "exchange"));
  RETURN_IF_ERROR(WriteJobFile());
  results_ = {.command = a_.command,
              .settings = Settings(a_, plan_),
              .workers = a_.workers,
              .alpha_seconds = a_.latency_us * 1e-6,
              .cases = plan_.cases};
  for (const PlannedLink& link : plan_.links) results_.link_names.push_back(link.name);
  for (const PlannedSize& size : plan_.sizes) results_.sizes.push_back(size.bytes);
  PrintPlan();
  const ExchangeJob* before = nullptr;
  for (const ExchangeJob& job : plan_.jobs) {
    if (before == nullptr || !(job.link == before->link) || job.size.bytes != before->size.bytes) {
      std::printf("%s\n", GroupTitle(results_, job.link.name, job.size.bytes).c_str());
      std::fflush(stdout);
    }
    before = &job;
    RETURN_IF_ERROR(hosts_.Take(job.link));
    RETURN_IF_ERROR(RunJob(job));
    RETURN_IF_ERROR(Write());
  }
  std::printf("\n%s\n%s/report.html\n", ResultsMarkdown(results_).c_str(), out_.c_str());
  return End();
}

absl::Status Experiment::CheckTestbed() {
  for (const PlannedLink& link : plan_.links) {
    if (link.bits_per_second == 0) continue;
    if (geteuid() != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--links ", link.name,
                       " needs root, to make hosts with such links on this machine: run it with "
                       "sudo, or with --links none"));
    }
    return hosts_.Take(link);
  }
  return absl::OkStatus();
}

void Experiment::PrintPlan() const {
  PrintSettings(results_.settings);
  std::printf("jobs: %zu\n", plan_.jobs.size());
  std::fflush(stdout);
}

absl::Status Experiment::WriteJobFile() {
  job_file_ = plan_.training.job_path;
  if (!job_file_.empty()) return absl::OkStatus();
  job_file_ = out_ + "/job.textproto";
  return WriteFile(job_file_, plan_.training.job_text);
}

absl::Status Experiment::RunJob(const ExchangeJob& job) {
  ExchangeRun run{.exchange = job.exchange,
                  .link = job.link.name,
                  .bits_per_second = job.link.bits_per_second,
                  .planned_bytes = job.size.bytes,
                  .workers = a_.workers,
                  .warm_up = a_.warm_up};
  const absl::Status measured = Measure(job, run);
  if (absl::IsCancelled(measured)) return measured;
  if (!measured.ok()) run.error = std::string(measured.message());
  results_.runs.push_back(std::move(run));
  PrintLine(results_, results_.runs.back());
  return absl::OkStatus();
}

absl::Status Experiment::Measure(const ExchangeJob& job, ExchangeRun& run) {
  const ExperimentJob one = {.name = job.name,
                             .job_file = job_file_,
                             .overrides = JobOverrides(a_, plan_, job),
                             .workers = a_.workers,
                             .servers = job.exchange.Servers(a_.workers),
                             .hosts = job.exchange.Hosts(a_.workers)};
  std::vector<LinkBytes> before, after;
  if (hosts_.testbed() != nullptr) {
    ASSIGN_OR_RETURN(before, hosts_.testbed()->ReadLinkBytes());
  }
  RETURN_IF_ERROR(RunExperimentJob(one, out_, hosts_.testbed()));
  ASSIGN_OR_RETURN(run.figures,
                   ReadRunFigures(absl::StrCat(out_, "/", job.name, "/", kMetricsFile)));
  if (hosts_.testbed() == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(after, hosts_.testbed()->ReadLinkBytes());
  for (uint32_t host = 0; host < one.hosts; ++host) {
    run.hosts.push_back({.sent_bytes = after[host].sent - before[host].sent,
                         .received_bytes = after[host].received - before[host].received});
  }
  return absl::OkStatus();
}

absl::Status Experiment::Write() const {
  RETURN_IF_ERROR(WriteFile(out_ + "/report.html", ExchangeReportHtml(results_)));
  RETURN_IF_ERROR(WriteJson(out_ + "/exchange.json", ResultsJson(results_)));
  return WriteFile(out_ + "/exchange.md", ResultsMarkdown(results_));
}

absl::Status Experiment::End() const {
  const std::vector<std::string> failures = Failures(results_);
  if (failures.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(failures.size(), " of ", plan_.jobs.size(),
                                         " jobs failed: ", absl::StrJoin(failures, "; ")));
}

}  // namespace

absl::Status RunExchangeExperiment(const ExchangeArguments& arguments) {
  ASSIGN_OR_RETURN(ExchangePlan plan, PlanExchange(arguments));
  return Experiment(arguments, std::move(plan)).Run();
}

void AddExperimentExchange(CLI::App& experiment, Command& chosen) {
  auto a = std::make_shared<ExchangeArguments>();
  CLI::App* command = experiment.add_subcommand(
      "exchange",
      "Parameter servers, all-reduce and ZeRO side by side: step time, bytes, memory, formulas");
  const auto list = [&](const char* name, auto& to, const char* what) {
    return command->add_option(name, to, what)->delimiter(',');
  };
  const auto one = [&](const char* name, auto& to, const char* what) {
    command->add_option(name, to, what)->capture_default_str();
  };
  command->add_option("JOB", a->job_file, "Job file of a training or replay [a replay]");
  list("--cases", a->cases,
       "servers:P, P parameter servers on hosts of their own; mixed:K, servers beside workers and "
       "on K hosts more (BytePS); ring, halving_doubling: all-reduce; zero1, zero2, zero3 [all, "
       "with 1 to as many servers as workers, and 1 and 2 hosts more]");
  list("--links", a->links,
       "Rates as tc writes them: hosts with such links are made on this machine, as deploy/testbed "
       "makes them; needs root. none: this machine as it is, shared memory")
      ->capture_default_str();
  one("--workers", a->workers, "Worker processes, a virtual worker each");
  command->add_option("--replay", a->profile,
                      "Profile, a name (tug help job, ReplayConfig) or a file [resnet50]");
  list("--megabytes", a->megabytes, "Of the replayed model, FP32; each is run [8]");
  one("--step-ms", a->step_ms, "Of a replay: computing of a step; 0: the exchange alone");
  one("--warm-up", a->warm_up, "Steps that are not measured");
  one("--steps", a->steps, "Steps that are");
  one("--latency-us", a->latency_us,
      "alpha of the formulas: of a message, beside its bytes, microseconds");
  AddOutAndSet(*command, "exchange", a->out, a->overrides);
  command->footer(
      "Leaves report.html (needs no other file), exchange.json, exchange.md and a run folder for "
      "each job. A job that fails is a line of the report.\n"
      "Examples:\n"
      "  tug experiment exchange\n"
      "  sudo tug experiment exchange --links none,1gbit,200mbit\n"
      "  sudo tug experiment exchange --links 200mbit --megabytes 1,4,16 --cases servers:1,ring\n"
      "  tug experiment exchange deploy/jobs/quickstart.textproto --cases zero1,zero2,zero3");
  command->callback([a, command, &chosen] {
    a->command = CommandLine("tug experiment exchange", *command);
    chosen = [a] { return RunExchangeExperiment(*a); };
  });
}

}  // namespace tug
