#ifndef TUG_SERVER_PUSH_PAYLOAD_H_
#define TUG_SERVER_PUSH_PAYLOAD_H_

#include <cstdint>
#include <optional>

#include "transport/transport.h"

namespace tug {

// A push of runs (Codec::kRuns) as the push of all `elements` that it stands for, zeros between its
// runs, in memory of our own. None if its sender has changed it since it was looked at: it may lie
// in the sender's memory.
std::optional<Message> DensePush(const Message& message, uint64_t elements);

}  // namespace tug

#endif  // TUG_SERVER_PUSH_PAYLOAD_H_
