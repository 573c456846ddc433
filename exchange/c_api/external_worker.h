// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_C_API_EXTERNAL_WORKER_H_
#define TUG_EXCHANGE_C_API_EXTERNAL_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/lease.h"
#include "base/time_source.h"
#include "blocks/segment_table.h"
#include "control/control_client.h"
#include "exchange/block_clocks.h"
#include "exchange/c_api/job_member.h"
#include "exchange/c_api/push_memory.h"
#include "exchange/client.h"

namespace tug {

// Runs a program with its own model as a worker of a job: implements exchange/c_api/tug.h in C++,
// and documents its contract. Blocks, clocks and memory are here; JobMember handles membership,
// ExchangeClient messages.
//
// Thread-safe. Errors are one line that says what to do: INVALID_ARGUMENT, FAILED_PRECONDITION (not
// allowed at this point), UNAVAILABLE, ABORTED (the job failed), and the coordinator's refusals.
class ExternalWorker {
 public:
  // Waits up to `timeout` for the coordinator at "host:port" of the job with these keys.
  static absl::StatusOr<std::unique_ptr<ExternalWorker>> Connect(const std::string& coordinator,
                                                                 absl::Duration timeout,
                                                                 const JobKeys& keys = JobKeys());
  // Leaves the job if it has not ended; the job then fails.
  ~ExternalWorker();
  ExternalWorker(const ExternalWorker&) = delete;
  ExternalWorker& operator=(const ExternalWorker&) = delete;

  // Declares a block and returns its number: 0, 1, ... Call before Start, in the same order in all
  // workers.
  absl::StatusOr<uint32_t> Declare(const std::string& name, uint64_t elements, float init_mean,
                                   float init_std, bool weight_decay);
  // Joins, and blocks until every server and worker is ready. Call once.
  absl::Status Start();

  // Rank among the job's workers; number of workers. Call after Start.
  absl::StatusOr<uint32_t> Index() const;
  absl::StatusOr<uint32_t> Count() const;

  // Ends the step in progress, and blocks until the next one may begin. None: all steps are done.
  absl::StatusOr<std::optional<uint64_t>> BeginStep();
  absl::StatusOr<Ticket> Push(uint32_t block, const float* gradient, uint64_t count);
  absl::StatusOr<Ticket> Pull(uint32_t block, float* weights);
  absl::Status Wait(Ticket ticket);
  // Adds to the loss of the step in progress. For monitoring.
  absl::Status ReportLoss(double loss_sum, uint64_t count);
  // Returns memory that Push sends from without a copy. Freed with this object.
  absl::StatusOr<void*> NewBuffer(uint64_t size_bytes);

  // Requests an orderly end of the job, like `tug stop`.
  absl::Status Stop();
  // Call after BeginStep has returned none: blocks until the job has ended. Called earlier, it
  // leaves the job, which then fails.
  absl::Status Finish();

 private:
  // Contents of the report of a step.
  struct StepShare {
    ExchangeClient::OpenTimeReading begin;
    absl::Duration waiting;
    double loss_sum = 0;
    uint64_t count = 0;
    uint64_t terms = 0;  // count of its newest push
  };

  explicit ExternalWorker(std::unique_ptr<ControlClient> client) : client_(std::move(client)) {}

  void OnEnd(const absl::Status& end);
  absl::Status Join(std::unique_ptr<ControlClient> client);
  absl::Status AdoptAssignment(const View& view);
  absl::Status BuildExchange(const View& view);
  absl::Status CheckStarted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotFailed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplySchedule(const ExchangeSchedule& schedule) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Bytes to send the gradient from: in place if it lies in a buffer of NewBuffer, else a copy.
  std::span<const std::byte> Sendable(uint32_t block, const float* gradient)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WaitPushed(Ticket ticket);
  absl::Status WaitPulled(Ticket ticket);

  const RealTime time_;
  const std::shared_ptr<PushMemory> memory_ = std::make_shared<PushMemory>();

  mutable absl::Mutex mutex_;
  std::unique_ptr<ControlClient> client_ ABSL_GUARDED_BY(mutex_);  // until Start
  BlockTable blocks_;                                              // fixed by Start
  bool starting_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_steps_done_ ABSL_GUARDED_BY(mutex_) = false;
  bool beginning_ ABSL_GUARDED_BY(mutex_) = false;  // a thread is in BeginStep
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  BlockClocks clocks_ ABSL_GUARDED_BY(mutex_);
  // By block: copies of gradients that do not lie in a buffer of NewBuffer.
  std::vector<std::span<std::byte>> copies_ ABSL_GUARDED_BY(mutex_);
  StepShare share_ ABSL_GUARDED_BY(mutex_);            // of the step in progress
  ExchangeCounters reported_ ABSL_GUARDED_BY(mutex_);  // at the last step report
  ExchangeSchedule schedule_ ABSL_GUARDED_BY(mutex_);  // in effect

  // The members below are constant after Start.
  SegmentTable table_;
  uint32_t index_ = 0;
  uint32_t count_ = 0;
  uint32_t virtual_worker_ = 0;
  uint64_t start_clock_ = 0;
  std::unique_ptr<ExchangeClient> exchange_;
  std::unique_ptr<JobMember> member_;  // last: its thread cancels the exchange
};

}  // namespace tug

#endif  // TUG_EXCHANGE_C_API_EXTERNAL_WORKER_H_
