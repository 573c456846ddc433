#ifndef TUG_CLI_EXPERIMENT_LINKS_H_
#define TUG_CLI_EXPERIMENT_LINKS_H_

// Links that an experiment runs jobs on, one rate after the other.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/testbed.h"

namespace tug {

struct PlannedLink {
  std::string name;            // "none", "100mbit"
  double bits_per_second = 0;  // 0: none

  friend bool operator==(const PlannedLink&, const PlannedLink&) = default;
};

inline constexpr char kNoLink[] = "none";

// none, or a rate (ParseLinkRate). Errors: INVALID_ARGUMENT, naming --links. Pure.
absl::StatusOr<PlannedLink> ParsePlannedLink(const std::string& text);

// Hosts on this machine with links of one rate at a time. Not thread-safe. REQUIRES: the process
// has one thread.
class LinkedHosts {
 public:
  // `hosts`: 0: there are none, whatever the link.
  explicit LinkedHosts(uint32_t hosts) : hosts_(hosts) {}

  // Hosts with links of this rate, in place of those that there are; none for kNoLink. Errors:
  // those of Testbed::Up.
  absl::Status Take(const PlannedLink& link);
  // Null: the jobs run on this machine as it is.
  const Testbed* testbed() const { return testbed_.get(); }

 private:
  const uint32_t hosts_;
  std::unique_ptr<Testbed> testbed_;
  PlannedLink link_;  // of the testbed
};

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_LINKS_H_
