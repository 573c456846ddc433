// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_RAW_CONNECTION_TEST_SUPPORT_H_
#define TUG_TRANSPORT_RAW_CONNECTION_TEST_SUPPORT_H_

// TCP connections below ZeroMQ, and the ZMTP bytes to send over them.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tug {

using Frame = std::vector<std::byte>;

inline Frame FrameOf(std::span<const std::byte> bytes) { return Frame(bytes.begin(), bytes.end()); }
inline Frame Text(const std::string& text) { return FrameOf(std::as_bytes(std::span(text))); }

class RawConnection {
 public:
  explicit RawConnection(uint16_t port, in_addr_t from = INADDR_LOOPBACK)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection() { close(fd_); }

  bool connected() const { return connected_; }
  // Ignores errors: the other side may already have closed the connection.
  void Write(const Frame& bytes) { (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Whether the other side has closed the connection. Discards the received bytes.
  bool HasEnded() {
    char said[256];
    ssize_t size;
    while ((size = recv(fd_, said, sizeof(said), MSG_DONTWAIT)) > 0) {
    }
    return size == 0 || errno != EAGAIN;
  }

 private:
  const int fd_;
  bool connected_ = false;
};

inline uint16_t PortOf(const std::string& endpoint) {
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

// First 64 bytes from a ZMTP 3.0 peer.
inline Frame ZmtpGreeting(const std::string& mechanism_name = "NULL") {
  Frame bytes(64, std::byte{0});
  bytes[0] = std::byte{0xFF};
  bytes[9] = std::byte{0x7F};
  bytes[10] = std::byte{3};
  const Frame mechanism = Text(mechanism_name);
  std::copy(mechanism.begin(), mechanism.end(), bytes.begin() + 12);
  return bytes;
}

inline Frame operator+(Frame a, const Frame& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Head of a frame that announces `size` bytes.
inline Frame ZmtpLongFrame(uint64_t size, bool command = false) {
  Frame bytes{command ? std::byte{6} : std::byte{2}};
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::byte>(size >> shift));
  return bytes;
}

}  // namespace tug

#endif  // TUG_TRANSPORT_RAW_CONNECTION_TEST_SUPPORT_H_
