// SPDX-License-Identifier: Apache-2.0
#include "model/backend/cuda_op_profile.h"

#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"

namespace tug {

using kernels::cuda::Event;
using kernels::cuda::EventUse;

void CudaOpProfile::End(Op op, const OpWork& work) {
  Mark();
  operations_.push_back({op, work});
}

void CudaOpProfile::Mark() {
  if (status_.ok()) status_ = MarkNext();
}

absl::Status CudaOpProfile::MarkNext() {
  if (marks_ == events_.size()) {
    ASSIGN_OR_RETURN(Event event, Event::Create(EventUse::kTime));
    events_.push_back(std::move(event));
  }
  return events_[marks_++].Record(stream_);
}

absl::Status CudaOpProfile::Collect() {
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(stream_.Synchronize());
  for (size_t i = 0; i < operations_.size(); ++i) {
    ASSIGN_OR_RETURN(const absl::Duration time,
                     kernels::cuda::TimeBetween(events_[2 * i], events_[2 * i + 1]));
    Add(operations_[i].op, absl::ToChronoNanoseconds(time), operations_[i].work);
  }
  operations_.clear();
  marks_ = 0;
  return absl::OkStatus();
}

}  // namespace tug
