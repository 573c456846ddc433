// SPDX-License-Identifier: Apache-2.0
#include "lab/commands/simulate_faults.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cpu/cpu_affinity.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "lab/simulate/fault_run.h"
#include "lab/simulate/scenario.h"
#include "process/standard_streams.h"

namespace tug {
namespace {

constexpr uint64_t kMaxRuns = 100'000'000;
constexpr uint32_t kMaxJobs = 1024;
constexpr uint64_t kMaxShownRuns = 10;  // runs with violations to print in full

struct FaultArguments {
  uint64_t seed = 1;
  uint64_t runs = 1;
  uint32_t jobs = 0;
  bool trace = false;
  std::string plant;
  std::string conjunction;
};

absl::StatusOr<PlantedBug> ParsePlant(const std::string& name) {
  if (name.empty()) return PlantedBug::kNone;
  std::vector<std::string> names;
  for (const PlantedBugName& bug : kPlantedBugs) {
    if (name == bug.name) return bug.bug;
    names.push_back(bug.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--plant ", name, ": unknown bug; use one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<Conjunction> ParseConjunction(const std::string& name) {
  if (name.empty()) return Conjunction::kDrawn;
  std::vector<std::string> names;
  for (const ConjunctionName& known : kConjunctions) {
    if (name == known.name) return known.conjunction;
    names.push_back(known.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--conjunction ", name, ": unknown conjunction; use one of ", absl::StrJoin(names, ", ")));
}

std::string ReplayCommand(const FaultArguments& a, uint64_t seed) {
  return absl::StrCat("tug simulate faults --seed ", seed, " --trace",
                      a.conjunction.empty() ? "" : absl::StrCat(" --conjunction ", a.conjunction),
                      a.plant.empty() ? "" : absl::StrCat(" --plant ", a.plant));
}

// Result of all runs.
class Summary {
 public:
  Summary(const FaultArguments& a, uint32_t jobs) : a_(a), jobs_(jobs) {}

  void Add(const FaultOutcome& outcome) {
    ++runs_;
    for (size_t f = 0; f < kFaultKinds; ++f) faults_[f] += outcome.faults[f];
    fenced_ += outcome.fenced;
    rollbacks_ += outcome.rollbacks;
    resumed_ += outcome.resumed;
    messages_ += outcome.messages;
    if (!outcome.violations.empty()) AddViolations(outcome);
    ShowProgress();
  }
  absl::Status End() {
    if (shows_progress_) WriteStandardError("\r\033[K");
    const double minutes = absl::ToDoubleMinutes(SteadyNow() - begin_);
    for (size_t f = 0; f < kFaultKinds; ++f) {
      if (faults_[f] > 0) std::printf("%10lu  %s\n", faults_[f], kFaultNames[f]);
    }
    std::printf("%10lu  nodes fenced off and ended\n", fenced_);
    std::printf("%10lu  rollbacks to a checkpoint\n", rollbacks_);
    std::printf("%10lu  runs resumed\n", resumed_);
    std::printf("%10lu  messages\n", messages_);
    const std::string violations =
        broken_ == 0 ? "no violation"
                     : absl::StrCat(broken_, broken_ == 1 ? " run" : " runs", " with violations");
    const std::string seeds = runs_ == 1
                                  ? absl::StrCat("seed ", a_.seed)
                                  : absl::StrCat("seeds ", a_.seed, " to ", a_.seed + runs_ - 1);
    std::printf("%s: %s, %.0f seeds per minute in %u %s\n", seeds.c_str(), violations.c_str(),
                static_cast<double>(runs_) / std::max(minutes, 1e-6), jobs_,
                jobs_ == 1 ? "process" : "processes");
    if (broken_ == 0) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat("an invariant is violated; reproduce it with: ",
                                           ReplayCommand(a_, first_broken_)));
  }

 private:
  void AddViolations(const FaultOutcome& outcome) {
    first_broken_ = broken_++ == 0 ? outcome.seed : std::min(first_broken_, outcome.seed);
    if (broken_ > kMaxShownRuns) return;
    if (shows_progress_) WriteStandardError("\r\033[K");
    for (const std::string& violation : outcome.violations) {
      std::printf("seed %lu: %s\n", outcome.seed, violation.c_str());
    }
    std::printf("  replay: %s\n", ReplayCommand(a_, outcome.seed).c_str());
    FlushResults().IgnoreError();  // an error is reported at the end
  }
  void ShowProgress() {
    const absl::Time now = SteadyNow();
    if (!shows_progress_ || now - shown_ < absl::Milliseconds(200)) return;
    shown_ = now;
    WriteStandardError(
        absl::StrCat("\r", runs_, " of ", a_.runs, " runs, ", broken_, " with violations"));
  }

  const FaultArguments& a_;
  const uint32_t jobs_;
  const bool shows_progress_ = StandardErrorIsTerminal();
  const absl::Time begin_ = SteadyNow();
  absl::Time shown_ = begin_;
  uint64_t runs_ = 0;
  uint64_t broken_ = 0;
  uint64_t first_broken_ = 0;
  std::array<uint64_t, kFaultKinds> faults_ = {};
  uint64_t fenced_ = 0;
  uint64_t rollbacks_ = 0;
  uint64_t resumed_ = 0;
  uint64_t messages_ = 0;
};

absl::Status TraceOne(const FaultArguments& a, PlantedBug plant, Conjunction conjunction) {
  const Scenario scenario = MakeScenario(a.seed, conjunction);
  std::printf("seed %lu: %s\n\n", a.seed, scenario.Text().c_str());
  const FaultOutcome outcome =
      FaultRunner().Run(scenario, plant, [](absl::Duration at, const std::string& text) {
        std::printf("%9.3f s  %s\n", absl::ToDoubleSeconds(at), text.c_str());
        FlushResults().IgnoreError();  // an error is reported at the end
      });
  if (outcome.violations.empty()) {
    std::printf("\nno violation\n");
    return absl::OkStatus();
  }
  std::printf("\n");
  for (const std::string& violation : outcome.violations) {
    std::printf("violation: %s\n", violation.c_str());
  }
  return absl::AbortedError(absl::StrCat("an invariant is violated with seed ", a.seed));
}

absl::Status SimulateFaults(const FaultArguments& a) {
  ASSIGN_OR_RETURN(const PlantedBug plant, ParsePlant(a.plant));
  ASSIGN_OR_RETURN(const Conjunction conjunction, ParseConjunction(a.conjunction));
  if (a.runs < 1 || a.runs > kMaxRuns) {
    return absl::InvalidArgumentError(absl::StrCat("--runs ", a.runs, ": from 1 to ", kMaxRuns));
  }
  if (a.jobs > kMaxJobs) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs ", a.jobs, ": up to ", kMaxJobs));
  }
  if (a.seed > ~uint64_t{0} - a.runs) {
    return absl::InvalidArgumentError(absl::StrCat("--seed ", a.seed, ": too large"));
  }
  if (a.trace) {
    if (a.runs == 1) return TraceOne(a, plant, conjunction);
    return absl::InvalidArgumentError("--trace shows one seed: omit --runs");
  }
  FaultRuns runs{.first_seed = a.seed, .runs = a.runs, .plant = plant, .conjunction = conjunction};
  runs.jobs = a.jobs > 0 ? a.jobs : static_cast<uint32_t>(ReadCpuBudget().usable);
  runs.jobs = static_cast<uint32_t>(std::min<uint64_t>(runs.jobs, a.runs));
  Summary summary(a, runs.jobs);
  RETURN_IF_ERROR(RunFaultSeeds(runs, [&](const FaultOutcome& outcome) {
    summary.Add(outcome);
    return true;
  }));
  return summary.End();
}

}  // namespace

void AddSimulateFaults(CLI::App& simulate, Command& chosen) {
  auto a = std::make_shared<FaultArguments>();
  CLI::App* command = simulate.add_subcommand(
      "faults",
      "Runs complete jobs with faults drawn from seeds, and checks the invariants of every run");
  command
      ->add_option("--seed", a->seed,
                   "First seed; a seed determines the job, its cluster, its network and its faults")
      ->capture_default_str();
  command->add_option("--runs", a->runs, "Number of seeds, one after the other")
      ->capture_default_str();
  command->add_option("--jobs", a->jobs, "Processes that run seeds in parallel [one per core]");
  command->add_flag("--trace", a->trace, "Print the events of the run of --seed, in virtual time");
  std::string plants;
  for (const PlantedBugName& bug : kPlantedBugs) {
    absl::StrAppend(&plants, plants.empty() ? "" : "; ", bug.name, ": ", bug.text);
  }
  command
      ->add_option("--plant", a->plant, "Plant a bug, to check that it is found (" + plants + ")")
      ->type_name("BUG");
  std::string conjunctions;
  for (const ConjunctionName& known : kConjunctions) {
    absl::StrAppend(&conjunctions, conjunctions.empty() ? "" : ", ", known.name);
  }
  command
      ->add_option("--conjunction", a->conjunction,
                   "Conditions of all runs, in addition to the drawn ones (" + conjunctions + ")")
      ->type_name("NAME");
  command->footer(
      "What is simulated and what is checked: docs/reliability.md.\n"
      "Examples:\n"
      "  tug simulate faults --runs 1000\n"
      "  tug simulate faults --seed 17 --trace\n"
      "  tug simulate faults --runs 1000 --plant staleness");
  command->callback([a, &chosen] { chosen = [a] { return SimulateFaults(*a); }; });
}

}  // namespace tug
