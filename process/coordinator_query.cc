// SPDX-License-Identifier: Apache-2.0
#include "process/coordinator_query.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files/shell_word.h"
#include "base/status_macros.h"
#include "coordinator/observe/run_folder.h"

namespace tug {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(3);

// Remedy for a job whose coordinator may have died. Only a coordinator that died leaves a journal.
std::string Remedy(const std::string& run) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::path(run) / kJournalFile, error)) {
    return "If it has died, recover the job: tug coordinator --recover " + ShellWord(run);
  }
  return "If it is not running: " + HowToContinue(run);
}

// Connects to the run folder's coordinator, and refuses another one at the same address.
absl::StatusOr<std::unique_ptr<ControlClient>> ConnectToOwner(
    const CoordinatorArguments& arguments) {
  const std::string& run = arguments.run;
  if (run.empty()) {
    return absl::InvalidArgumentError(
        "no job given: name its run folder, or --coordinator HOST:PORT");
  }
  ASSIGN_OR_RETURN(const CoordinatorAddress at, ReadCoordinatorAddress(run));
  ASSIGN_OR_RETURN(const JobKeys keys, arguments.keys.Read(run));
  absl::StatusOr<std::unique_ptr<ControlClient>> client =
      ControlClient::Connect(at.address, kConnectTimeout, keys);
  if (absl::IsUnavailable(client.status())) {
    return absl::UnavailableError(
        absl::StrCat("no reply from the coordinator at ", at.address, ". ", Remedy(run)));
  }
  RETURN_IF_ERROR(client.status());
  ASSIGN_OR_RETURN(const StatusReply status, (*client)->Status());
  if (status.job() == at.job) return client;
  return absl::NotFoundError(absl::StrCat("no coordinator runs in ", run, " (the one at ",
                                          at.address, " runs the job of ", status.run_dir(), "). ",
                                          Remedy(run)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ConnectTo(const CoordinatorArguments& arguments) {
  if (arguments.address.empty()) return ConnectToOwner(arguments);
  ASSIGN_OR_RETURN(const JobKeys keys, arguments.keys.Read(arguments.run));
  return ControlClient::Connect(arguments.address, kConnectTimeout, keys);
}

}  // namespace tug
