// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_facts.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "data/source/text_source.h"
#include "limits/stream_loops.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kSmallFileBytes = 1 << 20;

std::string SmallFile(const std::string& path) {
  return ReadWholeFile(path, kSmallFileBytes).value_or("");
}

// Parses "MemTotal:   16 kB" of /proc/meminfo.
uint64_t MeminfoBytes(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kib = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &kib)) return kib << 10;
  }
  return 0;
}

// Memory left by the limits of control groups (version 2), from our own group up to the root.
uint64_t LeftByGroups(const std::string& root) {
  absl::string_view own = absl::StripSuffix(SmallFile(root + "/proc/self/cgroup"), "\n");
  const std::string text(own);
  const size_t at = text.find("0::");
  if (at == std::string::npos) return kNoLimit;
  std::string group = text.substr(at + 3, text.find('\n', at) - at - 3);
  uint64_t left = kNoLimit;
  while (true) {
    const std::string folder = absl::StrCat(root, "/sys/fs/cgroup", group == "/" ? "" : group);
    uint64_t most = 0, used = 0;
    if (absl::SimpleAtoi(SmallFile(folder + "/memory.max"), &most) &&
        absl::SimpleAtoi(SmallFile(folder + "/memory.current"), &used)) {
      left = std::min(left, most > used ? most - used : 0);
    }
    if (group.empty() || group == "/") return left;
    group = group.substr(0, group.rfind('/'));
  }
}

uint64_t HardLimit(decltype(RLIMIT_NOFILE) what) {
  rlimit limit{};
  if (getrlimit(what, &limit) != 0) return 0;
  return limit.rlim_max == RLIM_INFINITY ? kNoLimit : limit.rlim_max;
}

uint64_t FreeBytes(const std::string& path) {
  struct statvfs disk {};
  return statvfs(path.c_str(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : 0;
}

uint64_t SizeOfDisk(const std::string& path) {
  struct statvfs disk {};
  return statvfs(path.c_str(), &disk) == 0 ? disk.f_blocks * disk.f_frsize : 0;
}

// First number of MaxStartups; 0: the file is not readable.
int LoginsAtOnce(const std::string& root) {
  constexpr int kDefault = 10;  // sshd_config(5)
  const absl::StatusOr<std::string> text =
      ReadWholeFile(root + "/etc/ssh/sshd_config", kSmallFileBytes);
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t="), absl::SkipEmpty());
    int number = 0;
    if (words.size() == 2 && strcasecmp(words[0].c_str(), "MaxStartups") == 0 &&
        absl::SimpleAtoi(words[1].substr(0, words[1].find(':')), &number)) {
      return number;
    }
  }
  return kDefault;
}

// Parses "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  ..."
std::string Driver(const std::string& root) {
  const std::string text = SmallFile(root + "/proc/driver/nvidia/version");
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"))) {
    if (!word.empty() && absl::ascii_isdigit(word[0]) && word.find('.') != word.npos) {
      return std::string(word);
    }
  }
  return text.empty() ? "" : "of an unknown version";
}

std::string NcclVersion() {
  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL), dlclose);
  if (library == nullptr) return "";
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(library.get(), "ncclGetVersion"));
  int code = 0;
  if (get == nullptr || get(&code) != 0) return "of an unknown version";
  return absl::StrCat(code / 10000, ".", code / 100 % 100, ".", code % 100);
}

