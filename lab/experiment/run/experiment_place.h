// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_PLACE_H_
#define TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_PLACE_H_

// Where the jobs of an experiment file run, and the command that runs one there.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/experiment/measures/run_figures.h"
#include "launch/hosts/testbed.h"
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

// Number of testbed hosts that a case needs; 0: none.
uint32_t TestbedHostsOf(const Place& place, const JobConfig& config);

// Shell command that repeats the job. `experiment`: the words that run this case of the experiment,
// used for a case that needs a testbed. Pure.
std::string CommandOf(const PlacedJob& job, const std::vector<std::string>& experiment);

// Not thread-safe. REQUIRES: the process has one thread.
class ExperimentPlaces {
 public:
  // `testbed_hosts`: the maximum that a case needs.
  explicit ExperimentPlaces(uint32_t testbed_hosts) : testbed_hosts_(testbed_hosts) {}

  // Whether the cases of a place can run. Errors: FAILED_PRECONDITION, naming what is missing.
  absl::Status Check(const Place& place);
  // Runs a job to its end, with its output in OUT/NAME.log. Returns the traffic over the link of
  // each testbed host. Errors: why it failed; CANCELLED: interrupted.
  absl::StatusOr<std::vector<LinkTraffic>> Run(const PlacedJob& job);

 private:
  absl::Status PrepareTestbed(const std::string& link);

  const uint32_t testbed_hosts_;
  std::unique_ptr<Testbed> testbed_;
  std::string link_;
};

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_RUN_EXPERIMENT_PLACE_H_
