#ifndef TUG_WORKER_DAEMON_H_
#define TUG_WORKER_DAEMON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core_share.h"
#include "base/leave_signal.h"
#include "exchange/device_encoder.h"
#include "model/gpu_model.h"
#include "security/job_keys.h"

namespace tug {

struct WorkerOptions {
  std::string coordinator;  // "host:port"
  // A job file (and --set values) that must be the coordinator's; empty = take what the coordinator
  // has.
  std::string job_file;
  std::vector<std::string> overrides;
  // Where the token file is made; empty = the run folder's data/, if this host sees it.
  std::string cache_dir;
  JobKeys keys;  // of the job
  // What makes a model on the GPU that this worker takes (worker/training.h). Required.
  GpuModelMaker gpu_models;
  DeviceEncoderMaker gpu_encoders;  // and what encodes its gradients; the same
  // With how many workers it shares the cores that it may use.
  CoreShare core_share;
  // How many workers whoever started it has started; a job of another number is an error. 0: not
  // told.
  uint32_t workers_started = 0;
  // Armed once the job is known; outlives the call. Null: signals end the process.
  LeaveSignal* leave = nullptr;
  // The address of this host at which it answers for metrics, where the job says so: that by which
  // the coordinator reaches it. Numeric.
  std::string metrics_host = "127.0.0.1";
};

// A worker process: joins the job, when there is room for it (proto/join_job.h), reads the data,
// trains until the job ends. OK: the job is done, or goes on without it.
// Errors: one line with what to do. Blocks; one per process.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace tug

#endif  // TUG_WORKER_DAEMON_H_
