#ifndef TUG_CHECKPOINT_CHECKPOINT_FOLDER_H_
#define TUG_CHECKPOINT_CHECKPOINT_FOLDER_H_

// Names, lookup and deletion of the folders under RUN/checkpoints/; see checkpoint.h. Stateless.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/manifest_file.h"

namespace tug {

enum class FolderKind {
  kFinal,       // step-00000500
  kUnfinished,  // step-00000500.tmp: parts are arriving
  kOld,         // step-00000500.old: being deleted, or making room for a new one of its name
};

struct CheckpointFolder {
  std::string path;
  uint64_t version = 0;
  FolderKind kind = FolderKind::kFinal;
};

// RUN/checkpoints
std::string CheckpointsFolder(const std::string& run_dir);
std::string FolderPath(const std::string& checkpoints, uint64_t version, FolderKind kind);
std::optional<CheckpointFolder> ParseFolderPath(const std::string& path);

// `path` without trailing slashes; "." if it is empty.
std::string WithoutTrailingSlashes(std::string path);

// The folders of all kinds, newest version first; a final one before others of its version. None if
// `checkpoints` does not exist.
absl::StatusOr<std::vector<CheckpointFolder>> ListFolders(const std::string& checkpoints);

// The folders that hold a checkpoint, as far as their manifest file exists: the final ones, and an
// old one where a replacement was cut short between its two renames.
absl::StatusOr<std::vector<CheckpointFolder>> ListCandidates(const std::string& checkpoints);

// The manifest, verified, every file present with its size. Errors: NOT_FOUND (no manifest),
// DATA_LOSS, FAILED_PRECONDITION; they name the file, without a remedy.
absl::StatusOr<Manifest> CheckFolder(const std::string& folder);

// CheckFolder's or any other error with the remedy appended: the newest complete checkpoint beside
// `folder` of an older version, or, where there is none, what else to do.
absl::Status WithOlderCheckpoint(const absl::Status& error, const std::string& folder);

// Deletes a folder so that it is never taken for a whole checkpoint on the way.
absl::Status RemoveFolder(const CheckpointFolder& folder);

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_FOLDER_H_
