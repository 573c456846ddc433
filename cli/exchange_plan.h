#ifndef TUG_CLI_EXCHANGE_PLAN_H_
#define TUG_CLI_EXCHANGE_PLAN_H_

// What `tug experiment exchange` is asked for, and the jobs that come of it: some steps of one job
// with every way to exchange, on every link, with models of every size.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/experiment_links.h"
#include "cli/experiment_training.h"
#include "experiment/exchange_case.h"
#include "experiment/link_plan.h"
#include "proto/job.pb.h"

namespace tug {

// As it was asked for.
struct ExchangeArguments {
  std::string job_file;            // empty: a replay
  std::vector<std::string> cases;  // empty: all (AllExchangeCases)
  std::vector<std::string> links = {"none"};
  uint32_t workers = 4;
  // Of the replay:
  std::string profile;            // empty: resnet50
  std::vector<double> megabytes;  // of its model; empty: 8
  double step_ms = 0;             // that computing takes; 0: the exchange alone
  uint32_t warm_up = 3;           // steps that are not measured
  uint32_t steps = 12;            // that are
  double latency_us = 100;        // alpha
  std::string out;                // folder; empty: runs/exchange-<n>
  std::vector<std::string> overrides;
  std::string command;  // the whole line
};

// A model of one size.
struct PlannedSize {
  double bytes = 0;  // FP32; 0: the job's own
  // Of a replay:
  double size_scale = 1;
  LinkGrain grain;  // with one server
};

struct ExchangeJob {
  std::string name;  // "none-8MB-servers2"
  ExchangeCase exchange;
  PlannedLink link;
  PlannedSize size;
};

struct ExchangePlan {
  ExperimentTraining training;
  bool replays = false;    // it is ours, of `profile`
  bool evaluates = false;  // the job is a training
  std::string profile;     // of the replay
  double time_scale = 0;   // of the replay
  std::vector<ExchangeCase> cases;
  std::vector<PlannedLink> links;
  std::vector<PlannedSize> sizes;
  uint32_t hosts = 0;                 // that the links but none take; 0: there is no other
  std::vector<std::string> schedule;  // ScheduleOverrides
  std::vector<ExchangeJob> jobs;      // in the order in which they run: by link, size, case
};

// Errors: INVALID_ARGUMENT, naming the option, also for a --set of what the report says is
// otherwise; those of LoadReplayProfile, and of the job file.
absl::StatusOr<ExchangePlan> PlanExchange(const ExchangeArguments& arguments);

// --set values of a job, those of the user last.
std::vector<std::string> JobOverrides(const ExchangeArguments& arguments, const ExchangePlan& plan,
                                      const ExchangeJob& job);

}  // namespace tug

#endif  // TUG_CLI_EXCHANGE_PLAN_H_
