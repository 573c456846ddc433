#ifndef TUG_EXCHANGE_EXCHANGE_HEADER_H_
#define TUG_EXCHANGE_EXCHANGE_HEADER_H_

#include "absl/time/time.h"
#include "exchange/requests.h"
#include "proto/wire.h"
#include "scheduler/partitioner.h"

namespace tug {

// For how long something took: `now` of a call may be older than what is told by it.
inline absl::Time NowOf(const ExchangeOptions& options, absl::Time now) {
  return options.time == nullptr ? now : options.time->Now();
}

// What all messages of an exchange about a partition have in common.
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

#endif  // TUG_EXCHANGE_EXCHANGE_HEADER_H_
