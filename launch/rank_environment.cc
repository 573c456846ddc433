// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_environment.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr uint32_t kMaxProcesses = 1 << 20;
constexpr char kRank[] = "RANK", kWorldSize[] = "WORLD_SIZE", kLocalRank[] = "LOCAL_RANK",
               kLocalWorldSize[] = "LOCAL_WORLD_SIZE";

// Untrusted value as printable text of limited length.
std::string Shown(const std::string& value) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (const char c : value.substr(0, kMost)) shown += absl::ascii_isprint(c) ? c : '?';
  return absl::StrCat("'", shown, value.size() > kMost ? "..." : "", "'");
}

absl::StatusOr<uint32_t> Number(const Environment& environment, const std::string& name) {
  const std::string value = ValueOf(environment, name);
  uint32_t number = 0;
  if (std::all_of(value.begin(), value.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(value, &number) && number <= kMaxProcesses) {
    return number;
  }
  return absl::InvalidArgumentError(absl::StrCat("the environment has ", name, "=", Shown(value),
                                                 ": set it to a number from 0 to ", kMaxProcesses,
                                                 ", or unset it"));
}

// OK if both are set, or neither.
absl::Status CheckTogether(const Environment& environment, const std::string& one,
                           const std::string& other) {
  for (const auto& [there, missing] : {std::pair(one, other), std::pair(other, one)}) {
    if (ValueOf(environment, there).empty() || !ValueOf(environment, missing).empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(there, " is set but ", missing, " is not: set both, or unset ", there));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RankOf>> ReadRank(const Environment& environment,
                                               const std::string& rank_name,
                                               const std::string& size_name) {
  RETURN_IF_ERROR(CheckTogether(environment, rank_name, size_name));
  if (ValueOf(environment, rank_name).empty()) return std::nullopt;
  RankOf read;
  ASSIGN_OR_RETURN(read.rank, Number(environment, rank_name));
  ASSIGN_OR_RETURN(read.of, Number(environment, size_name));
  if (read.rank < read.of) return read;
  return absl::InvalidArgumentError(absl::StrCat(rank_name, "=", read.rank, " is out of range for ",
                                                 size_name, "=", read.of, " (0 to ", size_name,
                                                 " - 1): correct the launcher that sets them"));
}

}  // namespace

absl::StatusOr<std::string> CoordinatorAddressOf(const Environment& environment) {
  RETURN_IF_ERROR(CheckTogether(environment, "MASTER_ADDR", "MASTER_PORT"));
  const std::string address = ValueOf(environment, "MASTER_ADDR");
  const std::string port_text = ValueOf(environment, "MASTER_PORT");
  if (address.empty()) return "";
  const bool plain = std::all_of(address.begin(), address.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
  if (!plain) {
    return absl::InvalidArgumentError(
        absl::StrCat("the environment has MASTER_ADDR=", Shown(address),
                     ": set it to a name or an IPv4 address"));
  }
  int port = 0;
  const bool digits = std::all_of(port_text.begin(), port_text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(port_text, &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the environment has MASTER_PORT=", Shown(port_text),
                     ": set it to a port from 1 to 65535"));
  }
  return absl::StrCat(address, ":", port);
}

absl::StatusOr<std::string> CoordinatorToJoin(const std::string& flag,
                                              const Environment& environment) {
  if (!flag.empty()) return flag;
  ASSIGN_OR_RETURN(const std::string address, CoordinatorAddressOf(environment));
  if (!address.empty()) return address;
  return absl::InvalidArgumentError(
      "no coordinator given: pass --coordinator HOST:PORT, or set MASTER_ADDR and MASTER_PORT");
}

absl::StatusOr<WorkerRank> WorkerRankOf(const Environment& environment, RanksRead read) {
  WorkerRank worker;
  ASSIGN_OR_RETURN(worker.in_job, ReadRank(environment, kRank, kWorldSize));
  if (read == RanksRead::kInJob) return worker;
  ASSIGN_OR_RETURN(worker.on_host, ReadRank(environment, kLocalRank, kLocalWorldSize));
  if (!worker.in_job.has_value() || !worker.on_host.has_value()) return worker;
  const RankOf& job = *worker.in_job;
  const RankOf& host = *worker.on_host;
  if (host.of > job.of) {
    return absl::InvalidArgumentError(absl::StrCat("LOCAL_WORLD_SIZE=", host.of,
                                                   " exceeds WORLD_SIZE=", job.of,
                                                   ": correct the launcher that sets them"));
  }
  return worker;
}

void ForgetRanks() {
  for (const char* name : {kRank, kWorldSize, kLocalRank, kLocalWorldSize}) unsetenv(name);
}

}  // namespace tug
