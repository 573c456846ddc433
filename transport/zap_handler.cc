// SPDX-License-Identifier: Apache-2.0
#include "transport/zap_handler.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/net/host_name.h"
#include "base/net/same_secret.h"
#include "base/status_macros.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr char kZapEndpoint[] = "inproc://zeromq.zap.01";
constexpr char kMonitorEndpoint[] = "inproc://tug.events";
constexpr char kDomain[] = "tug";
constexpr char kUser[] = "tug";
constexpr size_t kCurveKeyBytes = 32;
// Fixed frames of a ZAP request: version, number, domain, address, routing id, mechanism;
// credentials follow.
constexpr size_t kRequestFrames = 6;
constexpr int kEvents = ZMQ_EVENT_LISTENING | ZMQ_EVENT_ACCEPTED |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
// Limit of remembered addresses; a job has fewer concurrent connections.
constexpr size_t kMaxAddresses = 65536;
constexpr long kLookMs = 100;  // interval of checks of connections that have not yet shown keys

void SetNumber(void* socket, int option, int value) {
  TUG_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0) << "option " << option;
}

void SetText(void* socket, int option, const std::string& value) {
  TUG_CHECK(zmq_setsockopt(socket, option, value.data(), value.size()) == 0) << "option " << option;
}

// Returns all frames of a message; none once the context has ended.
std::vector<std::string> ReadFrames(void* socket) {
  std::vector<std::string> frames;
  for (bool more = true; more;) {
    ZmqFrame frame;
    while (zmq_msg_recv(frame.get(), socket, 0) < 0) {
      if (zmq_errno() != EINTR) return {};
    }
    frames.emplace_back(reinterpret_cast<const char*>(frame.bytes().data()), frame.bytes().size());
    more = frame.more();
  }
  return frames;
}

bool SendText(void* socket, const std::string& text, int flags) {
  while (zmq_send(socket, text.data(), text.size(), flags) < 0) {
    if (zmq_errno() != EINTR) return false;
  }
  return true;
}

std::string AddressOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) size = 0;
  return NumericAddress(address, size);
}

// 0 if it is not a socket of a port.
uint16_t LocalPortOf(int socket) {
  sockaddr_in address{};  // an IPv6 address has its port in the same place
  socklen_t size = sizeof(address);
  const bool known = getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return known && (address.sin_family == AF_INET || address.sin_family == AF_INET6)
             ? ntohs(address.sin_port)
             : 0;
}

absl::Status NoSocket() {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot open a socket: ", zmq_strerror(zmq_errno()),
                   "; raise the limit of open files (ulimit -n)"));
}

std::string CurveBytes(const std::string& text) {
  uint8_t bytes[kCurveKeyBytes];
  if (text.empty() || zmq_z85_decode(bytes, text.c_str()) == nullptr) return "";
  return std::string(reinterpret_cast<char*>(bytes), sizeof(bytes));
}

}  // namespace

void SetClientKeys(void* socket, const JobKeys& keys) {
  if (keys.mode == SecurityConfig::TOKEN) {
    SetText(socket, ZMQ_PLAIN_USERNAME, kUser);
    SetText(socket, ZMQ_PLAIN_PASSWORD, keys.token);
  } else if (keys.mode == SecurityConfig::CURVE) {
    SetText(socket, ZMQ_CURVE_SERVERKEY, keys.curve.public_key);
    SetText(socket, ZMQ_CURVE_PUBLICKEY, keys.curve.public_key);
    SetText(socket, ZMQ_CURVE_SECRETKEY, keys.curve.secret_key);
  }
}

void SetServerKeys(void* socket, const JobKeys& keys) {
  if (keys.none()) return;
  SetText(socket, ZMQ_ZAP_DOMAIN, kDomain);
  if (keys.mode == SecurityConfig::TOKEN) {
    SetNumber(socket, ZMQ_PLAIN_SERVER, 1);
  } else {
    SetNumber(socket, ZMQ_CURVE_SERVER, 1);
    SetText(socket, ZMQ_CURVE_SECRETKEY, keys.curve.secret_key);
  }
}

absl::StatusOr<std::unique_ptr<ZapHandler>> ZapHandler::Create(
    void* context, void* listener, const JobKeys& keys, size_t max_waiting,
    std::function<void(const std::string&)> say) {
  ASSIGN_OR_RETURN(ConnectionWatch watch, ConnectionWatch::Create(max_waiting));
  ZmqSocket requests(zmq_socket(context, ZMQ_REP));
  ZmqSocket events(zmq_socket(context, ZMQ_PAIR));
  if (requests == nullptr || events == nullptr) return NoSocket();
  SetNumber(requests.get(), ZMQ_LINGER, 0);
  SetNumber(events.get(), ZMQ_LINGER, 0);
  TUG_CHECK(zmq_bind(requests.get(), kZapEndpoint) == 0) << zmq_strerror(zmq_errno());
  if (zmq_socket_monitor(listener, kMonitorEndpoint, kEvents) != 0) return NoSocket();
  TUG_CHECK(zmq_connect(events.get(), kMonitorEndpoint) == 0) << zmq_strerror(zmq_errno());
  return std::unique_ptr<ZapHandler>(new ZapHandler(std::move(requests), std::move(events), keys,
                                                    std::move(watch), std::move(say)));
}

