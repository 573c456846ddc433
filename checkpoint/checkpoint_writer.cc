// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/files/file.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/manifest_file.h"
#include "checkpoint/safetensors.h"

namespace tug {
namespace {

// Returns the folder for parts of `version` and creates it if necessary. Never creates the run
// folder, whose absence means that it is not visible on this host.
absl::StatusOr<std::string> MakeUnfinishedFolder(const std::string& run_dir, uint64_t version) {
  struct stat info;
  if (::stat(run_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(
        absl::StrCat("the run folder ", run_dir,
                     " does not exist on this host; use a folder that all hosts of the job share"));
  }
  const std::string checkpoints = CheckpointsFolder(run_dir);
  const std::string folder = FolderPath(checkpoints, version, FolderKind::kUnfinished);
  for (const std::string& path : {checkpoints, folder}) {
    RETURN_IF_ERROR(MakeFolder(path));
  }
  return folder;
}

std::vector<TensorDecl> Declare(std::span<const SegmentPart> segments) {
  std::vector<TensorDecl> tensors;
  for (const SegmentPart& segment : segments) {
    TUG_CHECK_LE(segment.begin, segment.end) << segment.block;
    const uint64_t elements = segment.end - segment.begin;
    TUG_CHECK_EQ(segment.weights.size(), elements) << segment.block;
    const std::string name = absl::StrCat(segment.block, "/", segment.begin, "-", segment.end, "/");
    tensors.push_back({name + "w", {elements}});
    for (const auto& [kind, values] : {std::pair{"m", segment.m}, {"v", segment.v}}) {
      if (values.empty()) continue;
      TUG_CHECK_EQ(values.size(), elements) << segment.block;
      tensors.push_back({name + kind, {elements}});
    }
    if (!segment.clocks.empty()) {
      tensors.push_back({name + "clocks", {segment.clocks.size()}, /*integers=*/true});
    }
  }
  return tensors;
}

std::vector<TensorDecl> Declare(std::span<const ResidualPart> parts) {
  std::vector<TensorDecl> tensors;
  for (const ResidualPart& part : parts) {
    TUG_CHECK_LE(part.begin, part.end) << part.block;
    TUG_CHECK_GE(part.values.size(), part.end - part.begin) << part.block;
    tensors.push_back({absl::StrCat(part.block, "/", part.begin, "-", part.end, "/residual"),
                       {part.values.size()}});
  }
  return tensors;
}

absl::Status Append(const SegmentPart& segment, SafetensorsWriter& writer) {
  RETURN_IF_ERROR(writer.Append(segment.weights));
  RETURN_IF_ERROR(writer.Append(segment.m));
  RETURN_IF_ERROR(writer.Append(segment.v));
  return writer.Append(segment.clocks);
}

absl::Status Append(const ResidualPart& part, SafetensorsWriter& writer) {
  return writer.Append(part.values);
}

template <typename Piece>
absl::Status WritePieces(const std::string& path, std::span<const Piece> pieces, PartFile& part) {
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, Declare(pieces)));
  for (const Piece& piece : pieces) RETURN_IF_ERROR(Append(piece, writer));
  RETURN_IF_ERROR(writer.Finish());
  part.size_bytes = writer.size_bytes();
  part.xxh3 = writer.xxh3();
  return absl::OkStatus();
}

// `name`: file name without extension.
template <typename Piece>
absl::StatusOr<PartFile> WritePart(const std::string& run_dir, uint64_t version,
                                   const std::string& name, std::span<const Piece> pieces) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::string folder, MakeUnfinishedFolder(run_dir, version));
  PartFile part;
  part.name = name + ".safetensors";
  const std::string path = absl::StrCat(folder, "/", part.name);
  if (absl::Status written = WritePieces(path, pieces, part); !written.ok()) {
    ::unlink(path.c_str());
    return written;
  }
  part.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return part;
}

absl::Status SyncFile(const std::string& path) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path));
  if (::fsync(fd.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

// Checks that all files of the manifest exist with their sizes, and syncs them. Deletes all others,
// e.g. a file of an earlier attempt with more lanes.
absl::Status PrepareFiles(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> names;
  for (const ManifestFile& file : manifest.files()) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    struct stat info;
    const bool found = ::stat(path.c_str(), &info) == 0;
    if (!found || static_cast<uint64_t>(info.st_size) != file.size_bytes()) {
      return absl::FailedPreconditionError(absl::StrCat(
          path,
          found ? absl::StrCat(" has ", info.st_size, " bytes instead of the ", file.size_bytes(),
                               " written")
                : std::string(" is missing"),
          "; check that all hosts share the run folder and that nothing else writes there"));
    }
    RETURN_IF_ERROR(SyncFile(path));
    names.insert(file.name());
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> there, NamesInFolder(folder));
  for (const std::string& name : there) {
    if (!names.contains(name)) RETURN_IF_ERROR(RemoveAll(absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

// Renames the finished folder to its final name. An existing folder of that name gets the
// unfinished name in the same atomic step. If the file system does not support that exchange, it is
// renamed to step-N.old first, which FindCheckpoint accepts while there is no other.
absl::Status MoveToFinal(const std::string& checkpoints, uint64_t version) {
  const std::string unfinished = FolderPath(checkpoints, version, FolderKind::kUnfinished);
  const std::string final_path = FolderPath(checkpoints, version, FolderKind::kFinal);
  if (::rename(unfinished.c_str(), final_path.c_str()) == 0) return absl::OkStatus();
  if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
    return FileError(errno, "rename the folder", unfinished);
  }
  if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, final_path.c_str(), RENAME_EXCHANGE) ==
      0) {
    return absl::OkStatus();
  }
  const std::string old = FolderPath(checkpoints, version, FolderKind::kOld);
  RETURN_IF_ERROR(RemoveFolder({old, version, FolderKind::kOld}));
  if (::rename(final_path.c_str(), old.c_str()) != 0) {
    return FileError(errno, "rename the folder", final_path);
  }
  if (::rename(unfinished.c_str(), final_path.c_str()) != 0) {
    return FileError(errno, "rename the folder", unfinished);
  }
  return absl::OkStatus();
}

bool IsIn(const std::vector<CheckpointFolder>& folders, const CheckpointFolder& folder) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const CheckpointFolder& other) { return other.path == folder.path; });
}

