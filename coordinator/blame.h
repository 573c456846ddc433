#ifndef TUG_COORDINATOR_BLAME_H_
#define TUG_COORDINATOR_BLAME_H_

// What the critical paths of a job's steps consist of, and who is to blame.

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/critical_path.h"

namespace tug {

// What somebody had of one chain.
struct PathShare {
  PathWork what = PathWork::kUnexplained;
  std::string who;
  double seconds = 0;

  friend bool operator==(const PathShare&, const PathShare&) = default;
};

// Of one step, the largest first. Together as long as the step. Pure.
std::vector<PathShare> SharesOf(const StepPath& path);

// What somebody had of all chains. Parts are of 1.
struct BlameRow {
  PathWork what = PathWork::kUnexplained;
  std::string who;
  double part = 0;         // of the time of all steps
  double median_part = 0;  // over the steps, those without it too; so least and most
  double least_part = 0;
  double most_part = 0;
  uint64_t steps = 0;  // in which it was the largest
};

struct BlamedWorker {
  std::string who;
  double part = 0;     // of the time of all steps: what it did itself
  uint64_t steps = 0;  // in which no other worker had as much
};

struct Blame {
  uint64_t steps = 0;
  double step_seconds = 0;  // mean
  double unexplained_part = 0;
  std::vector<BlameRow> rows;         // the largest part first
  std::vector<BlamedWorker> workers;  // that were blamed for a step at least, the most first
};

// Pure.
Blame BlameOf(const std::vector<StepPath>& paths);

// "worker 2 backward", "link worker 2 to server 0 (push)".
std::string BlameText(PathWork what, const std::string& who);
// For the end of a run, three lines: what the time went to, what was the largest part of how many
// steps, which worker. None of no steps.
std::vector<std::string> BlameLines(const Blame& blame);

}  // namespace tug

#endif  // TUG_COORDINATOR_BLAME_H_
