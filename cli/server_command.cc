// SPDX-License-Identifier: Apache-2.0
#include "process/job_arguments.h"
#include "server/daemon.h"

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "control/control_client.h"
#include "launch/rank_environment.h"
#include "launch/route.h"
#include "process/commands.h"
#include "process/environment.h"
#include "process/keys_argument.h"
#include "process/log_format.h"
#include "security/security_rules.h"

namespace tug {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

// Address of this host on the route to the coordinator.
absl::StatusOr<std::string> AddressToListenOn(const std::string& coordinator,
                                              const std::vector<std::string>& interfaces) {
  ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(coordinator));
  if (IsLoopback(address.host) && interfaces.empty()) return kLoopback;
  return AddressTowardHost(address.host, interfaces);
}

absl::Status Serve(ServerOptions options, const std::vector<std::string>& interfaces,
                   const KeysArgument& keys) {
  ASSIGN_OR_RETURN(options.coordinator, CoordinatorToJoin(options.coordinator, ReadEnvironment()));
  if (options.listen_host.empty()) {
    ASSIGN_OR_RETURN(options.listen_host, AddressToListenOn(options.coordinator, interfaces));
  }
  if (options.listen_host == "0.0.0.0" || options.listen_host == "*" ||
      options.listen_host == "::") {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen_host,
                     " cannot be told to workers: give the address by which they reach this host"));
  }
  const std::string warning = LoopbackWarning(options.listen_host, "this server");
  if (!warning.empty()) Warn(warning);
  LeaveSignal leave;
  ASSIGN_OR_RETURN(options.keys, keys.Read());
  options.leave = &leave;
  return RunServer(options);
}

}  // namespace

void AddServerCommand(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ServerOptions>();
  options->listen_host.clear();
  auto interfaces = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("server", "Daemon: holds a part of the weights of a job");
  command
      ->add_option("--coordinator", options->coordinator,
                   "Address of the job's coordinator; without it MASTER_ADDR and MASTER_PORT of "
                   "the environment say it")
      ->type_name("HOST:PORT");
  CLI::Option* listen =
      command->add_option("--listen", options->listen_host,
                          "Address of this host that lanes listen on and workers connect to; "
                          "without it that from which packets to the coordinator leave");
  listen->type_name("HOST");
  command
      ->add_option("--interface", *interfaces,
                   "In place of --listen: only addresses of these, that of the way to the "
                   "coordinator or else the first")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(listen);
  auto keys = std::make_shared<KeysArgument>();
  keys->AddTo(*command);
  command->add_flag("--spare", options->spare,
                    "Stand by: take the place of a server that is lost or leaves. Without it, a "
                    "server that joins a running job gets its part of the segments");
  command->footer(
      std::string(
          "SIGTERM hands over what the server holds, then ends it; another one, a second or more "
          "later, ends it at once.\n") +
      kHowNeededNodesEnd +
      "Examples:\n"
      "  tug server --coordinator 10.0.0.1:7070 --keys job.keys\n"
      "  tug server --coordinator 10.0.0.1:7070 --keys job.keys --listen 10.0.0.2\n"
      "  TUG_KEYS=job.keys MASTER_ADDR=10.0.0.1 MASTER_PORT=7070 tug server");
  command->callback([options, interfaces, keys, &chosen] {
    chosen = [options, interfaces, keys] { return Serve(*options, *interfaces, *keys); };
  });
}

}  // namespace tug
