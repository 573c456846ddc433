#ifndef TUG_TESTS_RUN_RESULT_H_
#define TUG_TESTS_RUN_RESULT_H_

// What a run leaves, in a form that can be compared bit for bit. Functions only read; thread-safe.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// Bits of the FP32 values of a block, by "<block>/w", "<block>/m", "<block>/v".
using StateBits = std::map<std::string, std::vector<uint32_t>>;

struct CheckpointState {
  uint64_t version = 0;
  StateBits bits;
};

// Loss by step, as in metrics.jsonl. Of a step that was run twice, the later.
struct Losses {
  std::map<uint64_t, double> training;
  std::map<uint64_t, double> validation;
};

// `path`: a run folder (its newest checkpoint), or the folder of a checkpoint. Verified.
absl::StatusOr<CheckpointState> ReadState(const std::string& path);
absl::StatusOr<Losses> ReadLosses(const std::string& run_dir);
// Those after a step.
Losses LossesAfter(const Losses& losses, uint64_t step);

// Fails the test, with the first difference of each tensor kind, unless both are the same.
void ExpectSameState(const CheckpointState& expected, const CheckpointState& actual);
// Of two runs, or checkpoints: paths as ReadState takes them.
void ExpectSameState(const std::string& expected, const std::string& actual);
void ExpectSameLosses(const Losses& expected, const Losses& actual);

}  // namespace tug

#endif  // TUG_TESTS_RUN_RESULT_H_
