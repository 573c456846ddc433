#ifndef TUG_CLI_LINK_PROBE_H_
#define TUG_CLI_LINK_PROBE_H_

// What one TCP connection between two hosts does, measured from one end while the other answers:
//
//   1. Round trips of a byte there and a time back, as many as fit: their median is the latency,
//      the fastest tells how far the clocks are apart (base/clock_offset.h).
//   2. A stream there for `each`, counted where it arrives, from its first byte to its end.
//   3. A stream back, the same.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/raw_socket.h"

namespace tug {

struct LinkReport {
  double round_trip_us = 0;           // median
  double there_bytes_per_second = 0;  // from the asker to the answerer
  double back_bytes_per_second = 0;
  int64_t clock_ahead_ns = 0;  // the answerer's wall clock, of the asker's
  int64_t clock_error_ns = 0;  // at most
};

// One of both ends is AnswerLink, with the next connection of `listener`, the other one AskLink.
// Neither waits for the other longer than `patience` beside what it is asked to measure. Errors:
// UNAVAILABLE (no connection), DEADLINE_EXCEEDED, INTERNAL.
absl::Status AnswerLink(const ListeningSocket& listener, absl::Duration patience);
absl::StatusOr<LinkReport> AskLink(const std::string& address, uint16_t port, absl::Duration each,
                                   absl::Duration patience);

}  // namespace tug

#endif  // TUG_CLI_LINK_PROBE_H_
