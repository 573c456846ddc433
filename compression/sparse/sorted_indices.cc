// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/sorted_indices.h"

#include <algorithm>
#include <cstring>

namespace tug {
namespace {

// At most 24, so 32 bits from the byte where they begin contain them.
uint32_t LowBits(size_t elements, size_t count) {
  return static_cast<uint32_t>(std::bit_width(elements / count)) - 1;
}

size_t LowBytes(size_t elements, size_t count) {
  return count == 0 ? 0 : (count * LowBits(elements, count) + 7) / 8;
}

}  // namespace

size_t SortedIndicesBytes(size_t elements, size_t count) {
  if (count == 0) return 0;
  const size_t bits = count + ((elements - 1) >> LowBits(elements, count));
  return LowBytes(elements, count) + (bits + 63) / 64 * sizeof(uint64_t);
}

// Fewer indices may take a bit or two more where r changes, and so one more word.
size_t MaxSortedIndicesBytes(size_t elements, size_t count) {
  return SortedIndicesBytes(elements, count) + sizeof(uint64_t);
}

void PackSortedIndices(std::span<const uint32_t> indices, size_t elements, std::byte* out) {
  const size_t count = indices.size();
  if (count == 0) return;
  const uint32_t low_bits = LowBits(elements, count);
  const size_t low_bytes = LowBytes(elements, count);
  std::byte* const high = out + low_bytes;
  std::memset(high, 0, SortedIndicesBytes(elements, count) - low_bytes);
  const uint32_t mask = (uint32_t{1} << low_bits) - 1;
  uint64_t waiting = 0;  // low bits not written yet
  uint32_t bits = 0;     // their number: below 32
  for (size_t i = 0; i < count; ++i) {
    waiting |= static_cast<uint64_t>(indices[i] & mask) << bits;
    bits += low_bits;
    if (bits >= 32) {
      const auto word = static_cast<uint32_t>(waiting);
      std::memcpy(out, &word, sizeof(word));
      out += sizeof(word);
      waiting >>= 32;
      bits -= 32;
    }
    const size_t place = i + (indices[i] >> low_bits);
    high[place / 8] |= std::byte{1} << (place % 8);
  }
  std::memcpy(out, &waiting, (bits + 7) / 8);
}

SortedIndexReader::SortedIndexReader(const std::byte* packed, size_t elements, size_t count)
    : low_(packed),
      elements_(elements),
      low_bits_(count == 0 ? 0 : LowBits(elements, count)),
      low_mask_((uint32_t{1} << low_bits_) - 1),
      next_word_(packed + LowBytes(elements, count)),
      end_(packed + SortedIndicesBytes(elements, count)) {}

}  // namespace tug
