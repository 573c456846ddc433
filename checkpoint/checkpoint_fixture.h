#ifndef TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_

// Small checkpoints for tests: every value is a function of (block, kind, element, version, salt),
// so what is read back can be checked without keeping what was written.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"

namespace tug {

struct TestCheckpoint {
  uint64_t version = 1;
  uint32_t salt = 0;   // becomes the manifest's timeline
  uint32_t lanes = 3;  // each with segments cut at random from `seed`
  uint64_t seed = 1;
  uint32_t keep = 2;
};

struct TestBlock {
  std::string name;
  uint64_t elements;
};

// The blocks of every test checkpoint: a large one, an odd one, one of a single element.
const std::vector<TestBlock>& TestBlocks();

float TestValue(size_t block, char kind, uint64_t element, uint64_t version, uint32_t salt);

// Writes the lanes' files; the manifest that describes them.
absl::StatusOr<Manifest> WriteTestParts(const std::string& run_dir, const TestCheckpoint& what);

// WriteTestParts, then CommitCheckpoint.
absl::StatusOr<std::string> WriteTestCheckpoint(const std::string& run_dir,
                                                const TestCheckpoint& what);

// Opens `folder` and compares every value with those of its manifest's version and timeline.
// Errors: Open's; INTERNAL (another value).
absl::StatusOr<Manifest> VerifyTestCheckpoint(const std::string& folder);

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_FIXTURE_H_
