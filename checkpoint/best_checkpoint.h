#ifndef TUG_CHECKPOINT_BEST_CHECKPOINT_H_
#define TUG_CHECKPOINT_BEST_CHECKPOINT_H_

// RUN/best: which checkpoint of a run has the lowest validation loss. A text file of one line,
//
//   checkpoints/step-00000500 loss 1.4321
//
// replaced whole, so that it is the old or the new one after a kill or a power cut. RUN/best is a
// name that FindCheckpoint takes, and CommitCheckpoint never deletes the checkpoint it names.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

inline constexpr char kBestFile[] = "best";

struct BestCheckpoint {
  uint64_t version = 0;
  double loss = 0;  // all its bits are kept
};

// Errors: as FileError.
absl::Status WriteBest(const std::string& run_dir, const BestCheckpoint& best);

// Errors: NOT_FOUND (there is none); DATA_LOSS (the file is damaged: named, with the remedy).
absl::StatusOr<BestCheckpoint> ReadBest(const std::string& run_dir);

// From now on there is none.
absl::Status RemoveBest(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_CHECKPOINT_BEST_CHECKPOINT_H_
