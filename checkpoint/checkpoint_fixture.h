// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_

// Small checkpoints for tests. Every value is a function of (block, kind, element, version, salt),
// so values read back can be checked without keeping the written ones.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"

namespace tug {

struct TestCheckpoint {
  uint64_t version = 1;
  uint32_t salt = 0;   // the manifest's timeline
  uint32_t lanes = 3;  // each with segments cut at random, seeded by `seed`
  uint64_t seed = 1;
  uint32_t keep = 2;
};

struct TestBlock {
  std::string name;
  uint64_t elements;
};

// Blocks of every test checkpoint: a large one, one of odd size, one of a single element.
const std::vector<TestBlock>& TestBlocks();

float TestValue(size_t block, char kind, uint64_t element, uint64_t version, uint32_t salt);

// Writes the lanes' files; returns the manifest that describes them.
absl::StatusOr<Manifest> WriteTestParts(const std::string& run_dir, const TestCheckpoint& what);

// WriteTestParts, then CommitCheckpoint.
absl::StatusOr<std::string> WriteTestCheckpoint(const std::string& run_dir,
                                                const TestCheckpoint& what);

// Opens `folder` and compares every value with those of its manifest's version and timeline.
// Errors: Open's; INTERNAL (a value differs).
absl::StatusOr<Manifest> VerifyTestCheckpoint(const std::string& folder);

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_
