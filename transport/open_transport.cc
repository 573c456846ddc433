// SPDX-License-Identifier: Apache-2.0
#include "transport/open_transport.h"

#include <utility>

#include "base/status_macros.h"
#include "config/largest_payload.h"
#include "transport/dual_transport.h"
#include "transport/impaired_transport.h"

namespace tug {
namespace {

// The same for all jobs, so that rerunning a job repeats its losses and delays.
constexpr uint64_t kImpairSeed = 1;

}  // namespace

absl::StatusOr<OpenedTransport> OpenTransport(PeerId self, uint64_t job, const CommConfig& comm,
                                              const std::string& listen_host, const JobKeys& keys) {
  DualTransport::Options options;
  options.tcp.self = self;
  options.tcp.bind_host = listen_host;
  options.tcp.max_message_bytes = LargestPayload(comm);
  options.tcp.checksum = comm.checksum();
  options.tcp.keys = keys;
  options.job = job;
  options.shared_memory = comm.shared_memory();
  ASSIGN_OR_RETURN(std::unique_ptr<DualTransport> transport, DualTransport::Create(options));
  std::string endpoint = transport->endpoint();
  return OpenedTransport{Impair(std::move(transport), comm.impair(), self, kImpairSeed),
                         std::move(endpoint)};
}

}  // namespace tug
