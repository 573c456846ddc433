// SPDX-License-Identifier: Apache-2.0
#include "process/job_arguments.h"
#include "server/daemon.h"

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/name_argument.h"
#include "control/control_client.h"
#include "launch/rank_environment.h"
#include "launch/route.h"
#include "process/commands.h"
#include "process/environment.h"
#include "process/keys_argument.h"
#include "process/log_format.h"
#include "proto/process_name.h"
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
                     " is not an address workers can connect to: pass the address of this host"));
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
  CLI::App* command = app.add_subcommand("server", "Daemon: holds part of the weights of a job");
  command
      ->add_option(
          "--coordinator", options->coordinator,
          "Address of the job's coordinator; default: MASTER_ADDR:MASTER_PORT of the environment")
      ->type_name("HOST:PORT");
  CLI::Option* listen =
      command->add_option("--listen", options->listen_host,
                          "Address of this host that lanes listen on and workers connect to; "
                          "default: the local address of the route to the coordinator");
  listen->type_name("HOST");
  command
      ->add_option("--interface", *interfaces,
                   "Instead of --listen: an address of these interfaces, that of the route to the "
                   "coordinator or else the first")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(listen);
  auto name = std::make_shared<NameArgument>(kServerRole);
  name->AddTo(*command);
  auto keys = std::make_shared<KeysArgument>();
  keys->AddTo(*command);
  command->add_flag("--spare", options->spare,
                    "Stand by to replace a server that is lost or leaves. Without --spare, a "
                    "server that joins a running job gets its share of the segments");
  command->footer(std::string("SIGTERM drains the server: it hands over what it holds and exits; a "
                              "second SIGTERM, at least 1 s later, ends it at once.\n") +
                  kHowNeededNodesEnd +
                  "Examples:\n"
                  "  tug server --coordinator 10.0.0.1:7070 --keys job.keys\n"
                  "  tug server --coordinator 10.0.0.1:7070 --keys job.keys --listen 10.0.0.2\n"
                  "  TUG_KEYS=job.keys MASTER_ADDR=10.0.0.1 MASTER_PORT=7070 tug server");
  command->callback([options, name, interfaces, keys, &chosen] {
    chosen = [options, name, interfaces, keys] {
      options->index = name->index();
      return Serve(*options, *interfaces, *keys);
    };
  });
}

}  // namespace tug
