#ifndef TUG_MODEL_PASS_TRACER_H_
#define TUG_MODEL_PASS_TRACER_H_

#include "base/trace.h"

namespace tug {

// What of a model that queues (Model::queues) says when the device was at a pass. For the model's
// thread.
class PassTracer {
 public:
  virtual ~PassTracer() = default;

  // The model's next Forward or Backward goes to `track` as `about` says, with the time that the
  // device was at it, by the clock of the track: when a gradient has been awaited, all passes up to
  // that block's are there. REQUIRES: `track` lives until then, or until Model::Synchronize.
  virtual void TraceNextPass(TraceTrack& track, const TraceEvent& about) = 0;
};

}  // namespace tug

#endif  // TUG_MODEL_PASS_TRACER_H_
