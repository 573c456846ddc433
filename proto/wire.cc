// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3_64bits then takes the widest vectors of the machine
#else
#include <xxhash.h>
#endif

#include <concepts>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

constexpr bool FieldsCoverTheHeader() {
  size_t end = 0;
  for (const WireField& field : kWireFields) {
    if (field.offset != end || field.offset % field.size != 0) return false;
    end += field.size;
  }
  return end == kHeaderBytes;
}
static_assert(FieldsCoverTheHeader(), "fields follow one another, each aligned to its size");

// Offset of a field; an unknown name does not compile.
consteval size_t At(std::string_view name) {
  for (const WireField& field : kWireFields) {
    if (name == field.name) return field.offset;
  }
  throw "no such field";
}

constexpr size_t kChecksumOffset = At("header_xxh3");

template <std::unsigned_integral T>
void Store(T value, std::byte* out) {
  for (size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

template <std::unsigned_integral T>
T Load(const std::byte* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | (static_cast<T>(in[i]) << (8 * i)));
  }
  return value;
}

absl::Status CheckFormat(std::span<const std::byte> bytes) {
  if (bytes.size() < At("kind")) {
    return absl::InvalidArgumentError(
        absl::StrCat("header has ", bytes.size(), " bytes, expected ", kHeaderBytes));
  }
  if (Load<uint32_t>(&bytes[At("magic")]) != kWireMagic) {
    return absl::InvalidArgumentError("header does not begin with TUG1: not a Tugboat message");
  }
  const auto version = Load<uint16_t>(&bytes[At("format_version")]);
  if (version != kWireVersion) {
    return absl::FailedPreconditionError(absl::StrCat("peer sends wire format version ", version,
                                                      ", this program reads version ", kWireVersion,
                                                      ": run the same release on all nodes"));
  }
  if (bytes.size() != kHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("header has ", bytes.size(), " bytes, expected ", kHeaderBytes));
  }
  if (Load<uint64_t>(&bytes[kChecksumOffset]) != XXH3_64bits(bytes.data(), kChecksumOffset)) {
    return absl::InvalidArgumentError("header checksum is wrong");
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const char* field, uint64_t value, uint64_t min, uint64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("header field ", field, " is ", value, ", expected ", min, "..", max));
}

absl::Status CheckRanges(const std::byte* in) {
  const absl::Status checks[] = {
      CheckRange("kind", Load<uint8_t>(in + At("kind")), 1,
                 static_cast<uint8_t>(MessageKind::kClearToSend)),
      CheckRange("codec", Load<uint8_t>(in + At("codec")), 0,
                 static_cast<uint8_t>(Codec::kChanges)),
      CheckRange("want", Load<uint8_t>(in + At("want")), 0, static_cast<uint8_t>(Want::kAtLeast)),
      CheckRange("reserved", Load<uint8_t>(in + At("reserved")), 0, 0),
      CheckRange("payload_bytes", Load<uint64_t>(in + At("payload_bytes")), 0, kMaxPayloadBytes),
  };
  for (const absl::Status& check : checks) {
    if (!check.ok()) return check;
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeHeader(const WireHeader& header, std::span<std::byte, kHeaderBytes> out) {
  std::byte* const to = out.data();
  Store(kWireMagic, to + At("magic"));
  Store(kWireVersion, to + At("format_version"));
  Store(static_cast<uint8_t>(header.kind), to + At("kind"));
  Store(static_cast<uint8_t>(header.codec), to + At("codec"));
  Store(static_cast<uint8_t>(header.want), to + At("want"));
  Store(uint8_t{0}, to + At("reserved"));
  Store(header.virtual_worker_count, to + At("virtual_worker_count"));
  Store(header.sender, to + At("sender"));
  Store(header.job, to + At("job"));
  Store(header.timeline, to + At("timeline"));
  Store(header.view, to + At("view"));
  Store(header.block, to + At("block"));
  Store(header.first_segment, to + At("first_segment"));
  Store(header.segment_count, to + At("segment_count"));
  Store(header.virtual_worker, to + At("virtual_worker"));
  Store(header.clock, to + At("clock"));
  Store(header.version, to + At("version"));
  Store(header.token_count, to + At("token_count"));
  Store(header.ack_id, to + At("ack_id"));
  Store(header.payload_bytes, to + At("payload_bytes"));
  Store(header.payload_xxh3, to + At("payload_xxh3"));
  Store(uint64_t{XXH3_64bits(to, kChecksumOffset)}, to + kChecksumOffset);
}

absl::StatusOr<WireHeader> DecodeHeader(std::span<const std::byte> bytes) {
  if (absl::Status format = CheckFormat(bytes); !format.ok()) return format;
  const std::byte* const in = bytes.data();
  if (absl::Status ranges = CheckRanges(in); !ranges.ok()) return ranges;
  WireHeader header;
  header.kind = static_cast<MessageKind>(in[At("kind")]);
  header.codec = static_cast<Codec>(in[At("codec")]);
  header.want = static_cast<Want>(in[At("want")]);
  header.virtual_worker_count = Load<uint16_t>(in + At("virtual_worker_count"));
  header.sender = Load<uint32_t>(in + At("sender"));
  header.job = Load<uint64_t>(in + At("job"));
  header.timeline = Load<uint32_t>(in + At("timeline"));
  header.view = Load<uint32_t>(in + At("view"));
  header.block = Load<uint32_t>(in + At("block"));
  header.first_segment = Load<uint32_t>(in + At("first_segment"));
  header.segment_count = Load<uint32_t>(in + At("segment_count"));
  header.virtual_worker = Load<uint32_t>(in + At("virtual_worker"));
  header.clock = Load<uint64_t>(in + At("clock"));
  header.version = Load<uint64_t>(in + At("version"));
  header.token_count = Load<uint64_t>(in + At("token_count"));
  header.ack_id = Load<uint64_t>(in + At("ack_id"));
  header.payload_bytes = Load<uint64_t>(in + At("payload_bytes"));
  header.payload_xxh3 = Load<uint64_t>(in + At("payload_xxh3"));
  return header;
}

uint64_t PayloadChecksum(std::span<const std::byte> payload) {
  const uint64_t hash = XXH3_64bits(payload.data(), payload.size());
  return hash == 0 ? 1 : hash;
}

}  // namespace tug
