// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_CORE_STEP_TIMES_H_
#define TUG_WORKER_CORE_STEP_TIMES_H_

#include <cstdint>

#include "absl/time/time.h"
#include "base/trace.h"
#include "exchange/client.h"
#include "proto/control.pb.h"

namespace tug {

// Time and traffic of the step in progress. Owned by the compute thread.
class StepTimes {
 public:
  // REQUIRES: `exchange` and `trace`, which may be null, outlive it.
  StepTimes(const ExchangeClient& exchange, TraceTrack* trace)
      : exchange_(exchange), trace_(trace) {}

  // Begins a step; earlier time does not count.
  void Begin();
  // Time the compute thread waited for weights, ran a forward or backward pass, and slept as a
  // straggler.
  void AddWaiting(absl::Duration time) { waiting_ += time; }
  void AddComputing(absl::Duration time) { computing_ += time; }
  void AddStraggling(absl::Duration time) { straggling_ += time; }

  // Ends the step at `clock` and begins the next. Returns the fields common to the reports of all
  // its virtual workers.
  StepReport End(uint64_t clock);

 private:
  void BeginAt(const ExchangeClient::OpenTimeReading& begin);

  const ExchangeClient& exchange_;
  TraceTrack* const trace_;
  ExchangeClient::OpenTimeReading begin_;
  int64_t begin_ns_ = 0;  // begin_ on the trace's clock
  absl::Duration waiting_;
  absl::Duration computing_;
  absl::Duration straggling_;
  ExchangeCounters traffic_;  // at the last report
};

}  // namespace tug

#endif  // TUG_WORKER_CORE_STEP_TIMES_H_
