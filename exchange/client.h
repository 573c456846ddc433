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
#include "exchange/exchange.h"
#include "transport/transport.h"

namespace tug {

// Push and pull for a process that computes: the exchange library's front door. One thread of its
// own runs the Exchange machine over a transport; requests return at once, and Wait* blocks until
// their events.
//
//   client->Pull({.block = 0, .version = 0, .destination = weights});
//   client->WaitPulled(0, 0);
//   ... backward pass of block 0 at clock 0 ...
//   client->Push({.block = 0, .virtual_worker = 3, .clock = 0, .token_count = n,
//                 .gradient = lease});
//   client->Pull({.block = 0, .version = 1, .destination = weights});
//
// All methods are thread-safe.
class ExchangeClient {
 public:
  // Takes over a transport that is connected to all lanes. REQUIRES: `table` outlives the client.
  ExchangeClient(ExchangeOptions options, const SegmentTable& table,
                 std::unique_ptr<Transport> transport);
  // Stops the thread; what is still on its way may not arrive.
  ~ExchangeClient();
  ExchangeClient(const ExchangeClient&) = delete;
  ExchangeClient& operator=(const ExchangeClient&) = delete;

  // The order of requests is the order they reach the machine in.
  void Push(PushRequest request);
  void Pull(PullRequest request);

  // Blocks until the newest completed pull of `block` has at least `version` (true), or for
  // `timeout` (false). CANCELLED etc.: what Cancel was given.
  absl::StatusOr<bool> WaitPulled(uint32_t block, uint64_t version,
                                  absl::Duration timeout = absl::InfiniteDuration());
  // Blocks until no push of (block, virtual worker) is open: its gradient may be written again.
  absl::Status WaitCommitted(uint32_t block, uint32_t virtual_worker);
  // Ends all waits, now and later, with `reason` (not OK). The first reason stays.
  void Cancel(absl::Status reason);

  ExchangeCounters counters() const;
  TransportCounters transport_counters() const;

 private:
  using Request = std::variant<PushRequest, PullRequest>;

  void Add(Request request);
  void Loop(std::stop_token stop);
  std::vector<Request> TakeRequests();
  void PublishCounters();

  const std::unique_ptr<Transport> transport_;  // owner: thread_, but for Wake
  Exchange exchange_;                           // owner: thread_
  mutable absl::Mutex mutex_;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::optional<uint64_t>> pulled_version_ ABSL_GUARDED_BY(mutex_);  // by block
  std::vector<std::vector<uint32_t>> open_pushes_
      ABSL_GUARDED_BY(mutex_);  // by block: virtual workers
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  ExchangeCounters counters_ ABSL_GUARDED_BY(mutex_);
  TransportCounters transport_counters_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: starts when all above is there
};

}  // namespace tug

#endif  // TUG_EXCHANGE_CLIENT_H_
