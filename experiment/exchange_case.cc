#include "experiment/exchange_case.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tug {
namespace {

constexpr uint32_t kMostCount = 256;  // cluster.servers has no more

constexpr std::array<ExchangeKindRow, 7> kKinds = {{
    {ExchangeKind::kServers, "servers", "servers", PlacementConfig::SERVERS, JobConfig::PUSH_PULL,
     CollectiveConfig::AUTO},
    {ExchangeKind::kMixed, "mixed", "hosts with a server alone", PlacementConfig::MIXED,
     JobConfig::PUSH_PULL, CollectiveConfig::AUTO},
    {ExchangeKind::kRing, "ring", nullptr, PlacementConfig::SERVERS, JobConfig::ALL_REDUCE,
     CollectiveConfig::RING},
    {ExchangeKind::kHalvingDoubling, "halving_doubling", nullptr, PlacementConfig::SERVERS,
     JobConfig::ALL_REDUCE, CollectiveConfig::HALVING_DOUBLING},
    {ExchangeKind::kZero1, "zero1", nullptr, PlacementConfig::ZERO1, JobConfig::PUSH_PULL,
     CollectiveConfig::AUTO},
    {ExchangeKind::kZero2, "zero2", nullptr, PlacementConfig::ZERO2, JobConfig::PUSH_PULL,
     CollectiveConfig::AUTO},
    {ExchangeKind::kZero3, "zero3", nullptr, PlacementConfig::ZERO3, JobConfig::PUSH_PULL,
     CollectiveConfig::AUTO},
}};

absl::Status Unknown(const std::string& text) {
  std::string known;
  for (const ExchangeKindRow& row : kKinds) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.name,
                    row.count == nullptr ? "" : ":NUMBER");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--cases ", text, ": ", known, "; NUMBER from 1 to ", kMostCount));
}

}  // namespace

const std::array<ExchangeKindRow, 7>& ExchangeKinds() { return kKinds; }

uint32_t ExchangeCase::Servers(uint32_t workers) const {
  if (kind == ExchangeKind::kServers) return count;
  return workers + count;
}

uint32_t ExchangeCase::Hosts(uint32_t workers) const { return workers + count; }

absl::StatusOr<ExchangeCase> ParseExchangeCase(const std::string& text) {
  const size_t colon = text.find(':');
  const absl::string_view name = absl::string_view(text).substr(0, colon);
  for (const ExchangeKindRow& row : kKinds) {
    if (name != row.name) continue;
    ExchangeCase parsed{.name = text, .kind = row.kind};
    if ((colon == std::string::npos) != (row.count == nullptr)) return Unknown(text);
    if (row.count == nullptr) return parsed;
    const absl::string_view number = absl::string_view(text).substr(colon + 1);
    if (!absl::SimpleAtoi(number, &parsed.count) || parsed.count < 1 || parsed.count > kMostCount ||
        absl::StrCat(parsed.count) != number) {
      return Unknown(text);
    }
    return parsed;
  }
  return Unknown(text);
}

std::vector<std::string> AllExchangeCases(uint32_t workers) {
  std::vector<std::string> cases;
  for (uint32_t servers = 1; servers <= workers; ++servers) {
    cases.push_back(absl::StrCat("servers:", servers));
  }
  cases.insert(cases.end(),
               {"mixed:1", "mixed:2", "ring", "halving_doubling", "zero1", "zero2", "zero3"});
  return cases;
}

}  // namespace tug
