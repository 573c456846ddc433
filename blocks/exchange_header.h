// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_EXCHANGE_HEADER_H_
#define TUG_BLOCKS_EXCHANGE_HEADER_H_

#include "absl/time/time.h"
#include "blocks/partitioner.h"
#include "blocks/requests.h"
#include "proto/wire.h"

namespace tug {

// Current time, for measuring durations: the `now` of a call may be older than the events it
// measures. Returns `now` if the options have no TimeSource.
inline absl::Time NowOf(const ExchangeOptions& options, absl::Time now) {
  return options.time == nullptr ? now : options.time->Now();
}

// Header fields common to all messages of an exchange about a partition.
inline WireHeader HeaderOf(const ExchangeOptions& options, MessageKind kind,
                           const Partition& partition) {
  WireHeader header;
  header.kind = kind;
  header.job = options.job;
  header.timeline = options.timeline;
  header.view = options.view;
  header.block = partition.block;
  header.first_segment = partition.first_segment;
  header.segment_count = partition.segment_count;
  return header;
}

}  // namespace tug

#endif  // TUG_BLOCKS_EXCHANGE_HEADER_H_
