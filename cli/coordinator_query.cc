#include "cli/coordinator_query.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/run_folder.h"

namespace tug {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(3);

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ConnectTo(const CoordinatorArguments& arguments) {
  std::string address = arguments.address;
  if (address.empty()) {
    if (arguments.run.empty()) {
      return absl::InvalidArgumentError(
          "which job? name its run folder, or give --coordinator HOST:PORT");
    }
    ASSIGN_OR_RETURN(address, ReadCoordinatorAddress(arguments.run));
  }
  ASSIGN_OR_RETURN(const JobKeys keys, arguments.keys.Read(arguments.run));
  absl::StatusOr<std::unique_ptr<ControlClient>> client =
      ControlClient::Connect(address, kConnectTimeout, keys);
  std::error_code error;
  const std::filesystem::path journal = std::filesystem::path(arguments.run) / kJournalFile;
  if (!absl::IsUnavailable(client.status()) || arguments.run.empty() ||
      !std::filesystem::exists(journal, error)) {
    return client;
  }
  return absl::UnavailableError(absl::StrCat("the coordinator at ", address,
                                             " does not answer: if it has died, take its job up "
                                             "with: tug coordinator --take-up ",
                                             arguments.run));
}

}  // namespace tug
