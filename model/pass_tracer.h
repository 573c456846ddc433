// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_PASS_TRACER_H_
#define TUG_MODEL_PASS_TRACER_H_

#include "base/trace.h"

namespace tug {

// Records when the device executes the passes of a model that queues its passes (Model::queues).
// Used on the model's thread.
class PassTracer {
 public:
  virtual ~PassTracer() = default;

  // Adds the model's next Forward or Backward to `track`: `about`, with the time of its execution
  // on the device by the track's clock. Awaiting a gradient adds all passes up to that block's.
  // REQUIRES: `track` lives until then, or until Model::Synchronize.
  virtual void TraceNextPass(TraceTrack& track, const TraceEvent& about) = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_TRACER_H_
