// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_RUN_FOLDER_H_
#define TUG_COORDINATOR_OBSERVE_RUN_FOLDER_H_

// Files in a run folder:
//  config.textproto   the resolved configuration
//  lock               held by the coordinator as long as it lives
//  coordinator        "HOST:PORT PID JOB" of the coordinator, while it runs
//  keys               keys made for the job, while it runs (security/key_file.h)
//  journal            inputs of the coordinator (journal.h), while the job runs
//  continue_with      command line that continues the run, without --resume, of a run that was
//                     launched on several hosts
//  data/tokens.bin    the text as tokens
//  metrics.jsonl      see metrics_log.h
//  metrics_address    with watch.metrics: "HOST:PORT" of the coordinator's /metrics and /targets,
//                     while it runs
//  tensorboard/, steps.csv, evaluations.csv   see run_exports.h, if configured
//  loss.svg           see loss_curve.h
//  trace.json         of a traced run, see trace_file.h
//  best               see checkpoint/best_checkpoint.h
//  logs/              the coordinator's log, and those of the nodes that a launcher started
// and checkpoints (checkpoint/checkpoint.h).

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

class JobConfig;

inline constexpr char kConfigFile[] = "config.textproto";
inline constexpr char kLockFile[] = "lock";
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kKeysFile[] = "keys";
inline constexpr char kJournalFile[] = "journal";
inline constexpr char kContinueWithFile[] = "continue_with";
inline constexpr char kTokenFile[] = "data/tokens.bin";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kMetricsAddressFile[] = "metrics_address";
inline constexpr char kTensorboardFolder[] = "tensorboard";
inline constexpr char kStepTable[] = "steps.csv";
inline constexpr char kEvaluationTable[] = "evaluations.csv";
inline constexpr char kLossPicture[] = "loss.svg";
inline constexpr char kTraceFile[] = "trace.json";
inline constexpr char kLogFolder[] = "logs";

// Creates a run folder and returns its absolute path. `wanted` may exist if it is empty; if
// `wanted` is "", the folder is runs/<name>-<n> with the first free n from 1. Errors:
// ALREADY_EXISTS (with the remedy), those of the file system and of CheckUtf8.
absl::StatusOr<std::string> CreateRunFolder(const std::string& wanted, const std::string& name);

// A run folder has one owner, the process that holds its lock: no other process, on any host,
// touches its files. (The file system must support flock across hosts, as NFS does.)
struct OwnedRunFolder {
  std::string path;     // absolute
  FileDescriptor lock;  // released when closed or the process dies
  bool made = false;    // created by this call: no other job has files in it
};
// Locks an existing folder. Errors: FAILED_PRECONDITION (it has an owner), those of the file
// system.
absl::StatusOr<OwnedRunFolder> OwnRunFolder(const std::string& path);
// Creates a folder as CreateRunFolder, and locks it. Errors: those of both.
absl::StatusOr<OwnedRunFolder> CreateAndOwnRunFolder(const std::string& wanted,
                                                     const std::string& name);

// Address of the coordinator that runs, or last ran, in a run folder. Another job's coordinator may
// have the address now.
struct CoordinatorAddress {
  std::string address;  // "host:port"
  uint64_t job = 0;     // StatusReply.job
};
absl::Status WriteCoordinatorAddress(const std::string& run_dir, const CoordinatorAddress& at);
// Errors: NOT_FOUND.
absl::StatusOr<CoordinatorAddress> ReadCoordinatorAddress(const std::string& run_dir);
void RemoveCoordinatorAddress(const std::string& run_dir);
// The resolved configuration of a run. Errors: those of the file.
absl::StatusOr<JobConfig> ReadRunConfig(const std::string& run_dir);
// Remedy for a run without a coordinator: "continue it with: tug train --resume runs/a"; without a
// checkpoint "it has no checkpoint: start the job again".
std::string HowToContinue(const std::string& run_dir);
// The command line of kContinueWithFile; empty: none. Writing an empty one removes the file.
absl::Status WriteContinueWith(const std::string& run_dir, const std::string& command);
std::string ReadContinueWith(const std::string& run_dir);
void RemoveKeys(const std::string& run_dir);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_RUN_FOLDER_H_
