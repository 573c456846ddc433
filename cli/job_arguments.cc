#include "cli/job_arguments.h"

namespace tug {

void JobArguments::AddTo(CLI::App& command) {
  command.add_option("JOB", job_file, "Job file (text form of JobConfig, see proto/job.proto)")
      ->required();
  command
      .add_option("--set", overrides,
                  "Override a field of the job file: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  CLI::Option* from_checkpoint = command.add_option(
      "--resume", resume,
      "Go on from the newest checkpoint of a run folder, or from the folder of a checkpoint");
  from_checkpoint->type_name("PATH");
  command
      .add_option("--init-from", init_from,
                  "Begin with the weights of a folder of Hugging Face's GPT-2, a run or a "
                  "checkpoint, and a new optimizer (sets train.init_from)")
      ->type_name("DIR")
      ->excludes(from_checkpoint);
  command.add_option("--run-dir", run_dir, "Folder of the run [runs/<name>-<n>, the first free n]")
      ->type_name("DIR");
}

std::vector<std::string> JobArguments::Overrides() const {
  std::vector<std::string> all = overrides;
  if (!init_from.empty()) all.push_back("train.init_from=" + init_from);
  return all;
}

void CoordinatorArguments::AddTo(CLI::App& command) {
  CLI::Option* by_run = command.add_option("RUN", run, "Run folder of the job");
  command.add_option("--coordinator", address, "Address of its coordinator instead")
      ->type_name("HOST:PORT")
      ->excludes(by_run);
}

}  // namespace tug
