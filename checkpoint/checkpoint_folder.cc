// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"

namespace tug {
namespace {

constexpr char kPrefix[] = "step-";
constexpr char kUnfinishedSuffix[] = ".tmp";
constexpr char kOldSuffix[] = ".old";

bool Exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

absl::Status CheckSize(const std::string& path, uint64_t size_bytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::DataLossError(absl::StrCat(path, " is missing"));
    return FileError(errno, "read the size of", path);
  }
  const auto found = static_cast<uint64_t>(info.st_size);
  if (S_ISREG(info.st_mode) && found == size_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path,
                                          found < size_bytes ? " is truncated" : " is damaged",
                                          ": ", found, " bytes, not ", size_bytes));
}

}  // namespace

std::string CheckpointPath(const std::string& run_dir, uint64_t version) {
  return FolderPath(CheckpointsFolder(run_dir), version, FolderKind::kFinal);
}

std::string CheckpointsFolder(const std::string& run_dir) {
  return absl::StrCat(WithoutTrailingSlashes(run_dir), "/checkpoints");
}

std::string FolderPath(const std::string& checkpoints, uint64_t version, FolderKind kind) {
  const char* suffix = kind == FolderKind::kUnfinished ? kUnfinishedSuffix
                       : kind == FolderKind::kOld      ? kOldSuffix
                                                       : "";
  return absl::StrFormat("%s/%s%08d%s", checkpoints, kPrefix, version, suffix);
}

std::optional<CheckpointFolder> ParseFolderPath(const std::string& path) {
  absl::string_view name = path;
  if (const size_t slash = name.rfind('/'); slash != absl::string_view::npos) {
    name.remove_prefix(slash + 1);
  }
  if (!absl::ConsumePrefix(&name, kPrefix)) return std::nullopt;
  CheckpointFolder folder{.path = path};
  if (absl::ConsumeSuffix(&name, kUnfinishedSuffix)) {
    folder.kind = FolderKind::kUnfinished;
  } else if (absl::ConsumeSuffix(&name, kOldSuffix)) {
    folder.kind = FolderKind::kOld;
  }
  const bool digits =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !absl::SimpleAtoi(name, &folder.version)) return std::nullopt;
  return folder;
}

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() ? "." : path;
}

absl::StatusOr<std::vector<CheckpointFolder>> ListFolders(const std::string& checkpoints) {
  std::vector<CheckpointFolder> folders;
  const absl::StatusOr<std::vector<std::string>> names = NamesInFolder(checkpoints);
  if (!names.ok() && !Exists(checkpoints) && errno == ENOENT) return folders;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (auto folder = ParseFolderPath(absl::StrCat(checkpoints, "/", name))) {
      folders.push_back(*std::move(folder));
    }
  }
  std::sort(folders.begin(), folders.end(),
            [](const CheckpointFolder& a, const CheckpointFolder& b) {
              return std::tuple(b.version, a.kind, a.path) < std::tuple(a.version, b.kind, b.path);
            });
  return folders;
}

absl::StatusOr<std::vector<CheckpointFolder>> ListCandidates(const std::string& checkpoints) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> folders, ListFolders(checkpoints));
  std::vector<CheckpointFolder> candidates;
  for (const CheckpointFolder& folder : folders) {
    if (folder.kind == FolderKind::kUnfinished) continue;
    if (!candidates.empty() && candidates.back().version == folder.version) continue;
    if (Exists(absl::StrCat(folder.path, "/", kManifestFile))) candidates.push_back(folder);
  }
  return candidates;
}

absl::StatusOr<Manifest> CheckFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
  for (const ManifestFile& file : manifest.files()) {
    RETURN_IF_ERROR(CheckSize(absl::StrCat(folder, "/", file.name()), file.size_bytes()));
  }
  return manifest;
}

absl::Status WithOlderCheckpoint(const absl::Status& error, const std::string& folder) {
  const std::string path = WithoutTrailingSlashes(folder);
  const std::optional<CheckpointFolder> damaged = ParseFolderPath(path);
  if (const auto candidates = ListCandidates(FolderOf(path)); damaged && candidates.ok()) {
    for (const CheckpointFolder& older : *candidates) {
      if (older.version >= damaged->version || !CheckFolder(older.path).ok()) continue;
      return absl::Status(
          error.code(),
          absl::StrCat(error.message(), "; use the next older complete checkpoint ", older.path));
    }
  }
  return absl::Status(error.code(),
                      absl::StrCat(error.message(),
                                   "; no older complete checkpoint exists next to it: restore it "
                                   "from a backup or start the job again"));
}

absl::Status RemoveFolder(const CheckpointFolder& folder) {
  std::string path = folder.path;
  if (folder.kind == FolderKind::kFinal) {
    path = FolderPath(FolderOf(path), folder.version, FolderKind::kOld);
    // Remains of an interrupted deletion.
    RETURN_IF_ERROR(RemoveAll(path));
    if (std::rename(folder.path.c_str(), path.c_str()) != 0) {
      return FileError(errno, "rename the folder", folder.path);
    }
  }
  const std::string manifest = absl::StrCat(path, "/", kManifestFile);
  if (::unlink(manifest.c_str()) != 0 && errno != ENOENT) {
    return FileError(errno, "delete", manifest);
  }
  return RemoveAll(path);
}

}  // namespace tug
