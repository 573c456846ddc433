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

// Push and pull for a process that computes: the exchange library's front door. Requests return at
// once, and Wait* blocks until their events.
//
//   client->Pull({.block = 0, .clock = 0, .destination = weights});
//   client->WaitPulled(0, 0);
//   ... backward pass of block 0 at clock 0 ...
//   client->Push({.block = 0, .virtual_worker = 3, .clock = 0, .token_count = n,
//                 .gradient = lease});
//   client->Pull({.block = 0, .clock = 1, .destination = weights});
//
// Who drives. The Exchange machine and the transport are used by one thread at a time, the driver:
//   - a caller that waits drives until what it waits for is there, so an answer reaches it without
//     a change of threads; others that wait meanwhile sleep, and the next one takes over;
//   - a request is handed over by its caller if nobody drives, else by the driver, who is woken;
//   - a thread of the client's own drives while callers compute: it steps in when nobody has driven
//     for kLinger, and leaves as soon as a caller waits.
//
// All methods are thread-safe.
class ExchangeClient {
 public:
  // Long enough that a caller who asks and waits in turn always drives itself, short enough that
  // one who computes does not hold the exchange up.
  static constexpr absl::Duration kLinger = absl::Milliseconds(1);

  // Takes over a transport that is connected to all lanes. REQUIRES: `table` outlives the client.
  ExchangeClient(ExchangeOptions options, const SegmentTable& table,
                 std::unique_ptr<Transport> transport);
  // Stops the thread; what is still on its way may not arrive. REQUIRES: nobody waits.
  ~ExchangeClient();
  ExchangeClient(const ExchangeClient&) = delete;
  ExchangeClient& operator=(const ExchangeClient&) = delete;

  // The order of requests is the order they reach the machine in.
  void Push(PushRequest request);
  void Pull(PullRequest request);

  // Of what is asked for from now on (Exchange::SetSchedule).
  void SetSchedule(const ExchangeSchedule& schedule);

  // The job's next view, of the same timeline (Exchange::SetView): connects to lanes that it does
  // not know. What cannot be an endpoint cancels the client.
  void SetView(ViewRequest view);
  // The virtual workers carried from now on (Exchange::SetCarried).
  void SetCarried(CarriedRequest carried);

  // Blocks until it is there: what the pushes of a virtual worker that were asked for before leave
  // out (Exchange::CopyResiduals). CANCELLED etc.: what Cancel was given.
  absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t virtual_worker);
  // Before its pushes that are asked for from now on (Exchange::RestoreResiduals).
  void RestoreResiduals(uint32_t virtual_worker, std::vector<SegmentResidual> residuals);

  // Blocks until no pull of `block` is open and the last one was for `version` at least (true), or
  // for `timeout` (false). CANCELLED etc.: what Cancel was given.
  absl::StatusOr<bool> WaitPulled(uint32_t block, uint64_t version,
                                  absl::Duration timeout = absl::InfiniteDuration());
  // After WaitPulled: lowest and highest version of what the newest pull of `block` brought.
  OpenRequests::Versions PulledVersions(uint32_t block) const;
  // Blocks until no pull of `block` is open: nothing more is written into its destination. What has
  // come of it is given up too. Errors: as WaitPulled.
  absl::Status GiveUpPull(uint32_t block);
  // After WaitPulled: where the newest pull of `block` left the weights, if not in its destination
  // (PullRequest::allow_in_place); empty if it did, and the second time.
  InPlaceWeights TakeInPlace(uint32_t block);
  // Blocks until no push of (block, virtual worker) is open: its gradient may be written again.
  absl::Status WaitCommitted(uint32_t block, uint32_t virtual_worker);
  // Whether that would not block.
  bool IsCommitted(uint32_t block, uint32_t virtual_worker) const;
  // With frees_gradients: blocks until every push of (block, virtual worker) has been received:
  // true, its gradient is not wanted any more, but by repeats that are under way; or until a lane
  // has had no memory for one for `patience`: false, since that may last for as long as others wait
  // for this worker. Errors: as above; DATA_LOSS where a lane does not know a push that it had
  // received.
  absl::StatusOr<bool> WaitReceived(uint32_t block, uint32_t virtual_worker,
                                    absl::Duration patience = absl::ZeroDuration());
  // Ends all waits, now and later, with `reason` (not OK). The first reason stays.
  void Cancel(absl::Status reason);

  // Memory for gradients that are sent from where they are with the fewest copies
  // (Transport::NewBuffer). Contents unspecified; may outlive the client.
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) {
    return transport_->NewBuffer(size_bytes);
  }

  // As Transport::SharedBytes.
  uint64_t SharedBytes() const { return transport_->SharedBytes(); }

  // How long at least one push or pull has been open, all in all, up to `at`: of one look at the
  // clock, so that of two readings `open` grows by at most what `at` does.
  struct OpenTimeReading {
    absl::Time at;
    absl::Duration open;
  };
  OpenTimeReading OpenTime() const;

  // As of the driver's last turn.
  ExchangeCounters counters() const;
  // Sum of squares (Exchange::residual_squares).
  double ResidualSquares(uint32_t virtual_worker) const;
  // Exchange::AwaitedOf, as of a tick ago.
  Awaited AwaitedOf(uint32_t block) const;
  // Exchange::choices, as of a while ago.
  LinkChoices choices() const;
  TransportCounters transport_counters() const;

 private:
  struct ResidualCopy {
    uint32_t virtual_worker = 0;
    std::vector<SegmentResidual> residuals = {};
    bool done = false;  // set, and read, with the mutex held
  };
  struct CopyRequest {
    std::shared_ptr<ResidualCopy> copy;  // whoever waits has it too
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

  // To the driver, who may be the caller.
  void HandOver(Request request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunOwnThread();
  // Blocks until `done()`, which is called with the mutex held (true), or for `timeout` (false).
  template <typename Done>
  bool WaitUntil(const Done& done, absl::Duration timeout);
  // Drives until `done()` or `deadline`, at least one turn. REQUIRES: nobody does.
  template <typename Done>
  void Drive(Driver driver, const Done& done, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(Request request, absl::Time now);
  void EnterView(ViewRequest view, absl::Time now);
  // Hands over what has been asked for and, given a time to wait, takes what arrives within it.
  // Lets go of the mutex meanwhile. REQUIRES: to be the driver.
  void Turn(absl::Time now, std::optional<absl::Duration> poll)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopDriving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RealTime time_;
  const bool frees_gradients_;

  // The driver's, but for the transport's Wake, NewBuffer and SharedBytes. The role changes hands
  // under mutex_.
  const std::unique_ptr<Transport> transport_;
  PatientSender sender_;
  Exchange exchange_;
  std::vector<Request> taken_;  // from requests_
  std::vector<Event> events_;   // of this turn
  absl::Time next_tick_;

  mutable absl::Mutex mutex_;
  Driver driver_ ABSL_GUARDED_BY(mutex_) = Driver::kNobody;
  uint64_t drives_ ABSL_GUARDED_BY(mutex_) = 0;  // how often somebody has begun to
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;      // callers
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  OpenRequests open_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  ExchangeCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> residual_squares_ ABSL_GUARDED_BY(mutex_);  // by virtual worker
  LinkChoices choices_ ABSL_GUARDED_BY(mutex_);
  std::vector<Awaited> awaited_ ABSL_GUARDED_BY(mutex_);  // by block
  TransportCounters transport_counters_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: starts when all above is there
};

}  // namespace tug

#endif  // TUG_EXCHANGE_CLIENT_H_
