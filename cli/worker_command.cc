// SPDX-License-Identifier: Apache-2.0
#include <sys/sysinfo.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/cpu/cpu_affinity.h"
#include "base/status_macros.h"
#include "cli/name_argument.h"
#include "control/control_client.h"
#include "exchange/encode/cuda_encoder.h"
#include "kernels/cuda/device/device.h"
#include "launch/gpu_share.h"
#include "launch/rank_environment.h"
#include "launch/route.h"
#include "model/gpu/multi_gpu_model.h"
#include "process/commands.h"
#include "process/environment.h"
#include "process/job_arguments.h"
#include "process/keys_argument.h"
#include "proto/process_name.h"
#include "worker/daemon.h"

namespace tug {
namespace {

// GPUs of the host that this worker uses.
struct GpuChoice {
  std::vector<int> numbers = {0};
  bool numbered = false;  // `numbers` come from --gpu
  std::string share;      // "I/N" of the host's GPUs; replaces `numbers`
};

// Uses at most one GPU of a share per sample of a micro-batch: others would idle. {0} on a host
// without GPUs, so that opening it reports the reason.
std::vector<int> NumbersOf(const GpuChoice& choice, int max_micro_batch) {
  const std::optional<GpuShare> share = ParseGpuShare(choice.share);
  if (!share.has_value()) return choice.numbers;
  std::vector<int> numbers = GpusOfWorker(kernels::cuda::ListDevices(), *share);
  if (numbers.empty()) return {0};
  numbers.resize(std::min(numbers.size(), static_cast<size_t>(max_micro_batch)));
  return numbers;
}

// Address to serve metrics on; loopback if the coordinator's is IPv6.
std::string MetricsHost(const std::string& coordinator) {
  const absl::StatusOr<HostPort> peer = ParseHostPort(coordinator);
  if (!peer.ok()) return "127.0.0.1";
  return AddressTowardHost(peer->host).value_or("127.0.0.1");
}

// Arguments of `tug worker`.
struct WorkerCommand {
  WorkerOptions options;
  NameArgument name{kWorkerRole};
  KeysArgument keys;
  GpuChoice gpus;
  std::string core_share;
};

// False: another launcher has already restricted this process to its cores; do not divide them.
bool HasAllCores() { return static_cast<int>(ReadCpuBudget().cores.size()) >= get_nprocs(); }

// Reads rank and shares of this worker: from flags of tug's launchers, else from the environment.
absl::Status ReadPlace(WorkerCommand& command) {
  const Environment environment = ReadEnvironment();
  WorkerOptions& options = command.options;
  ASSIGN_OR_RETURN(options.coordinator, CoordinatorToJoin(options.coordinator, environment));
  if (const auto share = ParseGpuShare(command.core_share)) {
    options.core_share = {static_cast<int>(share->worker), static_cast<int>(share->workers)};
  }
  const bool has_share = !command.gpus.share.empty() || !command.core_share.empty();
  ASSIGN_OR_RETURN(const WorkerRank rank,
                   WorkerRankOf(environment, has_share ? RanksRead::kInJob : RanksRead::kAll));
  options.index = command.name.index();
  if (rank.in_job.has_value()) {
    options.workers_started = rank.in_job->of;
    if (!options.index.has_value()) options.index = rank.in_job->rank;
  }
  if (!rank.on_host.has_value()) return absl::OkStatus();
  const RankOf& own = *rank.on_host;
  if (!command.gpus.numbered) command.gpus.share = GpuShareText({own.rank, own.of});
  if (HasAllCores()) options.core_share = {static_cast<int>(own.rank), static_cast<int>(own.of)};
  return absl::OkStatus();
}

std::string CheckShare(const std::string& text) {
  return ParseGpuShare(text).has_value()
             ? ""
             : "not I/N: the number of a worker, from 0, and the number of workers";
}

void AddGpuOptions(CLI::App& command, GpuChoice& choice) {
  CLI::Option* const numbers =
      command.add_option("--gpu", choice.numbers,
                         "Numbers of the host's NVIDIA GPUs to use, if the job's device is CUDA or "
                         "AUTO; several compute each micro-batch together; default 0");
  numbers->type_name("N,..")->delimiter(',')->allow_extra_args(false)->check(
      CLI::NonNegativeNumber);
  command
      .add_option("--gpu-share", choice.share,
                  "Instead of --gpu: the share of worker I of N in the host's GPUs; set by tug "
                  "train and tug launch")
      ->type_name("I/N")
      ->excludes(numbers)
      ->check(CheckShare);
}

void AddJobOptions(CLI::App& command, WorkerOptions& options) {
  command
      .add_option(
          "--coordinator", options.coordinator,
          "Address of the job's coordinator; default: MASTER_ADDR:MASTER_PORT of the environment")
      ->type_name("HOST:PORT");
  CLI::Option* job = command.add_option(
      "--job", options.job_file,
      "Job file to compare with the coordinator's; the worker exits if they differ");
  job->type_name("JOB");
  command
      .add_option("--set", options.overrides,
                  "Override of a field of --job; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->needs(job);
  command
      .add_option("--cache-dir", options.cache_dir,
                  "Folder for the tokens of the text, if the run folder's cannot be read")
      ->type_name("DIR");
}

absl::Status Work(WorkerCommand command) {
  RETURN_IF_ERROR(ReadPlace(command));
  WorkerOptions& options = command.options;
  ASSIGN_OR_RETURN(options.keys, command.keys.Read());
  options.metrics_host = MetricsHost(options.coordinator);
  options.gpu_models = [&command](const GpuModelOptions& model) {
    return NewMultiGpuModel(NumbersOf(command.gpus, model.model.max_micro_batch), model);
  };
  options.gpu_encoders = NewCudaEncoder;
  LeaveSignal leave;
  options.leave = &leave;
  return RunWorker(options);
}

}  // namespace

void AddWorkerCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<WorkerCommand>();
  CLI::App* command = app.add_subcommand("worker", "Daemon: computes gradients for a job");
  AddJobOptions(*command, arguments->options);
  arguments->name.AddTo(*command);
  arguments->keys.AddTo(*command);
  AddGpuOptions(*command, arguments->gpus);
  command
      ->add_option("--core-share", arguments->core_share,
                   "Use the share of worker I of N in the cores available to this process; set by "
                   "tug launch")
      ->type_name("I/N")
      ->check(CheckShare);
  command->footer(
      std::string("SIGTERM drains the worker: other workers take over its virtual workers, then it "
                  "exits; a second SIGTERM, at least 1 s later, ends it at once.\n") +
      kHowNeededNodesEnd +
      "If the job is full, the worker waits for fault.failure_timeout_ms + 10 s: the node it "
      "replaces may not have been declared lost yet.\n"
      "Variables of other launchers that it reads (torchrun, wrappers of mpirun and srun, indexed "
      "Kubernetes jobs):\n"
      "  RANK, WORLD_SIZE              its number among all workers, and in its name unless "
      "--name is given; WORLD_SIZE must be cluster.workers of the job\n"
      "  LOCAL_RANK, LOCAL_WORLD_SIZE  its number among the workers of its host: selects its share "
      "of the GPUs (unless --gpu is given) and of the cores (unless it is restricted to some of "
      "them); not read with --gpu-share or --core-share\n"
      "Examples:\n"
      "  tug worker --coordinator 10.0.0.1:7070 --keys job.keys\n"
      "  tug worker --coordinator 10.0.0.1:7070 --keys job.keys --gpu 0,1,2,3\n"
      "  TUG_KEYS=job.keys MASTER_ADDR=10.0.0.1 MASTER_PORT=7070 RANK=3 WORLD_SIZE=4 tug worker");
  command->callback([command, arguments, &chosen] {
    GpuChoice& gpus = arguments->gpus;
    gpus.numbered = command->count("--gpu") > 0;
    const std::set<int> different(gpus.numbers.begin(), gpus.numbers.end());
    if (different.size() != gpus.numbers.size()) {
      throw CLI::ValidationError("--gpu", "duplicate GPU number; list each GPU once");
    }
    chosen = [arguments] { return Work(*arguments); };
  });
}

}  // namespace tug
