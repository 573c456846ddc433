#ifndef TUG_EXCHANGE_PUSH_TRACE_H_
#define TUG_EXCHANGE_PUSH_TRACE_H_

#include <cstdint>

#include "base/trace.h"
#include "exchange/uncommitted_pushes.h"

namespace tug {

// What traces say of a partition of a push. `track` null: the job is not traced.
TraceEvent PushEventOf(TraceKind kind, const OpenPush& push, uint32_t partition);
// It comes into the queue; leaves it; is answered.
void TraceQueued(const TraceTrack* track, PartitionPush& part);
void TraceSending(TraceTrack* track, OpenPush& push, uint32_t partition);
void TraceAnswer(TraceTrack* track, const OpenPush& push, uint32_t partition);

}  // namespace tug

#endif  // TUG_EXCHANGE_PUSH_TRACE_H_
