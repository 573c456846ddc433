// SPDX-License-Identifier: Apache-2.0
#include "doctor/link_probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock_offset.h"
#include "base/median.h"
#include "base/status_macros.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kMaxRoundTrips = 200;
constexpr absl::Duration kLongestStream = absl::Seconds(10);  // limit for a peer's request
constexpr char kEcho = 'e';
constexpr char kStream = 's';  // followed by the length of a stream back in ns

struct Counted {
  uint64_t bytes = 0;
  uint64_t ns = 0;  // since the first byte

  double bytes_per_second() const {
    return ns == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(ns);
  }
};

// Sets the timeout of reads and writes.
void SetPatience(int fd, absl::Duration patience) {
  const timeval time = absl::ToTimeval(patience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
  // A larger buffer could take a slow link longer to send than the other side waits.
  const int buffer = 256 << 10;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
}

template <typename Value>
std::span<char> BytesOf(Value& value) {
  return {reinterpret_cast<char*>(&value), sizeof(value)};
}

absl::Status StreamFor(int fd, absl::Duration time) {
  const std::vector<char> chunk(kChunkBytes, 1);
  const absl::Time end = SteadyNow() + time;
  while (SteadyNow() < end) RETURN_IF_ERROR(SendAll(fd, chunk));
  shutdown(fd, SHUT_WR);
  return absl::OkStatus();
}

// Counts until the peer ends its stream.
absl::StatusOr<Counted> Count(int fd) {
  std::vector<char> chunk(kChunkBytes);
  Counted counted;
  int64_t first_ns = 0;
  while (true) {
    const ssize_t n = recv(fd, chunk.data(), chunk.size(), 0);
    if (n < 0) return absl::InternalError(absl::StrCat("the stream failed: ", strerror(errno)));
    const int64_t now = absl::GetCurrentTimeNanos();
    if (counted.bytes == 0) first_ns = now;
    if (n == 0) return counted;
    counted.bytes += static_cast<uint64_t>(n);
    counted.ns = static_cast<uint64_t>(now - first_ns);
  }
}

absl::Status AskRoundTrips(int fd, absl::Duration most, LinkReport& report) {
  ClockOffset clock;
  std::vector<double> times;
  const absl::Time end = SteadyNow() + most;
  while (times.empty() || (times.size() < kMaxRoundTrips && SteadyNow() < end)) {
    char ask = kEcho;
    int64_t answered = 0;
    const int64_t sent = absl::GetCurrentTimeNanos();
    RETURN_IF_ERROR(SendAll(fd, BytesOf(ask)));
    RETURN_IF_ERROR(ReceiveAll(fd, BytesOf(answered)));
    const int64_t received = absl::GetCurrentTimeNanos();
    clock.Add(sent, answered, received);
    times.push_back(static_cast<double>(received - sent) * 1e-3);
  }
  report.round_trip_us = Median(times);
  if (const auto estimate = clock.At(absl::GetCurrentTimeNanos())) {
    report.clock_ahead_ns = estimate->offset_ns;
    report.clock_error_ns = estimate->error_ns;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerLink(const ListeningSocket& listener, absl::Duration patience) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, Accept(listener, patience));
  SetPatience(fd.get(), patience);
  char asked = 0;
  while (true) {
    RETURN_IF_ERROR(ReceiveAll(fd.get(), BytesOf(asked)));
    if (asked != kEcho) break;
    int64_t now = absl::GetCurrentTimeNanos();
    RETURN_IF_ERROR(SendAll(fd.get(), BytesOf(now)));
  }
  int64_t back_ns = 0;
  RETURN_IF_ERROR(ReceiveAll(fd.get(), BytesOf(back_ns)));
  ASSIGN_OR_RETURN(Counted counted, Count(fd.get()));
  RETURN_IF_ERROR(SendAll(fd.get(), BytesOf(counted)));
  return StreamFor(fd.get(),
                   std::clamp(absl::Nanoseconds(back_ns), absl::ZeroDuration(), kLongestStream));
}

absl::StatusOr<LinkReport> AskLink(const std::string& address, uint16_t port, absl::Duration each,
                                   absl::Duration patience) {
  ASSIGN_OR_RETURN(const FileDescriptor fd, Connect(address, port, patience));
  SetPatience(fd.get(), patience);
  LinkReport report;
  RETURN_IF_ERROR(AskRoundTrips(fd.get(), each / 2, report));
  char ask = kStream;
  auto back_ns = absl::ToInt64Nanoseconds(each);
  RETURN_IF_ERROR(SendAll(fd.get(), BytesOf(ask)));
  RETURN_IF_ERROR(SendAll(fd.get(), BytesOf(back_ns)));
  RETURN_IF_ERROR(StreamFor(fd.get(), each));
  Counted there;
  RETURN_IF_ERROR(ReceiveAll(fd.get(), BytesOf(there)));
  ASSIGN_OR_RETURN(const Counted back, Count(fd.get()));
  report.there_bytes_per_second = there.bytes_per_second();
  report.back_bytes_per_second = back.bytes_per_second();
  return report;
}

}  // namespace tug
