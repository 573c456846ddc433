#ifndef TUG_CLI_COMPRESSION_PLAN_H_
#define TUG_CLI_COMPRESSION_PLAN_H_

// What `tug experiment compression` is asked for, and the jobs that come of it: one training with
// every codec, in two parts.
//   links      some steps of it on every link: bytes, times, who waits for how long.
//   learning   all of it, on this machine as it is: losses. With several learning rates every codec
//              runs with each of them, so that none is tuned more than another.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/experiment_links.h"
#include "cli/experiment_training.h"
#include "experiment/codec_case.h"
#include "proto/job.pb.h"

namespace tug {

// As it was asked for.
struct CompressionArguments {
  std::string job_file;  // of the training; empty: a small GPT on a made-up text
  std::vector<std::string> parts = {"links", "learning"};
  std::vector<std::string> codecs = {"fp32",         "bf16/bf16",       "int8/int8",
                                     "one_bit/int8", "top_k:0.01/int8", "top_k:0.01-ef/int8",
                                     "auto/auto"};
  std::vector<std::string> links = {"none", "1gbit", "100mbit"};
  uint32_t workers = 4;
  uint32_t servers = 2;
  uint32_t hosts = 0;                  // 0: all on this machine as it is
  uint32_t warm_up = 4;                // steps on a link that are not measured
  uint32_t link_steps = 20;            // that are
  uint64_t train_steps = 0;            // of the learning; 0: the job's
  std::vector<double> learning_rates;  // empty: the job's
  double loss_margin = 0.03;
  std::string out;  // folder; empty: runs/compression-<n>
  std::vector<std::string> overrides;
  std::string command;  // the whole line
};

struct CompressionJob {
  std::string name;  // "link-100mbit-top_k0.01-pull-int8"
  CodecCase codec;
  PlannedLink link;
  bool learns = false;
  double learning_rate = 0;  // of the learning
  uint64_t steps = 0;
  std::vector<std::string> schedule;  // ScheduleOverrides
};

struct CompressionPlan {
  ExperimentTraining training;
  std::vector<CodecCase> codecs;
  std::vector<PlannedLink> links;    // none without that part
  std::vector<CompressionJob> jobs;  // in the order in which they run, link by link
};

// Errors: INVALID_ARGUMENT, naming the option, also for a --set of what the report says is
// otherwise; those of the job file.
absl::StatusOr<CompressionPlan> PlanCompression(const CompressionArguments& arguments);

// --set values of a job. `text_path`: of the made-up text.
std::vector<std::string> JobOverrides(const CompressionArguments& arguments,
                                      const CompressionPlan& plan, const CompressionJob& job,
                                      const std::string& text_path);

}  // namespace tug

#endif  // TUG_CLI_COMPRESSION_PLAN_H_
