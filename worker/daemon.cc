#include "worker/daemon.h"

#include <memory>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "base/large_blocks.h"
#include "base/status_macros.h"
#include "proto/control_client.h"
#include "proto/heartbeat_loop.h"
#include "proto/job_config.h"
#include "proto/sync_mode.h"
#include "worker/training.h"

namespace tug {
namespace {

constexpr absl::Duration kJoinTimeout = absl::Seconds(8);

absl::StatusOr<uint64_t> FingerprintOf(const WorkerOptions& options) {
  if (options.job_file.empty()) return 0;
  ASSIGN_OR_RETURN(const JobConfig config, LoadJobConfig(options.job_file, options.overrides));
  return Fingerprint(config);
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  KeepLargeBlocksMapped();
  RaiseFileLimit();
  RegisterRequest request = ThisProcess(WORKER);
  ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(options));
  request.set_job_fingerprint(fingerprint);
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(options.coordinator, kJoinTimeout, options.keys));
  ASSIGN_OR_RETURN(const RegisterReply registered, client->Register(request));
  const bool may_leave = options.leave != nullptr && GoesOnWithoutANode(registered.config());
  if (may_leave) options.leave->Arm();

  const std::string data_folder =
      options.cache_dir.empty() ? registered.run_dir() + "/data" : options.cache_dir;
  const auto begin = [&] {
    return std::make_unique<Training>(registered, data_folder, options.keys, options.gpu_models,
                                      options.gpu_encoders);
  };
  std::unique_ptr<Training> training = begin();
  uint32_t timeline = 0;  // 0: no view yet
  bool renewed = false;   // the reply in hand began another timeline
  HeartbeatCallbacks callbacks;
  callbacks.report = [&](HeartbeatRequest& beat) { training->AddTo(beat); };
  callbacks.on_view = [&](const View& view) {
    // The job has gone back to a checkpoint: nothing of what was is of use.
    renewed = timeline != 0 && view.timeline() != timeline;
    if (renewed) {
      training.reset();
      training = begin();
    }
    timeline = view.timeline();
    training->SetView(view);
    return absl::OkStatus();
  };
  callbacks.on_reply = [&](const HeartbeatReply& reply, const HeartbeatRequest& sent) {
    // What was reported was of the timeline before.
    training->OnReply(reply, std::exchange(renewed, false) ? HeartbeatRequest() : sent);
  };
  callbacks.failure = [&] { return training->failure(); };
  callbacks.trace = [&] { return training->trace(); };
  if (may_leave) callbacks.leaving = [&] { return options.leave->asked(); };
  return BeatUntilEnd(*client, registered, callbacks);
}

}  // namespace tug
