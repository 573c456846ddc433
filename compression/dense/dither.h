// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_DITHER_H_
#define TUG_COMPRESSION_DENSE_DITHER_H_

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "compression/codec.h"

namespace tug {

// Random numbers of a codec that rounds at random: one stream per CodecKey. That key is wider than
// a Philox key and counter, so one draw with all of it yields the stream's own Philox key and
// counter; streams of two keys coincide with a probability of 2^-64. (The upper 8 bits of the seed
// are not read.)
//
// Element e of a segment uses word (e / 16) % 4 of counter e / 64 * 16 + e % 16: four words of 16
// counters, so that vectors need no shuffling (as in kernels/dropout.h).
class Dither {
 public:
  explicit Dither(const CodecKey& key) {
    constexpr auto kPurpose = static_cast<uint32_t>(RandomPurpose::kDither) << 24;
    const auto words =
        Philox4x32({key.block, key.segment, key.virtual_worker, static_cast<uint32_t>(key.clock)},
                   {static_cast<uint32_t>(key.seed),
                    (static_cast<uint32_t>(key.seed >> 32) & 0x00FFFFFFu) | kPurpose});
    philox_key_ = {words[0], words[1]};
    rest_ = {static_cast<uint32_t>(key.clock >> 32), words[2], words[3]};
  }

  // Counter of element `lane` (below 16) of 64; vector lanes use the following counters. `block`:
  // element / 64.
  std::array<uint32_t, 4> Counter(int64_t block, int64_t lane) const {
    return {static_cast<uint32_t>(block * 16 + lane), rest_[0], rest_[1], rest_[2]};
  }
  const std::array<uint32_t, 2>& philox_key() const { return philox_key_; }

 private:
  std::array<uint32_t, 2> philox_key_;
  std::array<uint32_t, 3> rest_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_DITHER_H_
