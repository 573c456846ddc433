#include <cstdint>
#include <memory>

#include "cli/commands.h"
#include "model/staged_model.h"
#include "worker/daemon.h"

namespace tug {

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
  auto gpu = std::make_shared<uint32_t>(0);
  command
      ->add_option("--gpu", *gpu,
                   "Number of the host's NVIDIA GPU that it takes, if the job's device is CUDA or "
                   "AUTO; default 0")
      ->type_name("N");
  command->footer(
      "SIGTERM lets others take over the worker's part, then ends it; a second one ends it at "
      "once.\n"
      "Example:\n  tug worker --coordinator 10.0.0.1:7070");
  command->callback([options, gpu, &chosen] {
    chosen = [options, gpu] {
      options->gpu_models = [gpu](const GpuModelOptions& model) {
        return NewStagedModel(static_cast<int>(*gpu), model);
      };
      LeaveSignal leave;
      options->leave = &leave;
      return RunWorker(*options);
    };
  });
}

}  // namespace tug
