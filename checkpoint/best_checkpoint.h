// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_BEST_CHECKPOINT_H_
#define TUG_CHECKPOINT_BEST_CHECKPOINT_H_

// RUN/best names the checkpoint of a run with the lowest validation loss. A text file of one line,
//
//   checkpoints/step-00000500 loss 1.4321
//
// replaced atomically: after a kill or a power cut it is the old or the new one. FindCheckpoint
// accepts the path RUN/best, and CommitCheckpoint never deletes the checkpoint it names.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr char kBestFile[] = "best";

struct BestCheckpoint {
  uint64_t version = 0;
  double loss = 0;  // stored without loss of precision
};

// Errors: see FileError.
absl::Status WriteBest(const std::string& run_dir, const BestCheckpoint& best);

// Errors: NOT_FOUND (no file); DATA_LOSS (the file is damaged; the message names it and the
// remedy).
absl::StatusOr<BestCheckpoint> ReadBest(const std::string& run_dir);

// Deletes RUN/best.
absl::Status RemoveBest(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_CHECKPOINT_BEST_CHECKPOINT_H_
