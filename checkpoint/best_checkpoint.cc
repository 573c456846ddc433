// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/best_checkpoint.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint_folder.h"

namespace tug {
namespace {

constexpr uint64_t kMaxBytes = 4096;

std::string PathOf(const std::string& run_dir) {
  return absl::StrCat(WithoutTrailingSlashes(run_dir), "/", kBestFile);
}

}  // namespace

absl::Status WriteBest(const std::string& run_dir, const BestCheckpoint& best) {
  const std::string text = absl::StrFormat(
      "%s loss %.17g\n", FolderPath("checkpoints", best.version, FolderKind::kFinal), best.loss);
  RETURN_IF_ERROR(
      ReplaceFile(PathOf(run_dir), [&](FileWriter& file) { return file.Append(text); }));
  return SyncFolder(run_dir);
}

absl::Status RemoveBest(const std::string& run_dir) {
  const std::string path = PathOf(run_dir);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FileError(errno, "delete", path);
  return absl::OkStatus();
}

absl::StatusOr<BestCheckpoint> ReadBest(const std::string& run_dir) {
  const std::string path = PathOf(run_dir);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxBytes));
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripSuffix(text, "\n"), absl::ByChar(' '));
  BestCheckpoint best;
  const auto folder = ParseFolderPath(words[0]);
  if (words.size() == 3 && folder.has_value() && folder->kind == FolderKind::kFinal &&
      words[1] == "loss" && absl::SimpleAtod(words[2], &best.loss)) {
    best.version = folder->version;
    return best;
  }
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: delete it, and name a folder in checkpoints/ instead"));
}

}  // namespace tug
