#ifndef TUG_COORDINATOR_RUN_FOLDER_H_
#define TUG_COORDINATOR_RUN_FOLDER_H_

// Names in a run folder:
//   config.textproto   the configuration as resolved
//   lock               held by the coordinator as long as it lives
//   coordinator        "HOST:PORT PID JOB" of the coordinator, while it runs
//   keys               of a job for which they were made, while it runs (security/key_file.h)
//   journal            what the coordinator was told (journal.h), while the job runs
//   data/tokens.bin    the text as tokens
//   metrics.jsonl      see metrics_log.h
//   metrics_address    with watch.metrics: "HOST:PORT" where the coordinator answers /metrics and
//                      /targets, while it runs
//   tensorboard/, steps.csv, evaluations.csv   see run_exports.h, where the job asks for them
//   loss.svg           see loss_curve.h
//   trace.json         see trace_file.h, of a traced run
//   best               see checkpoint/best_checkpoint.h
//   logs/              what nodes of a local job say
// and checkpoints (checkpoint/checkpoint.h).

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

inline constexpr char kConfigFile[] = "config.textproto";
inline constexpr char kLockFile[] = "lock";
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kKeysFile[] = "keys";
inline constexpr char kJournalFile[] = "journal";
inline constexpr char kTokenFile[] = "data/tokens.bin";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kMetricsAddressFile[] = "metrics_address";
inline constexpr char kTensorboardFolder[] = "tensorboard";
inline constexpr char kStepTable[] = "steps.csv";
inline constexpr char kEvaluationTable[] = "evaluations.csv";
inline constexpr char kLossPicture[] = "loss.svg";
inline constexpr char kTraceFile[] = "trace.json";
inline constexpr char kLogFolder[] = "logs";

// Makes a run folder and returns its absolute path. `wanted` may exist if it is empty; when
// `wanted` is empty, the folder is runs/<name>-<n> with the first free n from 1. Errors:
// ALREADY_EXISTS (with the remedy), those of the file system and of CheckUtf8.
absl::StatusOr<std::string> CreateRunFolder(const std::string& wanted, const std::string& name);

// A run folder has one owner, who holds its lock: nobody else touches what is in it, on any host
// that sees it (its file system must support flock among hosts, as NFS does).
struct OwnedRunFolder {
  std::string path;     // absolute
  FileDescriptor lock;  // held until it is closed, or the process dies
  bool made = false;    // by this call: nothing in it is anybody else's
};
// Of a folder that is there. Errors: FAILED_PRECONDITION (it has an owner), those of the file
// system.
absl::StatusOr<OwnedRunFolder> OwnRunFolder(const std::string& path);
// Of one that is made, as by CreateRunFolder.
absl::StatusOr<OwnedRunFolder> CreateAndOwnRunFolder(const std::string& wanted,
                                                     const std::string& name);

// Writes a small file, whole or not at all: to a file beside it, then renamed over it.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Of the coordinator that runs, or ran last, in a run folder. Another job's may have its address
// since.
struct CoordinatorAddress {
  std::string address;  // "host:port"
  uint64_t job = 0;     // StatusReply.job
};
absl::Status WriteCoordinatorAddress(const std::string& run_dir, const CoordinatorAddress& at);
// Errors: NOT_FOUND.
absl::StatusOr<CoordinatorAddress> ReadCoordinatorAddress(const std::string& run_dir);
void RemoveCoordinatorAddress(const std::string& run_dir);
void RemoveKeys(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_COORDINATOR_RUN_FOLDER_H_
