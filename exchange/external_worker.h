#ifndef TUG_EXCHANGE_EXTERNAL_WORKER_H_
#define TUG_EXCHANGE_EXTERNAL_WORKER_H_

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
#include "base/lease.h"
#include "base/time_source.h"
#include "exchange/block_clocks.h"
#include "exchange/client.h"
#include "exchange/job_member.h"
#include "exchange/push_memory.h"
#include "exchange/segment_table.h"
#include "proto/control_client.h"

namespace tug {

// A program with a model of its own as a worker of a job: exchange/tug.h in C++, and its contract.
// Blocks, clocks and memory are here, membership is JobMember's, messages are ExchangeClient's.
//
// Thread-safe. Errors are one line with what to do: INVALID_ARGUMENT, FAILED_PRECONDITION (not at
// this point), UNAVAILABLE, ABORTED (the job failed), and the coordinator's refusals.
class ExternalWorker {
 public:
  // Waits up to `timeout` for the coordinator at "host:port", of the job that has these keys.
  static absl::StatusOr<std::unique_ptr<ExternalWorker>> Connect(const std::string& coordinator,
                                                                 absl::Duration timeout,
                                                                 const JobKeys& keys = JobKeys());
  // Leaves the job, if it has not ended.
  ~ExternalWorker();
  ExternalWorker(const ExternalWorker&) = delete;
  ExternalWorker& operator=(const ExternalWorker&) = delete;

  // Before Start, in the same order in all workers. Returns the block's number: 0, 1, ...
  absl::StatusOr<uint32_t> Declare(const std::string& name, uint64_t elements, float init_mean,
                                   float init_std, bool weight_decay);
  // Joins, and blocks until every server and worker is ready. Once.
  absl::Status Start();

  // After Start. Place among the job's workers, their number.
  absl::StatusOr<uint32_t> Index() const;
  absl::StatusOr<uint32_t> Count() const;

  // Ends the step in progress, and blocks until the next may begin; none: all steps are done.
  absl::StatusOr<std::optional<uint64_t>> BeginStep();
  absl::StatusOr<Ticket> Push(uint32_t block, const float* gradient, uint64_t count);
  absl::StatusOr<Ticket> Pull(uint32_t block, float* weights);
  absl::Status Wait(Ticket ticket);
  // Of the step in progress, for people.
  absl::Status ReportLoss(double loss_sum, uint64_t count);
  // Memory that Push sends from without a copy; lives as long as this.
  absl::StatusOr<void*> NewBuffer(uint64_t size_bytes);

  // Asks for an orderly end of the job, as `tug stop` does.
  absl::Status Stop();
  // After BeginStep's none: blocks until the job has ended. Earlier: leaves, which fails the job.
  absl::Status Finish();

 private:
  // What is reported of a step.
  struct StepShare {
    ExchangeClient::OpenTimeReading begin;
    absl::Duration waiting;
    double loss_sum = 0;
    uint64_t count = 0;
    uint64_t terms = 0;  // of its newest push
  };

  explicit ExternalWorker(std::unique_ptr<ControlClient> client) : client_(std::move(client)) {}

  void OnEnd(const absl::Status& end);
  absl::Status Join(std::unique_ptr<ControlClient> client);
  absl::Status TakePlace(const View& view);
  absl::Status BuildExchange(const View& view);
  absl::Status CheckStarted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotFailed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplySchedule(const ExchangeSchedule& schedule) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The gradient where it can be sent from: where it lies, or a copy.
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
  bool beginning_ ABSL_GUARDED_BY(mutex_) = false;  // a BeginStep is under way
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  BlockClocks clocks_ ABSL_GUARDED_BY(mutex_);
  // By block: where gradients are copied to that lie in memory of the program's.
  std::vector<std::span<std::byte>> copies_ ABSL_GUARDED_BY(mutex_);
  StepShare share_ ABSL_GUARDED_BY(mutex_);  // of the step in progress
  ExchangeCounters reported_ ABSL_GUARDED_BY(mutex_);
  ExchangeSchedule schedule_ ABSL_GUARDED_BY(mutex_);  // in effect

  // Constant from Start on.
  SegmentTable table_;
  uint32_t index_ = 0;
  uint32_t count_ = 0;
  uint32_t virtual_worker_ = 0;
  uint64_t start_clock_ = 0;
  std::unique_ptr<ExchangeClient> exchange_;
  std::unique_ptr<JobMember> member_;  // last: its thread cancels the exchange
};

}  // namespace tug

#endif  // TUG_EXCHANGE_EXTERNAL_WORKER_H_
