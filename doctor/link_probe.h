// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DOCTOR_LINK_PROBE_H_
#define TUG_DOCTOR_LINK_PROBE_H_

// Measures one TCP connection between two hosts from one end, while the other end replies:
//
//   1. Round trips of a byte there and a time back, at most 200, for at most half of `each`: their
//      median is the latency, the fastest gives the clock offset (base/clock_offset.h).
//   2. A stream there of length `each`, counted where it arrives, from its first byte to its end.
//   3. The same stream back.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "limits/raw_socket.h"

namespace tug {

struct LinkReport {
  double round_trip_us = 0;           // median
  double there_bytes_per_second = 0;  // from the asker to the answerer
  double back_bytes_per_second = 0;
  int64_t clock_ahead_ns = 0;  // the answerer's wall clock relative to the asker's
  int64_t clock_error_ns = 0;  // upper bound
};

// One end runs AnswerLink, for the next connection of `listener`, the other one AskLink. Neither
// waits for the other longer than `patience` in addition to the measurement. Errors: UNAVAILABLE
// (no connection), DEADLINE_EXCEEDED, INTERNAL.
absl::Status AnswerLink(const ListeningSocket& listener, absl::Duration patience);
absl::StatusOr<LinkReport> AskLink(const std::string& address, uint16_t port, absl::Duration each,
                                   absl::Duration patience);

}  // namespace tug

#endif  // TUG_DOCTOR_LINK_PROBE_H_
