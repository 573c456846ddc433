// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_ZAP_HANDLER_H_
#define TUG_TRANSPORT_ZAP_HANDLER_H_

// Authenticates connections to a listening ZeroMQ socket: accepts only peers with the job's keys.
// libzmq asks once per connection, by ZAP (RFC 27), and ZapHandler replies. libzmq itself refuses
// peers that do not speak the mechanism (PLAIN of RFC 24, CURVE of RFC 25) and reports them through
// the socket's monitor. Both are counted, and logged once per address and reason. Bytes that are
// not ZMTP 3 make libzmq (4.3.4) close the connection without an event: those are not counted. The
// same events bound the connections that have not yet shown keys (connection_watch.h). No message
// passes through ZapHandler.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "security/job_keys.h"
#include "security/refusals.h"
#include "transport/connection_watch.h"
#include "transport/zmq_handles.h"

namespace tug {

// Call before a socket connects: it shows the keys and, with CURVE, accepts only a server that has
// them.
void SetClientKeys(void* socket, const JobKeys& keys);
// Call before a socket binds: the ZapHandler of its context decides on connections. REQUIRES: that
// handler exists by then, and as long as the socket is bound (libzmq's CURVE does not ask if there
// is no handler).
void SetServerKeys(void* socket, const JobKeys& keys);

// Runs a thread until the context ends.
class ZapHandler {
 public:
  // Serves all sockets of `context` with SetServerKeys; monitors `listener`, which must not be
  // bound yet. `max_waiting`: limit of connections that have not yet shown keys. `say`: see
  // Refusals; called on the handler's thread. Errors: RESOURCE_EXHAUSTED (file descriptors).
  static absl::StatusOr<std::unique_ptr<ZapHandler>> Create(
      void* context, void* listener, const JobKeys& keys, size_t max_waiting,
      std::function<void(const std::string&)> say);
  // REQUIRES: the context has ended.
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  // Number of refused connections. Thread-safe.
  uint64_t refused() const { return refusals_.count(); }

 private:
  ZapHandler(ZmqSocket requests, ZmqSocket events, const JobKeys& keys, ConnectionWatch watch,
             std::function<void(const std::string&)> say);

  void Run(ZmqSocket requests, ZmqSocket events);
  // Return false when the context has ended.
  bool AnswerRequest(void* requests);
  bool ProcessEvent(void* events);
  std::string WhyFailed(int32_t protocol_error) const;
  // Reason to refuse these credentials; empty: accept.
  std::string Judge(const std::string& mechanism,
                    const std::vector<std::string>& credentials) const;

  const JobKeys keys_;
  const std::string public_key_;  // CURVE only, as bytes
  Refusals refusals_;
  // Addresses of open connections, by descriptor. Used on the handler's thread only.
  std::map<int, std::string> addresses_;
  uint16_t port_ = 0;      // of the listener; handler's thread only
  ConnectionWatch watch_;  // likewise
  std::string failure_;    // handshake failure of the connection that closes next; empty: none
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ZAP_HANDLER_H_
