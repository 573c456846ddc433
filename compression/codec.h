// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CODEC_H_
#define TUG_COMPRESSION_CODEC_H_

// Encodes a segment's gradient in fewer bytes, and decodes it. One file per codec, one row per
// codec in codecs/codecs.cc; codecs/frames.h packs the segments of a push into a message.
//
// A codec maps the elements of one segment. Its bytes contain only what decoding needs: the decoder
// knows the codec and the number of elements, but no setting.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tug {

// Identity of an encoding: two encodings of the same elements under the same key are equal. Random
// draws depend on the key alone (and on the place in the segment).
struct CodecKey {
  uint64_t seed = 0;  // of the job
  uint32_t block = 0;
  uint32_t segment = 0;  // index within the block
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
};

// Working memory of encodings, reused: grows to what the largest segment needs, and stays. Not
// thread-safe.
class CodecScratch {
 public:
  // Unspecified contents, valid until the next call. 64-byte aligned.
  std::span<std::byte> Take(size_t size_bytes);

 private:
  std::vector<std::byte> bytes_;
};

// Operation with a decoded element d at its place x.
enum class DecodeTo {
  kStore,     // x = d
  kAdd,       // x += d
  kSubtract,  // x -= d
};

// Immutable, thread-safe. Functions allocate nothing.
class SegmentCodec {
 public:
  virtual ~SegmentCodec() = default;

  // Upper bound of the length of an encoding. REQUIRES: 1 <= elements <= 2^24.
  virtual size_t MaxEncodedBytes(size_t elements) const = 0;

  // Writes the encoding of `elements` to the front of `out`, and returns its length: at least 1.
  // Returns 0 if an element is not finite, or too large for the codec (see its header): such
  // elements have no encoding (frames.h flags them), and `out` is unspecified. REQUIRES: `out` has
  // MaxEncodedBytes, does not overlap `elements`.
  virtual size_t Encode(const CodecKey& key, std::span<const float> elements,
                        std::span<std::byte> out, CodecScratch& scratch) const = 0;

  // Floats of state that EncodeWithResidual keeps per segment, after the residual in `residual`;
  // zeros at first. State is kept and reset together with the residual.
  virtual size_t StateFloats(size_t /*elements*/) const { return 0; }

  // Error feedback (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2): encodes p = elements
  // + residual, and leaves in `residual` p minus what Decode makes of it. Returns the length like
  // Encode. With 0, `residual` becomes 0: the step is skipped, with the residual in its pushes. If
  // only p is not finite (an overflow), `residual` is reset to 0 first, and `elements` are encoded
  // alone. This version takes three passes. Codecs that must be fast override it with the same
  // result to the last bit; codecs with a state (described in their headers) override it with a
  // result that depends on the state.
  virtual size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                    std::span<float> residual, std::span<std::byte> out,
                                    CodecScratch& scratch) const;

  // Decodes into `elements`, all of the segment. False if the bytes, which come from outside and
  // may change while they are read, are not an encoding of this many elements, or encode a number
  // that is not finite: `elements` may then hold anything, but nothing outside them was written,
  // and nothing outside `encoded` read. True: finite numbers were stored, added or subtracted, the
  // same per element for every `to`. Adding a sparse encoding touches only the elements in it
  // (kStore writes +0 elsewhere, and no -0: so 0 + d = d to the bit).
  virtual bool Decode(std::span<const std::byte> encoded, DecodeTo to,
                      std::span<float> elements) const = 0;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_CODEC_H_
