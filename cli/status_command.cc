// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/watch/ended_run.h"
#include "cli/watch/status_text.h"
#include "cli/watch/status_watch.h"
#include "control/control_client.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/watch_text.h"
#include "process/commands.h"
#include "process/coordinator_query.h"
#include "process/job_arguments.h"
#include "proto/process_name.h"

namespace tug {
namespace {

absl::Status ShowStatus(const CoordinatorArguments& arguments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ControlClient> client, ConnectTo(arguments));
  ASSIGN_OR_RETURN(const StatusReply status, client->Status());
  std::printf("job %s: %s, step %s of %s", status.name().c_str(), PhaseText(status.phase()).c_str(),
              WithThousands(status.step()).c_str(), WithThousands(status.steps()).c_str());
  if (status.tokens_per_second() > 0) {
    const bool replays = !status.replay().empty();
    if (replays) {
      std::printf(", replay of %s", status.replay().c_str());
    } else {
      std::printf(", loss %.4f", status.loss());
    }
    std::printf(", %s %s/s, %s left",
                WithThousands(static_cast<uint64_t>(status.tokens_per_second())).c_str(),
                replays ? "samples" : "tokens", DurationText(status.seconds_left()).c_str());
  }
  std::printf("\nrun folder %s, ", status.run_dir().c_str());
  if (status.last_checkpoint() == 0) {
    std::printf("no checkpoint yet\n");
  } else {
    std::printf("last checkpoint: step %s\n", WithThousands(status.last_checkpoint()).c_str());
  }
  if (status.all_reduces()) std::printf("%s\n", AllReduceText(status).c_str());
  if (!status.page().empty()) std::printf("live page %s\n", status.page().c_str());
  if (const std::string wait = WaitText(status); !wait.empty()) std::printf("%s\n", wait.c_str());
  for (const std::string& late : LateTexts(status)) std::printf("%s\n", late.c_str());
  if (!status.failure().empty()) std::printf("failure: %s\n", status.failure().c_str());
  if (const std::string copies = CopiesText(status); !copies.empty()) {
    std::printf("%s\n", copies.c_str());
  }
  for (const NodeStatus& node : status.nodes()) std::printf("%s\n", NodeText(node).c_str());
  return absl::OkStatus();
}

absl::Status ShowEndedRun(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::string text, EndedRunText(run_dir));
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

absl::Status StopJob(const CoordinatorArguments& arguments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ControlClient> client, ConnectTo(arguments));
  ASSIGN_OR_RETURN(const StopReply reply, client->Stop());
  std::printf("%s\n", reply.message().c_str());
  return absl::OkStatus();
}

absl::Status DrainNode(const CoordinatorArguments& arguments, const std::string& node) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ControlClient> client, ConnectTo(arguments));
  ASSIGN_OR_RETURN(const DrainReply reply, client->Drain(node));
  std::printf("%s\n", reply.message().c_str());
  return absl::OkStatus();
}

void AddQuery(CLI::App& app, Command& chosen, const std::string& name,
              const std::string& description, absl::Status (*run)(const CoordinatorArguments&)) {
  auto arguments = std::make_shared<CoordinatorArguments>();
  CLI::App* command = app.add_subcommand(name, description);
  arguments->AddTo(*command);
  command->footer(absl::StrCat("Examples:\n  tug ", name, " runs/job-1\n  tug ", name,
                               " --coordinator 127.0.0.1:7070"));
  command->callback(
      [arguments, run, &chosen] { chosen = [arguments, run] { return run(*arguments); }; });
}

}  // namespace

void AddStatusCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CoordinatorArguments>();
  auto watch = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("status", "Shows the progress of a job and its nodes, or how it ended");
  arguments->AddTo(*command);
  command->add_flag(
      "--watch", *watch,
      "Update twice a second, with slow nodes and what each node waits for, until the job ends or "
      "q is pressed; without a terminal, print lines after each step");
  command->footer(
      "The live page of the job, whose address is printed too, shows the same and curves.\n"
      "Examples:\n  tug status runs/job-1\n  tug status --watch runs/job-1\n"
      "  tug status --coordinator 127.0.0.1:7070");
  command->callback([arguments, watch, &chosen] {
    chosen = [arguments, watch] {
      if (arguments->address.empty() && HasEnded(arguments->run)) {
        return ShowEndedRun(arguments->run);
      }
      return *watch ? WatchStatus(*arguments) : ShowStatus(*arguments);
    };
  });
}

void AddStopCommand(CLI::App& app, Command& chosen) {
  AddQuery(app, chosen, "stop", "Stops a job: finishes the step, writes a checkpoint", StopJob);
}

void AddDrainCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CoordinatorArguments>();
  auto node = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "drain", "Removes a node from a running job after it has handed over its work");
  command->add_option("NODE", *node, "Name of the node, as tug status shows it")
      ->required()
      ->check([](const std::string& text) {
        const bool is_name = ProcessIndexOf(kServerRole, text).has_value() ||
                             ProcessIndexOf(kWorkerRole, text).has_value();
        return is_name ? "" : "not the name of a node, such as worker-0 or server-1";
      });
  arguments->AddTo(*command);
  command->footer(
      "The node exits once other nodes have its segments or virtual workers; the job continues.\n"
      "Examples:\n  tug drain server-1 runs/job-1\n  tug drain worker-0 --coordinator "
      "127.0.0.1:7070");
  command->callback([arguments, node, &chosen] {
    chosen = [arguments, node] { return DrainNode(*arguments, *node); };
  });
}

}  // namespace tug
