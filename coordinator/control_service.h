#ifndef TUG_COORDINATOR_CONTROL_SERVICE_H_
#define TUG_COORDINATOR_CONTROL_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/coordinator.h"
#include "proto/control_client.h"

namespace tug {

// Whether an address can be listened on now, to find out before anything is made. Errors:
// UNAVAILABLE, with the remedy.
absl::Status CheckCanListen(const HostPort& listen);

// The coordinator machine behind gRPC, in real time. Messages are bounded by
// kMaxControlMessageBytes. Thread-safe; gRPC's threads call the machine under one mutex, which is
// never held during I/O.
//
// With a journal nothing that the machine says, to a node or to NextActions, leaves before what it
// was told is durable. A journal that cannot be written is trouble: the job fails.
class ControlService {
 public:
  // Longest time between two ticks while somebody waits in NextActions.
  static constexpr absl::Duration kTick = absl::Milliseconds(50);

  // Listens; port 0 picks a free one. Answers only who has `keys` (of NONE: whoever has none); a
  // line of the log says who was refused. A connection without calls is closed after a while.
  // Errors: UNAVAILABLE (port in use, or not an address of this machine).
  static absl::StatusOr<std::unique_ptr<ControlService>> Start(CoordinatorOptions options,
                                                               const HostPort& listen,
                                                               const JobKeys& keys = JobKeys());
  // `coordinator` keeps `journal`, which outlives the service; null: none.
  static absl::StatusOr<std::unique_ptr<ControlService>> Start(
      std::unique_ptr<Coordinator> coordinator, Journal* journal, const HostPort& listen,
      const JobKeys& keys = JobKeys());
  // Lets calls in progress finish, for a second at most.
  ~ControlService();
  ControlService(const ControlService&) = delete;
  ControlService& operator=(const ControlService&) = delete;

  // "host:port", as bound.
  const std::string& address() const;

  // What the machine asks to be done; waits up to `timeout` for something. Lets time pass in the
  // machine, so the owner calls it again and again.
  std::vector<Action> NextActions(absl::Duration timeout);

  // The machine's inputs from this process.
  void OnCheckpointCommitted(uint64_t version, const absl::Status& status);
  void OnStepsPredicted(uint32_t round, std::vector<double> seconds);
  void OnTrouble(const std::string& what);
  StatusReply Status();
  // URL of the page that people watch the job by; told in StatusReply.
  void SetPage(const std::string& url);
  StopReply Stop();

 private:
  class Machine;
  class Door;
  class Handlers;
  class Listener;

  ControlService(std::unique_ptr<Machine> machine, std::unique_ptr<Listener> listener);

  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CONTROL_SERVICE_H_
