#include "server/daemon.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/keys_argument.h"

namespace tug {
namespace {

absl::Status Serve(const ServerOptions& options, const KeysArgument& keys) {
  if (options.listen_host == "0.0.0.0" || options.listen_host == "*" ||
      options.listen_host == "::") {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen_host,
                     " cannot be told to workers: give the address by which they reach this host"));
  }
  LeaveSignal leave;
  ServerOptions leaving = options;
  ASSIGN_OR_RETURN(leaving.keys, keys.Read());
  leaving.leave = &leave;
  return RunServer(leaving);
}

}  // namespace

void AddServerCommand(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ServerOptions>();
  CLI::App* command = app.add_subcommand("server", "Daemon: holds a part of the weights of a job");
  command->add_option("--coordinator", options->coordinator, "Address of the job's coordinator")
      ->type_name("HOST:PORT")
      ->required();
  command
      ->add_option("--listen", options->listen_host,
                   "Address of this host that lanes listen on and workers connect to")
      ->type_name("HOST")
      ->capture_default_str();
  auto keys = std::make_shared<KeysArgument>();
  keys->AddTo(*command);
  command->add_flag("--spare", options->spare,
                    "Stand by: take the place of a server that is lost or leaves. Without it, a "
                    "server that joins a running job gets its part of the segments");
  command->footer(
      "SIGTERM hands over what the server holds, then ends it; a second one ends it at once.\n"
      "Example:\n  tug server --coordinator 10.0.0.1:7070 --keys job.keys --listen 10.0.0.2");
  command->callback(
      [options, keys, &chosen] { chosen = [options, keys] { return Serve(*options, *keys); }; });
}

}  // namespace tug
