// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_ADMISSION_H_
#define TUG_TRANSPORT_ADMISSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "proto/wire.h"
#include "transport/transport.h"

namespace tug {

// Reason to drop a message. docs/wire_format.md has the table.
enum class Fault {
  kFrames,           // not headers + payloads, or too many
  kIdentity,         // ZeroMQ routing id is not one of ours
  kVersion,          // another wire format version
  kHeader,           // any other fault that DecodeHeader finds
  kSender,           // header.sender is not the peer the message came from
  kPayloadSize,      // not header.payload_bytes, or above the limit
  kPayloadChecksum,  // not header.payload_xxh3
  kCount,
};

// Check that every transport applies to received messages: counts drops and logs the first of each
// kind. Not thread-safe.
class Admission {
 public:
  // `self` is only for the log.
  Admission(PeerId self, uint64_t max_payload_bytes)
      : self_(self), max_payload_bytes_(max_payload_bytes) {}

  // Checks a complete message from `from`. Returns its header, or nothing if the message must be
  // dropped.
  std::optional<WireHeader> Admit(PeerId from, std::span<const std::byte> header,
                                  std::span<const std::byte> payload);

  // The two halves of Admit, for transports that need the header to find the end of the payload.
  std::optional<WireHeader> AdmitHeader(PeerId from, std::span<const std::byte> header);
  bool AdmitPayload(const WireHeader& header, std::span<const std::byte> payload);

  // Counts a message that is dropped before its header is read. `from` is only for the log.
  void Drop(Fault fault, absl::string_view from, absl::string_view why);

  uint64_t dropped() const;
  uint64_t dropped(Fault fault) const { return dropped_[static_cast<size_t>(fault)]; }

 private:
  const PeerId self_;
  const uint64_t max_payload_bytes_;
  std::array<uint64_t, static_cast<size_t>(Fault::kCount)> dropped_{};
};

// Fills in sender, payload_bytes and payload_xxh3 (0 without `checksum` or for an empty payload)
// and encodes the header.
void SealHeader(PeerId self, std::span<const std::byte> payload, bool checksum, WireHeader header,
                std::span<std::byte, kHeaderBytes> out);

}  // namespace tug

#endif  // TUG_TRANSPORT_ADMISSION_H_
