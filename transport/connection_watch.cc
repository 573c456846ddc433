// SPDX-License-Identifier: Apache-2.0
#include "transport/connection_watch.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

// Identifies the connection for as long as the host runs; nothing if it is not a socket.
std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

}  // namespace

absl::StatusOr<ConnectionWatch> ConnectionWatch::Create(size_t max_waiting) {
  FileDescriptor nothing(eventfd(0, EFD_CLOEXEC));
  FileDescriptor hand(eventfd(0, EFD_CLOEXEC));
  if (!nothing.valid() || !hand.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch connections: ", std::strerror(errno),
                     "; raise the limit of open files (ulimit -n)"));
  }
  return ConnectionWatch(AffordableGuests(max_waiting), std::move(nothing), std::move(hand));
}

void ConnectionWatch::OnAccepted(int socket, const std::string& address) {
  const std::optional<uint64_t> cookie = CookieOf(socket);
  if (!cookie.has_value()) return;  // the connection has ended
  room_.Enter({socket, *cookie, address});
  while (room_.overfull()) {
    const WaitingRoom::Guest& guest = room_.FirstToGo();
    const Verdict verdict = VerdictOf(guest);
    const bool is_stranger = verdict == Verdict::kWaits || verdict == Verdict::kSendsTooMuch;
    if (is_stranger) shutdown(hand_.get(), SHUT_RDWR);
    Release();
    room_.Leave(guest.socket);
  }
}

void ConnectionWatch::LookAtAll() {
  for (auto guest = room_.guests().begin(); guest != room_.guests().end();) {
    const auto next = std::next(guest);
    const Verdict verdict = VerdictOf(*guest);
    if (verdict == Verdict::kSendsTooMuch) shutdown(hand_.get(), SHUT_RDWR);
    Release();
    if (verdict != Verdict::kWaits) room_.Leave(guest->socket);
    guest = next;
  }
}

ConnectionWatch::Verdict ConnectionWatch::VerdictOf(const WaitingRoom::Guest& guest) {
  const bool held = dup3(guest.socket, hand_.get(), O_CLOEXEC) >= 0;
  if (!held || CookieOf(hand_.get()) != guest.cookie) return Verdict::kHasGone;
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(hand_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Verdict::kHasGone;
  if (info.tcpi_bytes_acked > kMaxBytesToStrangers) return Verdict::kIsIn;
  return info.tcpi_bytes_received > kMaxBytesFromStrangers ? Verdict::kSendsTooMuch
                                                           : Verdict::kWaits;
}

void ConnectionWatch::Release() { dup3(nothing_.get(), hand_.get(), O_CLOEXEC); }

}  // namespace tug
