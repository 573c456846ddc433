#ifndef TUG_COORDINATOR_CONNECTION_GATE_H_
#define TUG_COORDINATOR_CONNECTION_GATE_H_

// Where connections to the coordinator of a job with keys come in. Looks at the first bytes of each
// before gRPC does, since gRPC says of none who it was and why it failed:
//
//   HTTP/2 in clear text   to gRPC, which calls the handlers: those answer a stranger with a reason
//   TLS for our name       (TlsName) to gRPC's TLS, which only members get through
//   TLS for another name   refused: its keys are another job's
//   anything else          refused
//
// Who says nothing for kPatience is let go, and so is who has come in and is not admitted by a call
// (Strangers). A thread of its own.

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
#include "coordinator/strangers.h"
#include "security/client_hello.h"
#include "security/job_keys.h"
#include "security/refusals.h"

namespace grpc::experimental {
class ExternalConnectionAcceptor;
}  // namespace grpc::experimental

struct sockaddr_storage;

namespace tug {

// The port of an IPv4 or IPv6 address.
int PortIn(const sockaddr_storage& address);

class ConnectionGate {
 public:
  using Acceptor = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;
  // Connections that have not said enough yet; of more, the oldest one is let go.
  static constexpr size_t kMostWaiting = 256;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // `listener`: a listening socket. `refusals` and `strangers`, which whom it lets in counts among
  // until they are admitted, outlive the gate. Errors: RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Create(FileDescriptor listener,
                                                                const JobKeys& keys,
                                                                Refusals& refusals,
                                                                Strangers& strangers);
  // Lets nobody in any more.
  ~ConnectionGate();
  ConnectionGate(const ConnectionGate&) = delete;
  ConnectionGate& operator=(const ConnectionGate&) = delete;

  // Begins, once gRPC's server has started. `encrypted`: none unless the keys are of CURVE.
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
  // False: it has left.
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
  std::list<Waiting> waiting_;  // the gate's thread's
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CONNECTION_GATE_H_
