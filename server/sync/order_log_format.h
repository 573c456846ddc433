// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SYNC_ORDER_LOG_FORMAT_H_
#define TUG_SERVER_SYNC_ORDER_LOG_FORMAT_H_

// Structures of the file format in order_log.h, for its writer and reader.

#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tug {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

struct OrderFileHeader {
  char magic[8] = {'T', 'U', 'G', 'O', 'R', 'D', 'E', 'R'};
  uint32_t format = 1;
  uint32_t timeline = 0;
  uint64_t job = 0;
  uint32_t lane = 0;
  uint32_t lanes = 0;
  uint32_t virtual_workers = 0;
  uint32_t segments = 0;
  uint64_t start_version = 0;
  uint64_t reserved = 0;
  uint64_t xxh3 = 0;  // of the bytes before it
};
static_assert(sizeof(OrderFileHeader) == 64);

struct OrderChunkHeader {
  static constexpr uint32_t kTrailer = 0xffffffffu;

  uint32_t records = 0;
  uint32_t reserved = 0;
  uint64_t xxh3 = 0;
};
static_assert(sizeof(OrderChunkHeader) == 16);

inline uint64_t OrderChecksum(const OrderFileHeader& header) {
  return XXH3_64bits(&header, offsetof(OrderFileHeader, xxh3));
}
inline uint64_t OrderChecksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace tug

#endif  // TUG_SERVER_SYNC_ORDER_LOG_FORMAT_H_
