#ifndef TUG_PROTO_LARGEST_PAYLOAD_H_
#define TUG_PROTO_LARGEST_PAYLOAD_H_

#include <cstdint>

namespace tug {

class CommConfig;

// The largest partition that the tuner chooses: as much as a server parks (kServerParkingBytes of
// server/shard.h), since sums of a larger one would wait until everything before them is in.
inline constexpr uint64_t kMaxTunedPartitionBytes = uint64_t{32} << 20;

// No message of a job whose fields are all filled has a longer payload. Endpoints refuse what is
// announced longer, so that nobody makes them take memory for it. At most kMaxPayloadBytes.
uint64_t LargestPayload(const CommConfig& comm);

}  // namespace tug

#endif  // TUG_PROTO_LARGEST_PAYLOAD_H_
