#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/gpu_share.h"
#include "cli/keys_argument.h"
#include "cli/route.h"
#include "exchange/cuda_encoder.h"
#include "kernels/device.h"
#include "model/multi_gpu_model.h"
#include "proto/control_client.h"
#include "worker/daemon.h"

namespace tug {
namespace {

// Which of the host's GPUs the worker takes, as it is told.
struct GpuChoice {
  std::vector<int> numbers = {0};
  std::string share;  // in place of numbers; of those that there are
};

// Of a share no more than a micro-batch has samples: the others would compute nothing. Number 0
// where there is none: the error says why.
std::vector<int> NumbersOf(const GpuChoice& choice, int max_micro_batch) {
  const std::optional<GpuShare> share = ParseGpuShare(choice.share);
  if (!share.has_value()) return choice.numbers;
  std::vector<int> numbers = GpusOfWorker(kernels::cuda::ListDevices(), *share);
  if (numbers.empty()) return {0};
  numbers.resize(std::min(numbers.size(), static_cast<size_t>(max_micro_batch)));
  return numbers;
}

// Of an IPv6 coordinator: metrics are answered on this host only.
std::string MetricsHost(const std::string& coordinator) {
  const absl::StatusOr<HostPort> peer = ParseHostPort(coordinator);
  if (!peer.ok()) return "127.0.0.1";
  return AddressTowardHost(peer->host).value_or("127.0.0.1");
}

void AddGpuOptions(CLI::App& command, GpuChoice& choice) {
  CLI::Option* const numbers = command.add_option(
      "--gpu", choice.numbers,
      "Numbers of the host's NVIDIA GPUs that it takes, if the job's device is CUDA or AUTO; "
      "several compute each micro-batch together; default 0");
  numbers->type_name("N,..")->delimiter(',')->allow_extra_args(false)->check(
      CLI::NonNegativeNumber);
  command
      .add_option("--gpu-share", choice.share,
                  "In place of --gpu: the part of worker I of N of the GPUs that the host has, as "
                  "tug train and tug launch start them")
      ->type_name("I/N")
      ->excludes(numbers)
      ->check([](const std::string& text) {
        return ParseGpuShare(text).has_value()
                   ? ""
                   : "I/N: a worker's number, from 0 on, and how many there are";
      });
}

}  // namespace

void AddWorkerCommand(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<WorkerOptions>();
  CLI::App* command = app.add_subcommand("worker", "Daemon: computes gradients for a job");
  command->add_option("--coordinator", options->coordinator, "Address of the job's coordinator")
      ->type_name("HOST:PORT")
      ->required();
  CLI::Option* job = command->add_option(
      "--job", options->job_file,
      "Job file that the coordinator's must equal; nothing else is read from it");
  job->type_name("JOB");
  command
      ->add_option("--set", options->overrides,
                   "Override of a field of --job; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->needs(job);
  command
      ->add_option("--cache-dir", options->cache_dir,
                   "Folder for the tokens of the text, where the run folder's cannot be read")
      ->type_name("DIR");
  auto keys = std::make_shared<KeysArgument>();
  keys->AddTo(*command);
  auto gpus = std::make_shared<GpuChoice>();
  AddGpuOptions(*command, *gpus);
  command->footer(
      "SIGTERM lets others take over the worker's part, then ends it; a second one ends it at "
      "once.\n"
      "Examples:\n"
      "  tug worker --coordinator 10.0.0.1:7070\n"
      "  tug worker --coordinator 10.0.0.1:7070 --gpu 0,1,2,3");
  command->callback([options, keys, gpus, &chosen] {
    const std::set<int> different(gpus->numbers.begin(), gpus->numbers.end());
    if (different.size() != gpus->numbers.size()) {
      throw CLI::ValidationError("--gpu", "a number is there twice");
    }
    chosen = [options, keys, gpus]() -> absl::Status {
      ASSIGN_OR_RETURN(options->keys, keys->Read());
      options->gpu_models = [gpus](const GpuModelOptions& model) {
        return NewMultiGpuModel(NumbersOf(*gpus, model.model.max_micro_batch), model);
      };
      options->gpu_encoders = NewCudaEncoder;
      LeaveSignal leave;
      options->leave = &leave;
      options->metrics_host = MetricsHost(options->coordinator);
      return RunWorker(*options);
    };
  });
}

}  // namespace tug
