// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_LARGEST_PAYLOAD_H_
#define TUG_CONFIG_LARGEST_PAYLOAD_H_

#include <cstdint>

namespace tug {

class CommConfig;

// Largest partition that the tuner chooses: a server's limit for pending sums (kServerParkingBytes
// of server/shard/shard_options.h), since sums of a larger one would wait until all earlier ones
// are complete.
inline constexpr uint64_t kMaxTunedPartitionBytes = uint64_t{32} << 20;

// Upper bound of the payloads of a job's messages; all fields of `comm` must be filled. Endpoints
// refuse larger announcements, so that no peer can make them allocate more. At most
// kMaxPayloadBytes.
uint64_t LargestPayload(const CommConfig& comm);

}  // namespace tug

#endif  // TUG_CONFIG_LARGEST_PAYLOAD_H_
