#ifndef TUG_EXPERIMENT_EXCHANGE_CASE_H_
#define TUG_EXPERIMENT_EXCHANGE_CASE_H_

// Ways to make weights of the gradients of N workers, as `tug experiment exchange` names them:
//   servers:P          a parameter server of P processes, each on a host of its own
//   mixed:K            BytePS's placement: a server beside each worker and K on hosts of their own
//   ring, halving_doubling   all-reduce; a server beside each worker has all of the state
//   zero1, zero2, zero3      a server beside each worker has its part of the state
// Functions are pure and thread-safe.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

enum class ExchangeKind { kServers, kMixed, kRing, kHalvingDoubling, kZero1, kZero2, kZero3 };

struct ExchangeKindRow {
  ExchangeKind kind;
  const char* name;
  const char* count;  // what the number behind the colon is of; null: there is none
  PlacementConfig::Kind placement;
  JobConfig::Exchange exchange;
  CollectiveConfig::Algorithm algorithm;  // of an all-reduce; else AUTO
};
// In the order of ExchangeKind.
const std::array<ExchangeKindRow, 7>& ExchangeKinds();

struct ExchangeCase {
  std::string name;  // "servers:2", "zero3"
  ExchangeKind kind = ExchangeKind::kServers;
  uint32_t count = 0;  // P or K; 0: there is none

  const ExchangeKindRow& row() const { return ExchangeKinds()[static_cast<size_t>(kind)]; }
  // Server processes, and hosts, with so many workers. Servers are dealt to hosts first, then
  // workers, from the first host on (cli/local_job.h): so hosts have what the kind says.
  uint32_t Servers(uint32_t workers) const;
  uint32_t Hosts(uint32_t workers) const;
  // Whether a host has a server alone.
  bool HasServerAlone(uint32_t host, uint32_t workers) const {
    return kind == ExchangeKind::kServers ? host < count : host >= workers;
  }
  // Whether each worker has a server beside it.
  bool BesideWorkers() const { return kind != ExchangeKind::kServers; }

  friend bool operator==(const ExchangeCase&, const ExchangeCase&) = default;
};

// Errors: INVALID_ARGUMENT, naming what is known.
absl::StatusOr<ExchangeCase> ParseExchangeCase(const std::string& text);

// All that is compared where nothing is named: 1 to N servers, 1 and 2 hosts more, ring, halving
// and doubling, the three stages of ZeRO.
std::vector<std::string> AllExchangeCases(uint32_t workers);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_CASE_H_
