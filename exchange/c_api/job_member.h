// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_C_API_JOB_MEMBER_H_
#define TUG_EXCHANGE_C_API_JOB_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/process_memory.h"
#include "control/control_board.h"
#include "control/control_client.h"
#include "exchange/c_api/program_core.h"

namespace tug {

// Membership of an external worker: joins the job, sends heartbeats on its own thread, follows the
// coordinator's orders, reports steps, and ends with the job. Steps pass a gate:
//
//   Join -> WaitForView -> SetReady -> WaitForGo -> BeginStep(0), ReportStep, BeginStep(1), ...
//   false -> Finish
//
// Thread-safe.
class JobMember {
 public:
  // Registers once the job has a free slot (control/join_job.h). `on_end` is called once, on the
  // heartbeat thread, when the job has ended for this member: with OK (done) or the reason. Errors:
  // the coordinator's refusal; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<JobMember>> Join(
      std::unique_ptr<ControlClient> client, const BlockTable& blocks,
      std::function<void(const absl::Status&)> on_end);
  // Leaves the job if the member has not ended; the job then fails with that reason.
  ~JobMember();
  JobMember(const JobMember&) = delete;
  JobMember& operator=(const JobMember&) = delete;

  const RegisterReply& registered() const { return registered_; }
  ControlClient& client() { return *client_; }

  // Blocks until all workers and servers have joined. Errors: why the job ended;
  // FAILED_PRECONDITION if it was stopped.
  absl::StatusOr<View> WaitForView();
  // Reports this worker as ready. Both are called with each heartbeat while the member exists.
  // `shared_bytes`: Transport::SharedBytes; `count` sets counters of the exchange.
  void SetReady(std::function<uint64_t()> shared_bytes, std::function<void(NodeCounters&)> count);
  // Blocks until every node is ready. Errors: as for WaitForView.
  absl::Status WaitForGo();

  // Blocks until step `clock` may begin (true), or is known not to exist (false). REQUIRES: calls
  // are for start_version, start_version + 1, ... Errors: why the job ended.
  absl::StatusOr<bool> BeginStep(uint64_t clock);
  // See ProgramCore.
  ExchangeSchedule schedule() const;
  bool pulls_once_more() const;
  PushRequest PushAt(uint32_t block, uint64_t clock) const;
  PullRequest PullAt(uint32_t block, uint64_t clock) const;
  void ReportStep(StepReport report) { board_.AddStep(std::move(report)); }
  // Fails the job with `why`.
  void Leave(const absl::Status& why);
  // Call after BeginStep has returned false: blocks until the job has ended. Errors: why, if it
  // failed.
  absl::Status Finish();

 private:
  JobMember(std::unique_ptr<ControlClient> client, RegisterReply registered,
            std::function<void(const absl::Status&)> on_end);

  absl::Status Beat();
  // Error for a wait that the end of the job interrupted.
  absl::Status WhyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<ControlClient> client_;
  const RegisterReply registered_;
  const std::function<void(const absl::Status&)> on_end_;
  ControlBoard board_;  // synchronises itself

  mutable absl::Mutex mutex_;
  std::optional<View> view_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<uint64_t()> shared_bytes_ ABSL_GUARDED_BY(mutex_);    // once ready
  std::function<void(NodeCounters&)> count_ ABSL_GUARDED_BY(mutex_);  // once ready
  PeakMemory memory_ ABSL_GUARDED_BY(mutex_);
  ProgramCore core_ ABSL_GUARDED_BY(mutex_);
  absl::Status leaving_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tug

#endif  // TUG_EXCHANGE_C_API_JOB_MEMBER_H_
