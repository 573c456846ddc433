// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_CONNECTION_GATE_H_
#define TUG_COORDINATOR_SERVICE_CONNECTION_GATE_H_

// Accepts connections to the coordinator of a job with keys. Examines the first bytes of each
// before gRPC gets it, since gRPC does not report which peer failed, or why:
//
//   HTTP/2 in clear text   to gRPC, whose handlers answer an unauthenticated peer with a reason
//   TLS for our name       (TlsName) to gRPC's TLS, which only members pass
//   TLS for another name   refused: keys of another job
//   anything else          refused
//
// A connection that has not sent enough within kPatience is closed, and so is one that was passed
// to gRPC without an admitted call (Strangers). Runs on its own thread.

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "base/time_source.h"
#include "coordinator/service/strangers.h"
#include "security/client_hello.h"
#include "security/job_keys.h"
#include "security/refusals.h"

namespace grpc::experimental {
class ExternalConnectionAcceptor;
}  // namespace grpc::experimental

struct sockaddr_storage;

namespace tug {

// Port of an IPv4 or IPv6 address.
int PortIn(const sockaddr_storage& address);

class ConnectionGate {
 public:
  using Acceptor = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;
  // Max connections that have not sent enough yet; beyond it the oldest is closed.
  static constexpr size_t kMaxWaitingConnections = 256;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // `listener`: a listening socket. A connection passed to gRPC is added to `strangers` until a
  // call is admitted. REQUIRES: `refusals` and `strangers` outlive the gate. Errors:
  // RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Create(FileDescriptor listener,
                                                                const JobKeys& keys,
                                                                Refusals& refusals,
                                                                Strangers& strangers);
  // Stops accepting.
  ~ConnectionGate();
  ConnectionGate(const ConnectionGate&) = delete;
  ConnectionGate& operator=(const ConnectionGate&) = delete;

  // Starts accepting. Call once gRPC's server has started. `encrypted`: null unless the keys are of
  // mode CURVE.
  void Open(Acceptor plain, Acceptor encrypted);

 private:
  struct Waiting {
    FileDescriptor socket;
    std::string address;
    int port;
    absl::Time deadline;
  };
  enum class Door { kMoreBytes, kPlain, kEncrypted, kNone };

  ConnectionGate(FileDescriptor listener, FileDescriptor wake, const JobKeys& keys,
                 ClientHelloReader hellos, Refusals& refusals, Strangers& strangers);

  void Run();
  void Accept();
  // False: the connection was passed on, or must be closed.
  bool Look(Waiting& waiting);
  Door DoorFor(Waiting& waiting, const std::string& said);
  Door DoorForTls(Waiting& waiting, const std::string& said);
  void Pass(Waiting& waiting, grpc::experimental::ExternalConnectionAcceptor& to);

  const FileDescriptor listener_;
  const FileDescriptor wake_;
  const JobKeys keys_;
  const ClientHelloReader hellos_;
  const RealTime time_;
  Refusals& refusals_;
  Strangers& strangers_;
  Acceptor plain_, encrypted_;
  std::atomic<bool> closing_ = false;
  std::list<Waiting> waiting_;  // used by the gate's thread only
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_CONNECTION_GATE_H_
