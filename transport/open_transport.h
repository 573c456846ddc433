// SPDX-License-Identifier: Apache-2.0
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
  std::string endpoint;  // "tcp://HOST:PORT" for remote peers; empty if it does not listen
};

// Opens the transport of one endpoint of a job as configured by `comm` (all fields filled): shared
// memory to peers on this host, TCP to others, impairments. Listens if `listen_host` is not empty.
// Reaches only peers with the same `keys`. Errors: as DualTransport::Create.
absl::StatusOr<OpenedTransport> OpenTransport(PeerId self, uint64_t job, const CommConfig& comm,
                                              const std::string& listen_host,
                                              const JobKeys& keys = JobKeys());

}  // namespace tug

#endif  // TUG_TRANSPORT_OPEN_TRANSPORT_H_