// Deletes what `retention` does not keep, except `committed`, if set. An old folder that is the
// only one of its version counts like a final one.
absl::Status RemoveSuperseded(const std::string& run_dir, std::optional<uint64_t> committed,
                              const Retention& retention) {
  const std::string checkpoints = CheckpointsFolder(run_dir);
  std::set<uint64_t> held(retention.held.begin(), retention.held.end());
  if (committed.has_value()) held.insert(*committed);
  if (const auto best = ReadBest(run_dir); best.ok()) {
    held.insert(best->version);
  } else if (!absl::IsNotFound(best.status())) {
    return best.status();  // any checkpoint may be the best
  }
  ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListFolders(checkpoints));
  ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> candidates, ListCandidates(checkpoints));
  absl::Status first_error;
  uint32_t kept = 0;
  for (const CheckpointFolder& folder : folders) {
    bool remove = true;
    if (folder.kind == FolderKind::kFinal || IsIn(candidates, folder)) {
      remove = kept >= std::max(retention.keep, 1u) && !held.contains(folder.version);
      // A damaged checkpoint does not count towards `keep`.
      if (!remove && CheckFolder(folder.path).ok()) ++kept;
    } else if (folder.kind == FolderKind::kUnfinished) {
      remove = committed.has_value() && folder.version <= *committed;
    }
    if (remove) first_error.Update(RemoveFolder(folder));
  }
  return first_error;
}

}  // namespace

absl::StatusOr<PartFile> WriteLanePart(const std::string& run_dir, uint64_t version,
                                       uint32_t lane_index, std::span<const SegmentPart> segments,
                                       const PartPlace& place) {
  std::string name = absl::StrFormat("lane-%03d", lane_index);
  if (place.timeline > 1) absl::StrAppend(&name, "-timeline-", place.timeline);
  if (place.placement > 0) absl::StrAppend(&name, "-placement-", place.placement);
  return WritePart(run_dir, version, name, segments);
}

absl::StatusOr<PartFile> WriteResidualPart(const std::string& run_dir, uint64_t version,
                                           uint32_t virtual_worker,
                                           std::span<const ResidualPart> parts,
                                           const ResidualPlace& place) {
  std::string name = absl::StrFormat("residual-%03d", virtual_worker);
  if (place.timeline > 1) absl::StrAppend(&name, "-timeline-", place.timeline);
  if (place.view > 0) absl::StrAppend(&name, "-view-", place.view);
  return WritePart(run_dir, version, name, parts);
}

absl::StatusOr<std::string> CommitCheckpoint(const std::string& run_dir, const Manifest& manifest,
                                             const Retention& retention) {
  const uint64_t version = manifest.version();
  const std::string checkpoints = CheckpointsFolder(run_dir);
  ASSIGN_OR_RETURN(const std::string unfinished, MakeUnfinishedFolder(run_dir, version));
  RETURN_IF_ERROR(PrepareFiles(unfinished, manifest));
  Manifest complete = manifest;
  complete.set_format_version(kManifestFormatVersion);
  RETURN_IF_ERROR(WriteManifest(unfinished, complete));
  RETURN_IF_ERROR(SyncFolder(unfinished));
  RETURN_IF_ERROR(MoveToFinal(checkpoints, version));
  RETURN_IF_ERROR(SyncFolder(checkpoints));
  RETURN_IF_ERROR(SyncFolder(run_dir));
  if (const absl::Status removed = RemoveSuperseded(run_dir, version, retention); !removed.ok()) {
    LogWarning("old checkpoints were not deleted", {{"why", std::string(removed.message())}});
  }
  return FolderPath(checkpoints, version, FolderKind::kFinal);
}

absl::Status TrimCheckpoints(const std::string& run_dir, const Retention& retention) {
  return RemoveSuperseded(run_dir, std::nullopt, retention);
}

absl::Status DiscardUnfinished(const std::string& run_dir) {
  const std::string checkpoints = CheckpointsFolder(run_dir);
  ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListFolders(checkpoints));
  ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> candidates, ListCandidates(checkpoints));
  absl::Status first_error;
  for (const CheckpointFolder& folder : folders) {
    if (folder.kind == FolderKind::kFinal || IsIn(candidates, folder)) continue;
    first_error.Update(RemoveFolder(folder));
  }
  return first_error;
}

}  // namespace tug
