#ifndef TUG_TRANSPORT_OPEN_TRANSPORT_H_
#define TUG_TRANSPORT_OPEN_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "security/job_keys.h"
#include "transport/transport.h"

namespace tug {

struct OpenedTransport {
  std::unique_ptr<Transport> transport;
  std::string endpoint;  // "tcp://HOST:PORT" for peers elsewhere; empty if it does not listen
};

// The transport of one endpoint of a job as `comm` (all fields filled) wants it: shared memory with
// peers on this host, TCP to others, impairments. Listens if `listen_host` is not empty. Only peers
// that have the same `keys` are reached. Errors: as DualTransport::Create.
absl::StatusOr<OpenedTransport> OpenTransport(PeerId self, uint64_t job, const CommConfig& comm,
                                              const std::string& listen_host,
                                              const JobKeys& keys = JobKeys());

}  // namespace tug

#endif  // TUG_TRANSPORT_OPEN_TRANSPORT_H_
