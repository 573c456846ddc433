// SPDX-License-Identifier: Apache-2.0
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
  kOld,         // step-00000500.old: being deleted, or replaced by a new one of its name
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

// Folders of all kinds, newest version first; per version, the final one first. Empty if
// `checkpoints` does not exist.
absl::StatusOr<std::vector<CheckpointFolder>> ListFolders(const std::string& checkpoints);

// Folders that hold a checkpoint, judging by the presence of a manifest: the final ones, and an old
// one whose replacement was interrupted between its two renames.
absl::StatusOr<std::vector<CheckpointFolder>> ListCandidates(const std::string& checkpoints);

// Reads and verifies the manifest, and checks that every file exists with its size. Errors:
// NOT_FOUND (no manifest), DATA_LOSS, FAILED_PRECONDITION; messages name the file, without a
// remedy.
absl::StatusOr<Manifest> CheckFolder(const std::string& folder);

// Appends the remedy to an error of CheckFolder or another function: the newest complete checkpoint
// next to `folder` of an older version, or else what to do without one.
absl::Status WithOlderCheckpoint(const absl::Status& error, const std::string& folder);

// Deletes a folder; at no point can it be mistaken for a complete checkpoint.
absl::Status RemoveFolder(const CheckpointFolder& folder);

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_FOLDER_H_
