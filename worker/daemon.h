// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_DAEMON_H_
#define TUG_WORKER_DAEMON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/cpu/core_share.h"
#include "base/leave_signal.h"
#include "exchange/encode/device_encoder.h"
#include "model/gpu/gpu_model.h"
#include "security/job_keys.h"

namespace tug {

struct WorkerOptions {
  std::string coordinator;  // "host:port"
  // A job file (and --set values) that must equal the coordinator's; empty: accept the
  // coordinator's.
  std::string job_file;
  std::vector<std::string> overrides;
  // Folder of the token file; empty: data/ in the run folder.
  std::string cache_dir;
  JobKeys keys;
  // Makes a model on this worker's GPU (worker/training.h). Required.
  GpuModelMaker gpu_models;
  DeviceEncoderMaker gpu_encoders;  // makes the encoder of its gradients. Required
  // Share of the cores available to this process.
  CoreShare core_share;
  // Number of workers that the launcher started; it is an error if the job has another number. 0:
  // unknown.
  uint32_t workers_started = 0;
  std::optional<uint32_t> index;  // wished, in the process's name; none: any
  // Armed once the job is known; outlives the call. Null: signals end the process.
  LeaveSignal* leave = nullptr;
  // Numeric address to serve metrics on, if the job enables them: this host's address as the
  // coordinator reaches it.
  std::string metrics_host = "127.0.0.1";
};

// Runs a worker process: joins the job when it has room (control/join_job.h), reads the data,
// trains until the job ends. OK: the job is done, or continues without this worker. Errors: one
// line with the remedy. Blocks; one per process.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace tug

#endif  // TUG_WORKER_DAEMON_H_
