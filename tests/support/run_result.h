// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_RUN_RESULT_H_
#define TUG_TESTS_SUPPORT_RUN_RESULT_H_

// Results of a run, in a form for bitwise comparison. Functions only read; thread-safe.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// FP32 values of a block as bits, by "<block>/w", "<block>/m", "<block>/v".
using StateBits = std::map<std::string, std::vector<uint32_t>>;

struct CheckpointState {
  uint64_t version = 0;
  StateBits bits;
};

// Loss by step, from metrics.jsonl. If a step ran twice, its later loss.
struct Losses {
  std::map<uint64_t, double> training;
  std::map<uint64_t, double> validation;
};

// Reads and verifies a checkpoint. `path`: a run folder (its newest checkpoint) or a checkpoint's
// folder.
absl::StatusOr<CheckpointState> ReadState(const std::string& path);
absl::StatusOr<Losses> ReadLosses(const std::string& run_dir);
// Losses after a step.
Losses LossesAfter(const Losses& losses, uint64_t step);

// Fails the test, with the first difference of each tensor kind, unless both are equal.
void ExpectSameState(const CheckpointState& expected, const CheckpointState& actual);
// Compares two runs or checkpoints; paths as for ReadState.
void ExpectSameState(const std::string& expected, const std::string& actual);
void ExpectSameLosses(const Losses& expected, const Losses& actual);

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_RUN_RESULT_H_
