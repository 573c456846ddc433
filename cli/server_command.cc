#include "server/daemon.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/exposure.h"

namespace tug {
namespace {

absl::Status Serve(const ServerOptions& options) {
  if (options.listen_host == "0.0.0.0" || options.listen_host == "*" ||
      options.listen_host == "::") {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen_host,
                     " cannot be told to workers: give the address by which they reach this host"));
  }
  WarnIfExposed(options.listen_host);
  return RunServer(options);
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
  command->footer("Example:\n  tug server --coordinator 10.0.0.1:7070 --listen 10.0.0.2");
  command->callback([options, &chosen] { chosen = [options] { return Serve(*options); }; });
}

}  // namespace tug