ZapHandler::ZapHandler(ZmqSocket requests, ZmqSocket events, const JobKeys& keys,
                       ConnectionWatch watch, std::function<void(const std::string&)> say)
    : keys_(keys),
      public_key_(CurveBytes(keys.curve.public_key)),
      refusals_(std::move(say)),
      watch_(std::move(watch)),
      thread_([this, requests = std::move(requests), events = std::move(events)]() mutable {
        Run(std::move(requests), std::move(events));
      }) {}

ZapHandler::~ZapHandler() { thread_.join(); }

void ZapHandler::Run(ZmqSocket requests, ZmqSocket events) {
  const RealTime time;
  absl::Time next_look = time.Now();
  while (true) {
    zmq_pollitem_t items[] = {{requests.get(), 0, ZMQ_POLLIN, 0}, {events.get(), 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, watch_.empty() ? -1 : kLookMs) < 0) {
      if (zmq_errno() == EINTR) continue;
      return;  // the context has ended
    }
    if (const absl::Time now = time.Now(); now >= next_look) {
      watch_.LookAtAll();
      next_look = now + absl::Milliseconds(kLookMs);
    }
    if ((items[0].revents & ZMQ_POLLIN) != 0 && !AnswerRequest(requests.get())) return;
    if ((items[1].revents & ZMQ_POLLIN) != 0 && !ProcessEvent(events.get())) return;
  }
}

bool ZapHandler::AnswerRequest(void* requests) {
  const std::vector<std::string> frames = ReadFrames(requests);
  if (frames.empty()) return false;
  std::string why = "its authentication request is malformed";
  if (frames.size() >= kRequestFrames && frames[0] == "1.0" && frames[2] == kDomain) {
    why = Judge(frames[5], {frames.begin() + kRequestFrames, frames.end()});
  }
  if (!why.empty()) refusals_.Add(frames.size() > 3 ? frames[3] : "an unknown address", why);
  const bool in = why.empty();
  return SendText(requests, "1.0", ZMQ_SNDMORE) &&
         SendText(requests, frames.size() > 1 ? frames[1] : "", ZMQ_SNDMORE) &&
         SendText(requests, in ? "200" : "400", ZMQ_SNDMORE) &&
         SendText(requests, in ? "OK" : "other keys", ZMQ_SNDMORE) &&
         SendText(requests, in ? kUser : "", ZMQ_SNDMORE) && SendText(requests, "", 0);
}

std::string ZapHandler::Judge(const std::string& mechanism,
                              const std::vector<std::string>& credentials) const {
  if (keys_.mode == SecurityConfig::TOKEN && mechanism == "PLAIN" && credentials.size() == 2) {
    const bool same = SameSecret(credentials[1], keys_.token);
    return same ? "" : "its token is not this job's";
  }
  if (keys_.mode == SecurityConfig::CURVE && mechanism == "CURVE" && credentials.size() == 1) {
    const bool same = !public_key_.empty() && SameSecret(credentials[0], public_key_);
    return same ? "" : "its CURVE key is not this job's";
  }
  return "it presented no keys of this job";
}

// Layout of an event: number (16 bits) and value (32 bits), then an endpoint. One I/O thread
// reports one connection after another: the failed handshake, then the closed connection.
bool ZapHandler::ProcessEvent(void* events) {
  const std::vector<std::string> frames = ReadFrames(events);
  if (frames.empty()) return false;
  uint16_t event = 0;
  int32_t value = 0;
  if (frames[0].size() != sizeof(event) + sizeof(value)) return true;
  std::memcpy(&event, frames[0].data(), sizeof(event));
  std::memcpy(&value, frames[0].data() + sizeof(event), sizeof(value));
  if (event == ZMQ_EVENT_LISTENING) {
    port_ = LocalPortOf(value);
  } else if (event == ZMQ_EVENT_ACCEPTED) {
    // If the connection has ended, the descriptor may belong to any other one of this process.
    if (LocalPortOf(value) != port_) return true;
    const std::string address = AddressOf(value);
    if (addresses_.size() < kMaxAddresses) addresses_[value] = address;
    watch_.OnAccepted(value, address);
  } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
             event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
    failure_ = WhyFailed(event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ? value : 0);
  } else if (event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_CLOSED) {
    watch_.OnEnded(value);
    const auto known = addresses_.extract(value);
    const std::string why = std::exchange(failure_, "");
    if (!why.empty()) refusals_.Add(known.empty() ? "an unknown address" : known.mapped(), why);
  }
  return true;
}

std::string ZapHandler::WhyFailed(int32_t protocol_error) const {
  switch (protocol_error) {
    case ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
      return absl::StrCat("it has no keys of mode ", ModeName(keys_.mode));
    case ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC:
    case ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE:
      return "its CURVE key is not this job's";
    default:
      return "it does not use the transport protocol of this job";
  }
}

}  // namespace tug
