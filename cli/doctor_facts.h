#ifndef TUG_CLI_DOCTOR_FACTS_H_
#define TUG_CLI_DOCTOR_FACTS_H_

// What `tug doctor` reads of a host: on that host, by `tug probe`. Nothing is judged here
// (cli/doctor_checks.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

// GPUs of a host that the program can use, as cli/doctor_command.cc finds them.
struct GpuFacts {
  std::vector<std::string> names;
  std::string none_because;  // where there are none
};

struct FactsWanted {
  std::string run_dir;  // empty: not asked for
  std::string text;     // a file or a folder; empty: the same
};

inline constexpr uint64_t kNoLimit = UINT64_MAX;

// A folder, or where it would be: the nearest one above it that is there.
struct FolderFacts {
  std::string path;   // absolute
  std::string there;  // path, or what is above it
  std::string error;  // why nothing can be written there; empty: it can
  uint64_t free_bytes = 0;
};

struct TextFacts {
  std::string path;
  std::string error;  // why a job cannot read it, or would find nothing in it
  uint64_t bytes = 0;
  uint64_t hash = 0;  // of names, sizes and the first kHashedTextBytes of all files
};
inline constexpr uint64_t kHashedTextBytes = uint64_t{256} << 20;

struct HostFacts {
  std::string glibc;         // "2.36"
  std::string instructions;  // of the CPU, that kernels use: "AVX3_SPR"
  int cores = 0;             // worth of time that a process may use
  uint64_t memory_bytes = 0;
  uint64_t free_memory_bytes = 0;  // without swapping; at most what control groups leave
  uint64_t locked_limit_bytes = 0;
  uint64_t open_files_limit = 0;
  uint64_t shared_memory_bytes = 0;  // size of /dev/shm; 0: there is none
  int logins_at_once = 0;            // of sshd's MaxStartups; 0: not to be read
  GpuFacts gpus;
  std::string driver;  // of NVIDIA; empty: none
  std::string nccl;    // version; empty: not found
  FolderFacts cache;   // of programs that are copied here
  std::optional<FolderFacts> run;
  std::optional<TextFacts> text;
};

// Of this host. What cannot be read stays empty. `root` stands before /proc, /sys and /etc, for
// tests. `home`, `cache_home`: values of HOME and XDG_CACHE_HOME.
struct FactsPlaces {
  std::string root;
  std::string home;
  std::string cache_home;
};
HostFacts ReadHostFacts(const FactsWanted& wanted, GpuFacts gpus, const FactsPlaces& places);

nlohmann::json ToJson(const HostFacts& facts);
// Errors: INVALID_ARGUMENT: not what ToJson has made.
absl::StatusOr<HostFacts> HostFactsOf(const nlohmann::json& json);

// A folder as described above. Makes a file in it for a moment.
FolderFacts ReadFolder(const std::string& path);
// As a job does: a file, or the regular files of a folder (data/text_source.h).
TextFacts ReadText(const std::string& path);

}  // namespace tug

#endif  // TUG_CLI_DOCTOR_FACTS_H_
