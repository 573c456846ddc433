// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_CONTROL_SERVICE_H_
#define TUG_COORDINATOR_SERVICE_CONTROL_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/control_client.h"
#include "coordinator/coordinator.h"

namespace tug {

// Whether an address can be listened on now; call before creating anything. Errors: UNAVAILABLE,
// with the remedy.
absl::Status CheckCanListen(const HostPort& listen);

// The coordinator state machine behind gRPC, in real time. Messages are at most
// kMaxControlMessageBytes. Thread-safe: gRPC's threads call the machine under one mutex, which is
// never held during I/O.
//
// With a journal, no output of the machine, to a node or from NextActions, leaves before the inputs
// it depends on are durable. A journal that cannot be written fails the job.
class ControlService {
 public:
  // Max time between ticks while a thread waits in NextActions.
  static constexpr absl::Duration kTick = absl::Milliseconds(50);

  // Listens; port 0 picks a free one. Answers only peers with `keys` (NONE: peers without keys);
  // refused peers are logged. Connections without calls are closed after a while. Errors:
  // UNAVAILABLE (port in use, or not an address of this machine).
  static absl::StatusOr<std::unique_ptr<ControlService>> Start(CoordinatorOptions options,
                                                               const HostPort& listen,
                                                               const JobKeys& keys = JobKeys());
  // `coordinator` appends to `journal` (Coordinator::KeepJournal). Null: none. REQUIRES: `journal`
  // outlives the service.
  static absl::StatusOr<std::unique_ptr<ControlService>> Start(
      std::unique_ptr<Coordinator> coordinator, Journal* journal, const HostPort& listen,
      const JobKeys& keys = JobKeys());
  // Waits up to a second for calls in progress.
  ~ControlService();
  ControlService(const ControlService&) = delete;
  ControlService& operator=(const ControlService&) = delete;

  // "host:port", as bound.
  const std::string& address() const;

  // Returns requested actions; waits up to `timeout` for the first. Also advances the machine's
  // time, so call it continually.
  std::vector<Action> NextActions(absl::Duration timeout);

  // Inputs of the machine from this process.
  void OnCheckpointCommitted(uint64_t version, const absl::Status& status);
  void OnStepsPredicted(uint32_t round, std::vector<double> seconds);
  void OnTrouble(const std::string& what);
  StatusReply Status();
  // URL of the live page, for StatusReply.page.
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

#endif  // TUG_COORDINATOR_SERVICE_CONTROL_SERVICE_H_
