// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_DOCTOR_FACTS_H_
#define TUG_DOCTOR_DOCTOR_FACTS_H_

// Facts about a host that `tug probe` reads there for `tug doctor`. Judging them is up to
// doctor/doctor_checks.h.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// GPUs of a host that the program can use; found by cli/doctor_command.cc.
struct GpuFacts {
  std::vector<std::string> names;
  std::string none_because;  // reason, if there are none
};

struct FactsWanted {
  std::string run_dir;  // empty: skip
  std::string text;     // a file or a folder; empty: skip
};

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// A folder, which need not exist, and its nearest existing parent.
struct FolderFacts {
  std::string path;   // absolute
  std::string there;  // path, or its nearest existing parent
  std::string error;  // why it is not writable; empty: writable
  uint64_t free_bytes = 0;
};

struct TextFacts {
  std::string path;
  std::string error;  // why a job cannot read it, or would find no text
  uint64_t bytes = 0;
  uint64_t hash = 0;  // of names, sizes and the first kHashedTextBytes of all files
};
inline constexpr uint64_t kHashedTextBytes = uint64_t{256} << 20;

struct HostFacts {
  std::string glibc;         // "2.36"
  std::string instructions;  // instruction set of the kernels: "AVX3_SPR"
  int cores = 0;             // CPU time available to a process, in cores
  uint64_t memory_bytes = 0;
  uint64_t free_memory_bytes = 0;  // without swapping; within the limits of control groups
  uint64_t locked_limit_bytes = 0;
  uint64_t open_files_limit = 0;
  uint64_t shared_memory_bytes = 0;  // size of /dev/shm; 0: missing
  int logins_at_once = 0;            // from sshd's MaxStartups; 0: not readable
  GpuFacts gpus;
  std::string driver;  // of NVIDIA; empty: none
  std::string nccl;    // version; empty: not found
  FolderFacts cache;   // for programs copied to this host
  std::optional<FolderFacts> run;
  std::optional<TextFacts> text;
};

// Reads the facts of this host. Unreadable ones stay empty. `root` is prepended to /proc, /sys and
// /etc, for tests. `home`, `cache_home`: values of HOME and XDG_CACHE_HOME.
struct FactsPlaces {
  std::string root;
  std::string home;
  std::string cache_home;
};
HostFacts ReadHostFacts(const FactsWanted& wanted, GpuFacts gpus, const FactsPlaces& places);

nlohmann::json ToJson(const HostFacts& facts);
// Errors: INVALID_ARGUMENT: not created by ToJson.
absl::StatusOr<HostFacts> HostFactsOf(const nlohmann::json& json);

// Reads the facts of a folder. Creates a temporary file in it.
FolderFacts ReadFolder(const std::string& path);
// Reads a text like a job does: a file, or the regular files of a folder
// (data/source/text_source.h).
TextFacts ReadText(const std::string& path);

}  // namespace tug

#endif  // TUG_DOCTOR_DOCTOR_FACTS_H_
