// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_CLIENT_H_
#define TUG_EXCHANGE_CLIENT_H_

#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/time_source.h"
#include "exchange/exchange.h"
#include "exchange/open_requests.h"
#include "transport/patient_sender.h"
#include "transport/transport.h"

namespace tug {

// Thread-safe push/pull client: runs an Exchange (exchange.h) over a Transport. Requests return
// immediately; Wait* block until the matching event.
//
//   client->Pull({.block = 0, .clock = 0, .destination = weights});
//   client->WaitPulled(0, 0);
//   ... backward pass of block 0 at clock 0 ...
//   client->Push({.block = 0, .virtual_worker = 3, .clock = 0, .token_count = n,
//                 .gradient = lease});
//   client->Pull({.block = 0, .clock = 1, .destination = weights});
//
// Threading. Exchange and transport run on one thread at a time, the driver:
//   - A caller in Wait* drives until its wait ends, so a reply reaches it without a thread switch.
//     Other waiting callers sleep; one of them drives next.
//   - A request runs on the caller's thread if there is no driver, else it is queued and the driver
//     woken.
//   - A background thread drives while callers compute: it starts after kLinger without a driver
//     and yields when a caller waits.
class ExchangeClient {
 public:
  // Delay before the background thread drives: long enough that a caller alternating requests and
  // waits drives itself, short enough that a computing one does not stall the exchange.
  static constexpr absl::Duration kLinger = absl::Milliseconds(1);

  // REQUIRES: `transport` is connected to all lanes; `table` outlives the client.
  ExchangeClient(ExchangeOptions options, const SegmentTable& table,
                 std::unique_ptr<Transport> transport);
  // Stops the background thread. Messages in flight may be lost. REQUIRES: no thread is in Wait*.
  ~ExchangeClient();
  ExchangeClient(const ExchangeClient&) = delete;
  ExchangeClient& operator=(const ExchangeClient&) = delete;

  // Requests take effect in call order.
  void Push(PushRequest request);
  void Pull(PullRequest request);

  // New partition size for later pushes and pulls; the new credit applies at once
  // (Exchange::SetSchedule).
  void SetSchedule(const ExchangeSchedule& schedule);

  // Enters the next view of this timeline and connects to its lanes (Exchange::SetView). An invalid
  // endpoint cancels the client.
  void SetView(ViewRequest view);
  // Sets the virtual workers that this worker runs. Open pushes of all others end as dropped, and
  // their residuals are discarded (Exchange::SetCarried).
  void SetCarried(CarriedRequest carried);

