// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_PRESENCE_SERVICE_H_
#define TUG_COORDINATOR_SERVICE_PRESENCE_SERVICE_H_

#include <functional>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/presence.grpc.pb.h"

namespace tug {

// Coordinator side of the calls that nodes keep open while they live. A waiting call holds no
// thread. Thread-safe. REQUIRES: outlives the gRPC server that serves it.
class PresenceService final : public Presence::CallbackService {
 public:
  // `admit`: an error is returned to the caller at once. `on_gone`: the call of this request was
  // cancelled or lost its connection. Both run on gRPC's threads.
  PresenceService(std::function<grpc::Status(const grpc::ServerContextBase&)> admit,
                  std::function<void(const StayRequest&)> on_gone)
      : admit_(std::move(admit)), on_gone_(std::move(on_gone)) {}

  // Finishes all calls, current and later ones, so that the server need not wait for them.
  void Close();

  grpc::ServerUnaryReactor* Stay(grpc::CallbackServerContext* context, const StayRequest* request,
                                 StayReply* reply) override;

 private:
  class Call;

  // Removes an open call. True the first time: the caller of Take must finish it.
  bool Take(Call* call);

  const std::function<grpc::Status(const grpc::ServerContextBase&)> admit_;
  const std::function<void(const StayRequest&)> on_gone_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Call*> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_PRESENCE_SERVICE_H_
