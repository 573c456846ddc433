#ifndef TUG_COMPRESSION_DITHER_H_
#define TUG_COMPRESSION_DITHER_H_

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "compression/codec.h"

namespace tug {

// The random numbers of a codec that rounds at random: a stream for each CodecKey. The key is wider
// than a Philox key and counter, so the stream's own come of drawing once with all that it holds;
// streams of two keys meet with a probability of 2^-64 each. (The upper 8 bits of the seed are not
// read.)
//
// Element e of a segment takes word (e / 16) % 4 of counter e / 64 * 16 + e % 16: four words of 16
// counters, so that vectors need no shuffling (as kernels/dropout.h).
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

  // The counter of 64 elements' first lane, and its neighbours'. `block`: element / 64.
  std::array<uint32_t, 4> Counter(int64_t block, int64_t lane) const {
    return {static_cast<uint32_t>(block * 16 + lane), rest_[0], rest_[1], rest_[2]};
  }
  const std::array<uint32_t, 2>& philox_key() const { return philox_key_; }

 private:
  std::array<uint32_t, 2> philox_key_;
  std::array<uint32_t, 3> rest_;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_DITHER_H_