  // Returns the error-feedback residuals of a virtual worker after all its earlier pushes
  // (Exchange::CopyResiduals); empty without error feedback. Blocks. Errors: the Cancel reason.
  absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t virtual_worker);
  // Replaces these residuals, before any later push of the virtual worker
  // (Exchange::RestoreResiduals).
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals);

  // Returns true once `block` has no open pull and the last one asked for clock `version` or later;
  // false after `timeout`. Errors: the Cancel reason.
  absl::StatusOr<bool> WaitPulled(uint32_t block, uint64_t version,
                                  absl::Duration timeout = absl::InfiniteDuration());
  // Lowest and highest version among the partitions of the last pull. Call after WaitPulled.
  OpenRequests::Versions PulledVersions(uint32_t block) const;
  // Cancels the open pull of `block` and discards what it received, in-place weights included. On
  // return its destination is no longer written. Errors: the Cancel reason.
  absl::Status GiveUpPull(uint32_t block);
  // Moves out the in-place weights of the last pull of `block` (PullRequest::allow_in_place); empty
  // if it wrote to its destination. Call after WaitPulled.
  InPlaceWeights TakeInPlace(uint32_t block);
  // Blocks until (block, virtual worker) has no open push. A resend in flight may still hold the
  // gradient: check IsOnlyOwner (base/memory/lease.h) before writing it. Errors: the Cancel reason.
  absl::Status WaitCommitted(uint32_t block, uint32_t virtual_worker);
  // Whether WaitCommitted would return at once.
  bool IsCommitted(uint32_t block, uint32_t virtual_worker) const;
  // REQUIRES: frees_gradients. Returns true once lanes have received every push of (block, virtual
  // worker); the gradient is free except for resends in flight. Returns false `patience` after a
  // lane deferred one: waiting longer may deadlock, since the lane may need pushes that this worker
  // has not made yet. Errors: the Cancel reason; DATA_LOSS if a lane lost a push that it had
  // acknowledged.
  absl::StatusOr<bool> WaitReceived(uint32_t block, uint32_t virtual_worker,
                                    absl::Duration patience = absl::ZeroDuration());
  // Fails all current and future waits with `reason` (not OK). Later calls have no effect.
  void Cancel(absl::Status reason);

  // Gradient buffer that the transport sends from with the fewest copies (Transport::NewBuffer).
  // Contents unspecified; may outlive the client.
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) {
    return transport_->NewBuffer(size_bytes);
  }

  // See Transport::SharedBytes.
  uint64_t SharedBytes() const { return transport_->SharedBytes(); }

  // Total time with a push or pull open, up to `at`. Both come from one clock reading, so `open`
  // never grows faster than `at`.
  struct OpenTimeReading {
    absl::Time at;
    absl::Duration open;
  };
  OpenTimeReading OpenTime() const;

  // Snapshots, updated with each turn of the driver; AwaitedOf and choices every 50 ms.
  ExchangeCounters counters() const;
  // Sum of squares of a virtual worker's residuals (Exchange::residual_squares).
  double ResidualSquares(uint32_t virtual_worker) const;
  // Why the weights of `block` have not arrived (Exchange::AwaitedOf).
  Awaited AwaitedOf(uint32_t block) const;
  // Formats chosen for each link (Exchange::choices).
  LinkChoices choices() const;
  TransportCounters transport_counters() const;

 private:
  struct ResidualCopy {
    uint32_t virtual_worker = 0;
    std::vector<SegmentResidual> residuals = {};
    bool done = false;  // guarded by mutex_
  };
  struct CopyRequest {
    std::shared_ptr<ResidualCopy> copy;  // shared with the waiting caller
  };
  struct RestoreRequest {
    uint32_t virtual_worker = 0;
    std::vector<SegmentResidual> residuals;
  };
  struct GiveUpRequest {
    uint32_t block = 0;
  };
  using Request = std::variant<PushRequest, PullRequest, ExchangeSchedule, ViewRequest,
                               CarriedRequest, CopyRequest, RestoreRequest, GiveUpRequest>;
  using Event = std::variant<BlockPulled, PushCommitted, PushReceived, PushDeferred, CopyRequest>;
  enum class Driver { kNobody, kCaller, kOwnThread };

  // Executes the request on this thread if there is no driver, else queues it for the driver.
  void HandOver(Request request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunOwnThread();
  // Blocks until `done()`, which runs with the mutex held (true), or for `timeout` (false).
  template <typename Done>
  bool WaitUntil(const Done& done, absl::Duration timeout);
  // Drives for at least one turn, until `done()` or `deadline`. REQUIRES: no driver.
  template <typename Done>
  void Drive(Driver driver, const Done& done, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(Request request, absl::Time now);
  void EnterView(ViewRequest view, absl::Time now);
  // Executes queued requests, then polls the transport for up to `poll` (none: no poll). Releases
  // the mutex meanwhile. REQUIRES: the caller is the driver.
  void Turn(absl::Time now, std::optional<absl::Duration> poll)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopDriving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RealTime time_;
  const bool frees_gradients_;

  // Owned by the driver (the role changes hands under mutex_), except that any thread may call
  // transport_'s Wake, NewBuffer and SharedBytes.
  const std::unique_ptr<Transport> transport_;
  PatientSender sender_;
  Exchange exchange_;
  std::vector<Request> taken_;  // moved out of requests_ by the current turn
  std::vector<Event> events_;   // produced by the current turn
  absl::Time next_tick_;

  mutable absl::Mutex mutex_;
  Driver driver_ ABSL_GUARDED_BY(mutex_) = Driver::kNobody;
  uint64_t drives_ ABSL_GUARDED_BY(mutex_) = 0;  // times driving started
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;      // callers in WaitUntil
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  OpenRequests open_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  ExchangeCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> residual_squares_ ABSL_GUARDED_BY(mutex_);  // by virtual worker
  LinkChoices choices_ ABSL_GUARDED_BY(mutex_);
  std::vector<Awaited> awaited_ ABSL_GUARDED_BY(mutex_);  // by block
  TransportCounters transport_counters_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses everything above
};

}  // namespace tug

#endif  // TUG_EXCHANGE_CLIENT_H_
