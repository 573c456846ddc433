#include "transport/admission.h"

#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace tug {

std::optional<WireHeader> Admission::Admit(PeerId from, std::span<const std::byte> header,
                                           std::span<const std::byte> payload) {
  const absl::StatusOr<WireHeader> decoded = DecodeHeader(header);
  if (!decoded.ok()) {
    const bool version = decoded.status().code() == absl::StatusCode::kFailedPrecondition;
    Drop(version ? Fault::kVersion : Fault::kHeader, PeerName(from), decoded.status().message());
    return std::nullopt;
  }
  if (decoded->sender != from) {
    Drop(Fault::kSender, PeerName(from),
         absl::StrCat("header says it is from ", PeerName(decoded->sender)));
    return std::nullopt;
  }
  if (payload.size() != decoded->payload_bytes || payload.size() > max_payload_bytes_) {
    Drop(Fault::kPayloadSize, PeerName(from),
         absl::StrCat("payload has ", payload.size(), " bytes, header says ",
                      decoded->payload_bytes, ", at most ", max_payload_bytes_, " are taken"));
    return std::nullopt;
  }
  if (decoded->payload_xxh3 != 0 && decoded->payload_xxh3 != PayloadChecksum(payload)) {
    Drop(Fault::kPayloadChecksum, PeerName(from), "payload checksum is wrong");
    return std::nullopt;
  }
  return *decoded;
}

void Admission::Drop(Fault fault, absl::string_view from, absl::string_view why) {
  if (++dropped_[static_cast<size_t>(fault)] > 1) return;
  spdlog::warn("{}: dropped a message from {}: {} (later ones are counted, not logged)",
               PeerName(self_), std::string(from), std::string(why));
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
