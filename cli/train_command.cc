// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/cpu/cpu_affinity.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "launch/job_security.h"
#include "launch/job_source.h"
#include "launch/launcher.h"
#include "launch/local_budget.h"
#include "launch/local_job.h"
#include "process/commands.h"
#include "process/job_arguments.h"
#include "process/keys_argument.h"

namespace tug {
namespace {

struct TrainArguments {
  JobArguments job;
  KeysArgument keys;
};

std::vector<std::string> TrainWordsToResume(const TrainArguments& train) {
  std::vector<std::string> words = {"tug", "train"};
  for (const auto& more : {train.job.WordsToResume(), train.keys.Words()}) {
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

absl::Status Train(const TrainArguments& train) {
  const JobArguments& arguments = train.job;
  // Detect configuration errors before any process is started.
  ASSIGN_OR_RETURN(const JobSource source, ReadJob(arguments));
  ASSIGN_OR_RETURN(const JobConfig config,
                   ParseJobToStart(source.text, source.name, arguments.Overrides()));
  LocalJob job;
  ASSIGN_OR_RETURN(job.executable, OwnExecutable());
  job.job_file = source.name;
  job.job_text = source.text;
  job.overrides = arguments.Overrides();
  job.command = TrainWordsToResume(train);
  job.keeps_log = true;
  job.resume = arguments.resume;
  job.run_dir = arguments.run_dir;
  job.servers = config.cluster().servers();
  job.workers = config.cluster().workers();
  job.nodes_may_leave = ContinuesWithoutNode(config);
  job.spare_servers = config.cluster().spare_servers();
  job.beside_workers = StartsServersBesideWorkers(config);
  ASSIGN_OR_RETURN(job.security.mode, WrittenMode(source.text, source.name, job.overrides));
  ASSIGN_OR_RETURN(job.security.keys, train.keys.Read());
  FitToMachine(ReadCpuBudget(), config.cluster(), job);
  return RunLocalJob(job);
}

}  // namespace

void AddTrainCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand(
      "train",
      "Runs a job on this machine: starts coordinator, servers and workers, and ends them");
  arguments->job.AddTo(*command, /*required=*/false);
  arguments->keys.AddTo(*command);
  command->footer(std::string(kHowJobsEnd) +
                  "Examples:\n"
                  "  tug train job.textproto\n"
                  "  tug train job.textproto --set train.steps=100 --set cluster.workers=1 --set "
                  "cluster.virtual_workers=2\n"
                  "  tug train --resume runs/job-1\n"
                  "  tug train job.textproto --trace --trace-steps 5..14\n"
                  "  tug train job.textproto --init-from gpt2");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Train(*arguments); }; });
}

}  // namespace tug
