// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/strangers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/control_credentials.h"
#include "grpcpp/server_context.h"

namespace tug {
namespace {

// TCP_CLOSE of netinet/tcp.h, which cannot be included with linux/tcp.h.
constexpr uint8_t kClosed = 7;

tcp_info InfoOf(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) info.tcpi_state = kClosed;
  return info;
}

}  // namespace

// All members of a starting job are strangers for a moment.
Strangers::Strangers(size_t members) : room_(AffordableGuests(std::max(kMost, 2 * members))) {}

void Strangers::Remove(int socket) {
  const auto found = connections_.find(socket);
  by_name_.erase(found->second.name);
  connections_.erase(found);
  room_.Leave(socket);
}

void Strangers::HangUpOn(int socket) {
  shutdown(socket, SHUT_RDWR);  // gRPC notices the end and closes its descriptor
  Remove(socket);
}

void Strangers::Add(const std::string& address, int port, FileDescriptor socket, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const int descriptor = socket.get();
  const std::string name = ConnectionName(address, port);
  // The port is in use again, so the earlier connection has ended. Or it was to another address of
  // this host, and the two cannot be distinguished.
  if (const auto before = by_name_.find(name); before != by_name_.end()) HangUpOn(before->second);
  by_name_[name] = descriptor;
  connections_[descriptor] = {std::move(socket), name, now + kPatience};
  room_.Enter({.socket = descriptor, .address = address});
  if (room_.overfull()) HangUpOn(room_.FirstToGo().socket);
}

void Strangers::Admit(const std::string& connection) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_name_.find(connection);
  if (found != by_name_.end()) Remove(found->second);
}

void Strangers::RemoveEnded() {
  std::vector<int> ended;
  for (const auto& [socket, connection] : connections_) {
    if (InfoOf(socket).tcpi_state == kClosed) ended.push_back(socket);
  }
  for (const int socket : ended) Remove(socket);
}

bool Strangers::HangUpOnGreediest() {
  uint64_t all = 0, most = 0;
  int greediest = -1;
  for (const auto& [socket, connection] : connections_) {
    const uint64_t bytes = InfoOf(socket).tcpi_bytes_received;
    all += bytes;
    if (bytes <= most) continue;
    most = bytes;
    greediest = socket;
  }
  if (all <= kByteLimit) return false;
  HangUpOn(greediest);
  return true;
}

absl::Time Strangers::HangUp(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  RemoveEnded();
  while (HangUpOnGreediest()) continue;
  while (!connections_.empty()) {
    const int first = room_.guests().front().socket;
    const absl::Time deadline = connections_.at(first).deadline;
    if (deadline > now) return std::min(deadline, now + kInterval);
    HangUpOn(first);
  }
  return absl::InfiniteFuture();
}

// Without the scope of a link-local address, which gRPC formats differently.
std::string ConnectionName(const std::string& numeric_address, int port) {
  return absl::StrCat(numeric_address.substr(0, numeric_address.find('%')), " ", port);
}

std::string ConnectionName(const grpc::ServerContextBase& context) {
  const std::string uri = context.peer();  // "ipv4:10.0.0.3:4711"
  const size_t colon = uri.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(uri.c_str() + colon + 1);
  return ConnectionName(AddressOfPeer(context), port);
}

}  // namespace tug