// Hashes a file's size and its first bytes, up to `left_bytes`.
absl::Status HashFile(const TextSource::File& file, XXH3_state_t* state, uint64_t& left_bytes) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, OpenForReading(file.path));
  XXH3_64bits_update(state, &file.size_bytes, sizeof(file.size_bytes));
  std::vector<char> buffer(1 << 20);
  while (left_bytes > 0) {
    const ssize_t n = read(fd.get(), buffer.data(), std::min<uint64_t>(buffer.size(), left_bytes));
    if (n < 0) return FileError(errno, "read", file.path);
    if (n == 0) break;
    XXH3_64bits_update(state, buffer.data(), static_cast<size_t>(n));
    left_bytes -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> HashOf(const TextSource& source) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_64bits_reset(state.get());
  uint64_t left_bytes = kHashedTextBytes;
  for (const TextSource::File& file : source.files()) {
    if (source.files().size() > 1) {
      const std::string name = fs::path(file.path).filename().string();
      XXH3_64bits_update(state.get(), name.data(), name.size());
    }
    RETURN_IF_ERROR(HashFile(file, state.get(), left_bytes));
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, names, none_because)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FolderFacts, path, there, error, free_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TextFacts, path, error, bytes, hash)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, glibc, instructions, cores, memory_bytes,
                                   free_memory_bytes, locked_limit_bytes, open_files_limit,
                                   shared_memory_bytes, logins_at_once, gpus, driver, nccl, cache)

FolderFacts ReadFolder(const std::string& path) {
  FolderFacts folder;
  std::error_code error;
  folder.path = AbsolutePath(path);
  fs::path there = folder.path;
  while (!fs::is_directory(there, error) && there.has_parent_path() &&
         there != there.parent_path()) {
    there = there.parent_path();
  }
  folder.there = there.string();
  folder.free_bytes = FreeBytes(folder.there);
  std::string file = (there / ".tug-doctor-XXXXXX").string();
  const FileDescriptor made(mkstemp(file.data()));
  if (made.valid()) {
    unlink(file.c_str());
  } else {
    folder.error = std::string(FileError(errno, "write to", folder.there).message());
  }
  return folder;
}

TextFacts ReadText(const std::string& path) {
  TextFacts text{.path = path};
  const absl::StatusOr<TextSource> source = TextSource::Open(path, {.format = TextFormat::kBytes});
  const absl::StatusOr<uint64_t> hash = source.ok() ? HashOf(*source) : source.status();
  if (source.ok()) text.bytes = source->size_bytes();
  if (hash.ok()) {
    text.hash = *hash;
  } else {
    text.error = std::string(hash.status().message());
  }
  return text;
}

HostFacts ReadHostFacts(const FactsWanted& wanted, GpuFacts gpus, const FactsPlaces& places) {
  HostFacts facts;
  facts.glibc = gnu_get_libc_version();
  facts.instructions = InstructionSet();
  facts.cores = ReadCpuBudget(places.root).usable;
  const std::string memory = SmallFile(places.root + "/proc/meminfo");
  facts.memory_bytes = MeminfoBytes(memory, "MemTotal:");
  facts.free_memory_bytes =
      std::min(MeminfoBytes(memory, "MemAvailable:"), LeftByGroups(places.root));
  facts.locked_limit_bytes = HardLimit(RLIMIT_MEMLOCK);
  facts.open_files_limit = HardLimit(RLIMIT_NOFILE);
  facts.shared_memory_bytes = SizeOfDisk("/dev/shm");
  facts.logins_at_once = LoginsAtOnce(places.root);
  facts.gpus = std::move(gpus);
  facts.driver = Driver(places.root);
  facts.nccl = NcclVersion();
  const std::string cache =
      places.cache_home.empty() ? absl::StrCat(places.home, "/.cache") : places.cache_home;
  facts.cache = ReadFolder(cache + "/tugboat");
  if (!wanted.run_dir.empty()) facts.run = ReadFolder(wanted.run_dir);
  if (!wanted.text.empty()) facts.text = ReadText(wanted.text);
  return facts;
}

nlohmann::json ToJson(const HostFacts& facts) {
  Json json = facts;
  if (facts.run.has_value()) json["run"] = *facts.run;
  if (facts.text.has_value()) json["text"] = *facts.text;
  return json;
}

absl::StatusOr<HostFacts> HostFactsOf(const nlohmann::json& json) {
  try {
    HostFacts facts = json;
    if (json.contains("run")) facts.run = json.at("run").get<FolderFacts>();
    if (json.contains("text")) facts.text = json.at("text").get<TextFacts>();
    return facts;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("invalid facts of a host: ", error.what()));
  }
}

}  // namespace tug
