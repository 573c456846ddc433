#ifndef TUG_CLI_EXPERIMENT_PLACE_H_
#define TUG_CLI_EXPERIMENT_PLACE_H_

// Where the jobs of an experiment file run, and the command that runs one there.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/testbed.h"
#include "experiment/run_figures.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

// A job of a case, ready to run.
struct PlacedJob {
  std::string job_file;
  std::vector<std::string> overrides;
  std::string out;   // of the experiment
  std::string name;  // of its run folder below `out`
  JobConfig config;
  Place place;
};

// Hosts that a case needs of a testbed; 0: none.
uint32_t TestbedHostsOf(const Place& place, const JobConfig& config);

// That does the same again, for a shell; `experiment`: the words that run this case of the
// experiment, which a testbed needs. Pure.
std::string CommandOf(const PlacedJob& job, const std::vector<std::string>& experiment);

// Not thread-safe. REQUIRES: the process has one thread.
class ExperimentPlaces {
 public:
  // `testbed_hosts`: the most that any case needs.
  explicit ExperimentPlaces(uint32_t testbed_hosts) : testbed_hosts_(testbed_hosts) {}

  // Whether the cases of a place can be run at all. Errors: FAILED_PRECONDITION, with what is
  // missing.
  absl::Status Check(const Place& place);
  // Runs a job to its end; what it says goes to OUT/NAME.log. Returns what the link of each host of
  // a testbed carried. Errors: why it failed; CANCELLED is an interrupt.
  absl::StatusOr<std::vector<LinkTraffic>> Run(const PlacedJob& job);

 private:
  absl::Status TakeTestbed(const std::string& link);

  const uint32_t testbed_hosts_;
  std::unique_ptr<Testbed> testbed_;
  std::string link_;
};

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_PLACE_H_
