#ifndef TUG_CLI_SYNC_PLAN_H_
#define TUG_CLI_SYNC_PLAN_H_

// What `tug experiment sync` is asked for, and the jobs that come of it.
//
// A part of it is a job under every mode and straggler. There are two:
//   throughput   a replay: workers sleep through a profile's times, so that any number of them is
//                undisturbed by the others on any machine. Speed, waits, staleness, timelines.
//   learning     a training: losses. Its workers share the cores of the machine, so where these are
//                fewer, a worker that is made slow leaves its share to the others.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/link_plan.h"
#include "experiment/sync_results.h"
#include "proto/job.pb.h"

namespace tug {

// As it was asked for.
struct SyncArguments {
  std::string job_file;  // of the training; empty: a small GPT on a made-up text
  std::vector<std::string> parts = {"throughput", "learning"};
  std::vector<std::string> modes = {"bsp", "ssp:1", "ssp:4", "asp", "backup:1", "local:16"};
  std::vector<std::string> stragglers = {"none", "persistent", "pauses"};
  uint32_t workers = 4;
  uint32_t servers = 2;
  uint32_t hosts = 0;  // 0: all on this machine as it is
  std::string link;    // empty: none, but of hosts 200mbit
  double slowdown = 4;
  double pause_probability = 0.05;
  double pause_steps = 2;  // mean length, in undisturbed steps of bsp
  // Of the throughput:
  std::string profile = "resnet50";
  double step_ms = 100;  // that computing takes
  double ratio = 0.25;   // of a step's transfer to that, with a link
  uint32_t warm_up = 8;  // batches
  uint32_t steps = 60;   // batches that are measured
  // Of the learning: batches; 0: the job's.
  uint64_t train_steps = 0;
  std::string out;  // folder; empty: runs/sync-<n>
  std::vector<std::string> overrides;
  std::string command;  // the whole line
};

// One of a part's jobs.
struct SyncJob {
  std::string name;  // "throughput-persistent-ssp4"
  SyncCase mode;
  StragglerKind straggler = StragglerKind::kNone;
  uint64_t warm_up = 0;  // job steps, as the next ones
  uint64_t steps = 0;
  uint64_t eval_interval = 0;
  std::vector<std::string> schedule;  // ScheduleOverrides
  uint32_t traced_steps = 0;
};

struct PlannedPart {
  SyncPart part;  // no runs yet
  bool throughput = false;
  std::string job_path;  // of the user's file; empty: `job_text` is to be written to one
  std::string job_text;
  // A batch under bsp, or without it in the first mode; 0: not known before it has run.
  double undisturbed_seconds = 0;
  std::vector<SyncJob> jobs;  // in the order in which they run
};

struct SyncPlan {
  // Of the throughput:
  ReplayScale scale;
  LinkGrain grain;   // read with a link
  std::string link;  // empty: none
  double link_bits_per_second = 0;
  std::vector<PlannedPart> parts;
};

// Errors: INVALID_ARGUMENT, naming the option, also for a --set of what the report says is
// otherwise; those of LoadReplayProfile, and of the job file.
absl::StatusOr<SyncPlan> PlanSync(const SyncArguments& arguments);

// What its jobs take at least, where that is known beforehand.
double LeastSeconds(const PlannedPart& part);

// --set values of a job, those of the user last. REQUIRES: with StragglerKind::kPauses,
// part.undisturbed_seconds is known. `text_path`: of the made-up text.
std::vector<std::string> JobOverrides(const SyncArguments& arguments, const SyncPlan& plan,
                                      const PlannedPart& part, const SyncJob& job,
                                      const std::string& text_path);

}  // namespace tug

#endif  // TUG_CLI_SYNC_PLAN_H_
