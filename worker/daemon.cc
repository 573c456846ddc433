// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file_limit.h"
#include "base/log.h"
#include "base/memory/large_blocks.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "control/control_client.h"
#include "control/heartbeat_loop.h"
#include "control/join_job.h"
#include "metrics/metrics_endpoint.h"
#include "metrics/step_totals.h"
#include "metrics/worker_metrics.h"
#include "proto/process_name.h"
#include "worker/training.h"

namespace tug {
namespace {

absl::StatusOr<uint64_t> FingerprintOf(const WorkerOptions& options) {
  if (options.job_file.empty()) return 0;
  ASSIGN_OR_RETURN(const JobConfig config, LoadJobConfig(options.job_file, options.overrides));
  return Fingerprint(config);
}

// Current training and its step totals, for metrics. Thread-safe.
class Watched {
 public:
  // Null: none. On return the previous training is no longer used.
  void Set(const Training* training) {
    absl::MutexLock lock(&mutex_);
    training_ = training;
  }
  StepTotals& totals() { return totals_; }

  WorkerFigures figures() const {
    WorkerFigures figures;
    {
      absl::MutexLock lock(&mutex_);
      if (training_ != nullptr) figures = training_->figures();
    }
    figures.steps = totals_.figures();
    return figures;
  }

 private:
  mutable absl::Mutex mutex_;
  const Training* training_ ABSL_GUARDED_BY(mutex_) = nullptr;
  StepTotals totals_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> OpenMetricsOf(const RegisterReply& registered,
                                                          const std::string& host,
                                                          const Watched& watched) {
  const JobConfig& config = registered.config();
  ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> endpoint,
      OpenMetrics(host, static_cast<uint16_t>(config.watch().metrics_port()),
                  {config.name(), kWorkerRole, registered.name()},
                  [&](MetricsText& text) { text.Add(WorkerMetrics(), watched.figures()); }));
  endpoint->Start();
  return endpoint;
}

TrainingOptions TrainingOptionsOf(const WorkerOptions& options, const RegisterReply& registered,
                                  Watched& watched) {
  return {
      .data_folder = options.cache_dir.empty() ? registered.run_dir() + "/data" : options.cache_dir,
      .keys = options.keys,
      .gpu_models = options.gpu_models,
      .gpu_encoders = options.gpu_encoders,
      .core_share = options.core_share,
      .totals = registered.config().watch().metrics() ? &watched.totals() : nullptr};
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  KeepLargeBlocksMapped();
  RETURN_IF_ERROR(RaiseFileLimit());
  RegisterRequest request = ThisProcess(WORKER);
  ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(options));
  request.set_job_fingerprint(fingerprint);
  request.set_workers_started(options.workers_started);
  if (options.index.has_value()) request.set_index(*options.index);
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(options.coordinator, kJoinTimeout, options.keys));
  ASSIGN_OR_RETURN(const std::optional<RegisterReply> joined, JoinJob(*client, request));
  if (!joined.has_value()) return absl::OkStatus();
  const RegisterReply& registered = *joined;
  SetLogProcess(registered.name());
  ArmLeaveSignal(options.leave, registered.config());

  Watched watched;
  const bool metrics = registered.config().watch().metrics();
  const auto begin = [&] {
    auto training =
        std::make_unique<Training>(registered, TrainingOptionsOf(options, registered, watched));
    watched.Set(training.get());
    return training;
  };
  std::unique_ptr<Training> training = begin();
  std::unique_ptr<HttpServer> endpoint;  // destroyed before the objects it reads
  if (metrics) {
    ASSIGN_OR_RETURN(endpoint, OpenMetricsOf(registered, options.metrics_host, watched));
  }
  uint32_t timeline = 0;  // 0: no view yet
  bool renewed = false;   // the current reply began another timeline
  HeartbeatCallbacks callbacks;
  callbacks.report = [&](HeartbeatRequest& beat) {
    training->AddTo(beat);
    if (endpoint != nullptr) beat.set_metrics_endpoint(endpoint->address());
  };
  callbacks.on_view = [&](const View& view) {
    // The job has rolled back to a checkpoint: discard the training.
    renewed = timeline != 0 && view.timeline() != timeline;
    if (renewed) {
      watched.Set(nullptr);
      training.reset();
      training = begin();
    }
    timeline = view.timeline();
    training->SetView(view);
    return absl::OkStatus();
  };
  callbacks.on_reply = [&](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    // `sent` reported on the previous timeline.
    training->OnReply(reply, std::exchange(renewed, false) ? HeartbeatRequest() : sent);
  };
  callbacks.failure = [&] { return training->failure(); };
  callbacks.trace = [&] { return training->trace(); };
  if (options.leave != nullptr) callbacks.leaving = [&] { return options.leave->asked(); };
  return BeatUntilEnd(*client, registered, callbacks);
}

}  // namespace tug
