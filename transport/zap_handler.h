#ifndef TUG_TRANSPORT_ZAP_HANDLER_H_
#define TUG_TRANSPORT_ZAP_HANDLER_H_

// Who is let in at a ZeroMQ socket that listens: only those who have the job's keys. libzmq asks
// once for each connection, by ZAP (RFC 27), and this answers; those who do not even speak the
// mechanism (PLAIN of RFC 24, CURVE of RFC 25) libzmq turns away by itself, and a monitor of the
// socket tells. Both are counted, and said once for each address and reason. Bytes that are no ZMTP
// 3 at all libzmq (4.3.4) closes without telling anybody: those are neither. By the same events it
// bounds the connections that have not yet shown keys (connection_watch.h). Nothing of this is on
// the way of a message.

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

// Before a socket connects: shows the keys, and with CURVE takes only who has them.
void SetClientKeys(void* socket, const JobKeys& keys);
// Before a socket binds: lets in whom the ZapHandler of its context does. REQUIRES: there is one by
// then, for as long as the socket is bound (libzmq's CURVE does not ask where nobody answers).
void SetServerKeys(void* socket, const JobKeys& keys);

// A thread of its own, until the context ends.
class ZapHandler {
 public:
  // For all sockets of `context` with SetServerKeys; watches `listener`, which is to be bound yet.
  // `most_waiting`: connections that have not yet shown keys. `say`: as of Refusals, on the
  // handler's thread. Errors: RESOURCE_EXHAUSTED (files).
  static absl::StatusOr<std::unique_ptr<ZapHandler>> Create(
      void* context, void* listener, const JobKeys& keys, size_t most_waiting,
      std::function<void(const std::string&)> say);
  // REQUIRES: the context has ended.
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  // Connections that were refused. Thread-safe.
  uint64_t refused() const { return refusals_.count(); }

 private:
  ZapHandler(ZmqSocket requests, ZmqSocket events, const JobKeys& keys, ConnectionWatch watch,
             std::function<void(const std::string&)> say);

  void Run(ZmqSocket requests, ZmqSocket events);
  // False: the context has ended.
  bool AnswerRequest(void* requests);
  bool TakeEvent(void* events);
  std::string WhyFailed(int32_t protocol_error) const;
  // Why whoever shows these credentials is not let in; empty: it is.
  std::string Judge(const std::string& mechanism,
                    const std::vector<std::string>& credentials) const;

  const JobKeys keys_;
  const std::string public_key_;  // of CURVE, as bytes
  Refusals refusals_;
  // Of connections that are there, by their descriptor; the handler's thread's.
  std::map<int, std::string> addresses_;
  ConnectionWatch watch_;  // the handler's thread's
  std::string failure_;    // of the handshake of the connection that ends next; empty: none
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_ZAP_HANDLER_H_
