// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_BLAME_H_
#define TUG_COORDINATOR_TRACE_BLAME_H_

// Composition of the critical paths of a job's steps, and the workers that dominate them.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/trace/critical_path.h"

namespace tug {

// Share of one chain: a kind of work on a node or link.
struct PathShare {
  PathWork what = PathWork::kUnexplained;
  std::string who;
  double seconds = 0;

  friend bool operator==(const PathShare&, const PathShare&) = default;
};

// Shares of one step, the largest first. They add up to the step's duration. Pure.
std::vector<PathShare> SharesOf(const StepPath& path);

// Share of all chains. Parts are fractions of 1.
struct BlameRow {
  PathWork what = PathWork::kUnexplained;
  std::string who;
  double part = 0;         // of the total time of all steps
  double median_part = 0;  // over all steps, including those without it; least and most too
  double least_part = 0;
  double most_part = 0;
  uint64_t steps = 0;  // steps in which it was the largest share
};

struct BlamedWorker {
  std::string who;
  double part = 0;     // of the total time of all steps: its own work
  uint64_t steps = 0;  // steps in which it had the most of all workers
};

struct Blame {
  uint64_t steps = 0;
  double step_seconds = 0;  // mean
  double unexplained_part = 0;
  std::vector<BlameRow> rows;         // largest part first
  std::vector<BlamedWorker> workers;  // workers with at least one such step, most steps first
};

// Pure.
Blame BlameOf(const std::vector<StepPath>& paths);

// "worker 2 backward", "link worker 2 to server 0 (push)".
std::string BlameText(PathWork what, const std::string& who);
// Three lines for the end of a run: where the time went, how often each share was the largest of a
// step, and which worker. Empty without steps.
std::vector<std::string> BlameLines(const Blame& blame);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_BLAME_H_
