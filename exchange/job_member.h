#ifndef TUG_EXCHANGE_JOB_MEMBER_H_
#define TUG_EXCHANGE_JOB_MEMBER_H_

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
#include "base/process_memory.h"
#include "exchange/control_board.h"
#include "exchange/program_core.h"
#include "proto/control_client.h"

namespace tug {

// A worker that is not ours, as the coordinator sees it: joins, beats on a thread of its own, takes
// orders, reports steps, and ends with the job. Between two steps it waits at a gate:
//
//   Join -> WaitForView -> SetReady -> WaitForGo -> BeginStep(0), ReportStep, BeginStep(1), ...
//   false -> Finish
//
// Thread-safe.
class JobMember {
 public:
  // Registers, when there is room (proto/join_job.h). `on_end` is called once, on the thread of the
  // heartbeats, when the job has ended for this member: OK (done), or why not. Errors: the
  // coordinator's refusal; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<JobMember>> Join(
      std::unique_ptr<ControlClient> client, const BlockTable& blocks,
      std::function<void(const absl::Status&)> on_end);
  // A member that has not ended yet leaves: the job fails, and says so.
  ~JobMember();
  JobMember(const JobMember&) = delete;
  JobMember& operator=(const JobMember&) = delete;

  const RegisterReply& registered() const { return registered_; }
  ControlClient& client() { return *client_; }

  // Blocks until everyone is in. Errors: why the job ended; FAILED_PRECONDITION if it was stopped.
  absl::StatusOr<View> WaitForView();
  // `shared_bytes`: as Transport::SharedBytes; `most_outstanding_bytes`: as NodeCounters. Called
  // with heartbeats while the member lives.
  void SetReady(std::function<uint64_t()> shared_bytes,
                std::function<uint64_t()> most_outstanding_bytes);
  // Blocks until everyone is ready. Errors: as above.
  absl::Status WaitForGo();

  // Blocks until step `clock` may begin (true), or there is no such step (false). REQUIRES: called
  // for start_version, start_version + 1, ... Errors: why the job ended.
  absl::StatusOr<bool> BeginStep(uint64_t clock);
  // As ProgramCore.
  ExchangeSchedule schedule() const;
  bool pulls_once_more() const;
  PushRequest PushAt(uint32_t block, uint64_t clock) const;
  PullRequest PullAt(uint32_t block, uint64_t clock) const;
  void ReportStep(StepReport report) { board_.AddStep(std::move(report)); }
  // This member cannot go on: the job fails with `why`.
  void Leave(const absl::Status& why);
  // After BeginStep's false: blocks until the job has ended. Errors: why, if not in order.
  absl::Status Finish();

 private:
  JobMember(std::unique_ptr<ControlClient> client, RegisterReply registered,
            std::function<void(const absl::Status&)> on_end);

  absl::Status Beat();
  // Waits ended by the end of the job: why.
  absl::Status WhyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<ControlClient> client_;
  const RegisterReply registered_;
  const std::function<void(const absl::Status&)> on_end_;
  ControlBoard board_;  // synchronises itself

  mutable absl::Mutex mutex_;
  std::optional<View> view_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<uint64_t()> shared_bytes_ ABSL_GUARDED_BY(mutex_);            // once ready
  std::function<uint64_t()> most_outstanding_bytes_ ABSL_GUARDED_BY(mutex_);  // once ready
  PeakMemory memory_ ABSL_GUARDED_BY(mutex_);
  ProgramCore core_ ABSL_GUARDED_BY(mutex_);
  absl::Status leaving_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: starts when all above is there
};

}  // namespace tug

#endif  // TUG_EXCHANGE_JOB_MEMBER_H_
