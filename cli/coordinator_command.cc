#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/cpu_affinity.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/exposure.h"
#include "cli/interrupts.h"
#include "cli/job_arguments.h"
#include "cli/local_budget.h"
#include "coordinator/daemon.h"
#include "proto/job_config.h"
#include "simulate/step_prediction.h"

namespace tug {
namespace {

struct CoordinatorCommand {
  JobArguments job;
  std::string listen = "127.0.0.1:7070";
  int ready_fd = -1;
};

// Tells `tug train` where we are: "ADDRESS\tRUN_DIR\n".
void TellParent(int fd, const std::string& address, const std::string& run_dir) {
  if (fd < 0) return;
  const std::string line = absl::StrCat(address, "\t", run_dir, "\n");
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::fprintf(stderr, "tug: warning: nobody reads the address\n");
  }
  close(fd);
}

// What the tuner of comm.scheduler AUTO expects: only replays without clipping are simulated.
void OfferPredictions(CoordinatorDaemonOptions& options) {
  const JobConfig& config = options.config;
  if (config.compute() != JobConfig::REPLAY || config.optimizer().clip() != OptimizerConfig::OFF) {
    return;
  }
  options.predict_steps = [](const JobConfig& job, const StepPredictionWanted& wanted,
                             const std::stop_token& stop) {
    return PredictSteps(job, {wanted.measured, wanted.measured_seconds}, wanted.points,
                        [&] { return stop.stop_requested(); });
  };
}

absl::Status Coordinate(const CoordinatorCommand& command) {
  CoordinatorDaemonOptions options;
  ASSIGN_OR_RETURN(options.config, LoadJobConfig(command.job.job_file, command.job.Overrides()));
  ASSIGN_OR_RETURN(options.listen, ParseHostPort(command.listen));
  WarnIfExposed(options.listen.host);
  options.run_dir = command.job.run_dir;
  options.resume = command.job.resume;
  if (command.ready_fd >= 0)
    options.note = LocalPlanText(ReadCpuBudget(), options.config.cluster());
  OfferPredictions(options);
  Interrupts interrupts;
  options.on_listening = [&](const std::string& address, const std::string& run_dir) {
    TellParent(command.ready_fd, address, run_dir);
  };
  options.stop_wanted = [&] {
    const int count = interrupts.Count();
    if (count > 1) {
      std::fprintf(stderr, "\ntug: error: interrupted twice: ended at once\n");
      std::_Exit(1);
    }
    return count == 1;
  };
  return RunCoordinator(options);
}

}  // namespace

void AddCoordinatorCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CoordinatorCommand>();
  CLI::App* command =
      app.add_subcommand("coordinator", "Daemon: coordinates one job whose nodes run anywhere");
  arguments->job.AddTo(*command);
  command
      ->add_option("--listen", arguments->listen, "Address for the nodes; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command
      ->add_option("--ready-fd", arguments->ready_fd, "File descriptor for address and run folder")
      ->group("");  // for `tug train`
  command->footer(
      "Servers and workers need only --coordinator HOST:PORT; all hosts must see the run folder "
      "under the same "
      "path.\n"
      "Example, on three hosts:\n"
      "  a$ tug coordinator job.textproto --listen 10.0.0.1:7070\n"
      "  b$ tug server --coordinator 10.0.0.1:7070 --listen 10.0.0.2\n"
      "  c$ tug worker --coordinator 10.0.0.1:7070");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return Coordinate(*arguments); }; });
}

}  // namespace tug
