// SPDX-License-Identifier: Apache-2.0
#include "transport/admission.h"

#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace tug {

std::optional<WireHeader> Admission::Admit(PeerId from, std::span<const std::byte> header,
                                           std::span<const std::byte> payload) {
  std::optional<WireHeader> admitted = AdmitHeader(from, header);
  if (admitted.has_value() && !AdmitPayload(*admitted, payload)) return std::nullopt;
  return admitted;
}

std::optional<WireHeader> Admission::AdmitHeader(PeerId from, std::span<const std::byte> header) {
  const absl::StatusOr<WireHeader> decoded = DecodeHeader(header);
  if (!decoded.ok()) {
    const bool version = decoded.status().code() == absl::StatusCode::kFailedPrecondition;
    Drop(version ? Fault::kVersion : Fault::kHeader, PeerName(from), decoded.status().message());
    return std::nullopt;
  }
  if (decoded->sender != from) {
    Drop(Fault::kSender, PeerName(from),
         absl::StrCat("the header names another sender: ", PeerName(decoded->sender)));
    return std::nullopt;
  }
  return *decoded;
}

bool Admission::AdmitPayload(const WireHeader& header, std::span<const std::byte> payload) {
  if (payload.size() != header.payload_bytes || payload.size() > max_payload_bytes_) {
    Drop(Fault::kPayloadSize, PeerName(header.sender),
         absl::StrCat("the payload has ", payload.size(), " bytes; the header states ",
                      header.payload_bytes, ", and the limit is ", max_payload_bytes_));
    return false;
  }
  if (header.payload_xxh3 != 0 && header.payload_xxh3 != PayloadChecksum(payload)) {
    Drop(Fault::kPayloadChecksum, PeerName(header.sender), "payload checksum is wrong");
    return false;
  }
  return true;
}

void Admission::Drop(Fault fault, absl::string_view from, absl::string_view why) {
  if (++dropped_[static_cast<size_t>(fault)] > 1) return;
  LogWarning(
      "dropped a message (later ones are counted, not logged)",
      {{"endpoint", PeerName(self_)}, {"from", std::string(from)}, {"why", std::string(why)}});
}

uint64_t Admission::dropped() const {
  return std::accumulate(dropped_.begin(), dropped_.end(), uint64_t{0});
}

void SealHeader(PeerId self, std::span<const std::byte> payload, bool checksum, WireHeader header,
                std::span<std::byte, kHeaderBytes> out) {
  header.sender = self;
  header.payload_bytes = payload.size();
  header.payload_xxh3 = checksum && !payload.empty() ? PayloadChecksum(payload) : 0;
  EncodeHeader(header, out);
}

}  // namespace tug
