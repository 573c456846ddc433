// SPDX-License-Identifier: Apache-2.0
#include "launch/own_bundle.h"

#include <link.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "launch/launcher.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPackTime = absl::Minutes(5);

// Libraries that deploy/bundle also excludes: the host's glibc and GPU driver.
bool IsHostsOwn(const std::string& name) {
  static constexpr std::array kOwn = {"libc",       "libm",      "libmvec",   "libdl",
                                      "libpthread", "librt",     "libutil",   "libanl",
                                      "libcuda",    "libresolv", "linux-vdso"};
  if (absl::StartsWith(name, "ld-linux")) return true;
  return std::any_of(kOwn.begin(), kOwn.end(), [&](const char* own) {
    return absl::StartsWith(name, absl::StrCat(own, ".so."));
  });
}

int AddLibrary(dl_phdr_info* info, size_t, void* files) {
  const fs::path path = info->dlpi_name;
  if (!path.is_absolute() || IsHostsOwn(path.filename())) return 0;
  static_cast<std::vector<BundledFile>*>(files)->push_back(
      {absl::StrCat("lib/tug/", path.filename().string()), path});
  return 0;
}

absl::Status AddToHash(const std::string& path, XXH3_state_t& state) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(path));
  std::vector<char> bytes(1 << 20);
  while (true) {
    const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return absl::OkStatus();
    XXH3_128bits_update(&state, bytes.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::vector<BundledFile> OwnBundle() {
  std::vector<BundledFile> files = {
      {"bin/tug", absl::StrCat("/proc/", getpid(), "/exe")}};  // works even if the file is deleted
  dl_iterate_phdr(AddLibrary, &files);
  std::sort(files.begin() + 1, files.end(),
            [](const BundledFile& a, const BundledFile& b) { return a.name < b.name; });
  return files;
}

absl::StatusOr<std::string> HashOfFiles(const std::vector<BundledFile>& files) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const BundledFile& file : files) {
    XXH3_128bits_update(state.get(), file.name.c_str(), file.name.size() + 1);
    RETURN_IF_ERROR(AddToHash(file.path, *state));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

std::string WordsOfTar(const std::string& log_path) {
  std::ifstream log(log_path);
  for (std::string line; std::getline(log, line);) {
    if (absl::StartsWith(line, "tar: ")) return std::string(absl::StripSuffix(line, "\r"));
  }
  return LastWords(log_path);
}

absl::StatusOr<std::string> PackFiles(const std::vector<BundledFile>& files,
                                      const std::string& folder) {
  const fs::path tree = fs::path(folder) / "tree";
  for (const BundledFile& file : files) {
    const fs::path link = tree / "tug" / file.name;
    std::error_code error;
    fs::create_directories(link.parent_path(), error);
    if (!error) fs::create_symlink(file.path, link, error);
    if (error) return FileError(error.value(), "make", link.string());
  }
  const std::string archive = (fs::path(folder) / "tug.tar").string();
  Program tar;
  tar.name = "tar";
  tar.argv = {"tar", "-chf", archive, "-C", tree.string(), "tug"};
  tar.log_path = (fs::path(folder) / "tar.log").string();
  Launcher launcher;
  RETURN_IF_ERROR(launcher.Start(tar).status());
  const LaunchEvent event = launcher.Wait(launcher.Now() + kPackTime);
  std::error_code ignored;
  fs::remove_all(tree, ignored);
  if (event.interrupted) return absl::CancelledError("interrupted before the job had started");
  if (event.ended.has_value() && event.ended->exited_with_zero()) return archive;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot pack this program: ", WordsOfTar(tar.log_path),
                   "; make an archive with deploy/bundle tug.tar.xz and pass it with --bundle"));
}

}  // namespace tug
