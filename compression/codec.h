#ifndef TUG_COMPRESSION_CODEC_H_
#define TUG_COMPRESSION_CODEC_H_

// What makes fewer bytes of a segment's gradient, and a gradient of those bytes again. One file a
// codec, one row a file in codecs.cc; frames.h packs the segments of a push into a message.
//
// A codec maps the elements of one segment, and nothing else is in its bytes but what it needs to
// decode them: who decodes knows the codec and the number of elements, no setting.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tug {

// What is encoded: two encodings of the same elements under the same key are equal. Whatever is
// drawn at random depends on the key alone (and on the place in the segment).
struct CodecKey {
  uint64_t seed = 0;  // of the job
  uint32_t block = 0;
  uint32_t segment = 0;  // index within the block
  uint32_t virtual_worker = 0;
  uint64_t clock = 0;
};

// Memory that an encoding works in, used again by the next one: grows to what the largest segment
// needs, and stays. Not thread-safe.
class CodecScratch {
 public:
  // Unspecified contents, valid until the next call. 64-byte aligned.
  std::span<std::byte> Take(size_t size_bytes);

 private:
  std::vector<std::byte> bytes_;
};

// What becomes of decoded elements d at their place x.
enum class DecodeTo {
  kStore,     // x = d
  kAdd,       // x += d
  kSubtract,  // x -= d
};

// Immutable, thread-safe. Functions allocate nothing.
class SegmentCodec {
 public:
  virtual ~SegmentCodec() = default;

  // No encoding of so many elements is longer. REQUIRES: 1 <= elements <= 2^24.
  virtual size_t MaxEncodedBytes(size_t elements) const = 0;

  // Writes the encoding of `elements` to the front of `out`, and returns its length: at least 1.
  // 0 if an element is not finite, or too large for the codec (its header says so): there is no
  // encoding of such (frames.h says so in its place); `out` is then unspecified.
  // REQUIRES: `out` has MaxEncodedBytes, does not overlap `elements`.
  virtual size_t Encode(const CodecKey& key, std::span<const float> elements,
                        std::span<std::byte> out, CodecScratch& scratch) const = 0;

  // Floats that EncodeWithResidual keeps of a segment beside its residual, behind that in
  // `residual`; zeros at first. They go where the residual goes: with 0 they become 0 too.
  virtual size_t StateFloats(size_t /*elements*/) const { return 0; }

  // Error feedback (Seide et al. 2014; Karimireddy et al. 2019, algorithm 2): encodes
  // p = elements + residual, and leaves in `residual` p minus what Decode makes of it. As Encode;
  // with 0, `residual` becomes 0: the step is skipped, and what its pushes carried with it. So it
  // does where p alone is not finite, an overflow, and then `elements` are encoded. Here in three
  // passes; codecs that have to be fast override it with the same result to the last bit, and those
  // with a state (their headers say what it does) with one that depends on that.
  // REQUIRES: `residual` has elements.size() + StateFloats.
  virtual size_t EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                    std::span<float> residual, std::span<std::byte> out,
                                    CodecScratch& scratch) const;

  // Decodes into `elements`, all of the segment. False if the bytes, which come from outside and
  // may change while they are read, are no encoding of so many elements, or one of a number that is
  // not finite: `elements` may then hold anything, but nothing outside them was touched, and
  // nothing outside `encoded` read. True: finite numbers were stored, added or subtracted, each
  // element's the same whatever `to` is. Whoever adds sparse encodings touches only what they hold
  // (kStore writes +0 elsewhere, and no -0: so 0 + d = d to the bit).
  virtual bool Decode(std::span<const std::byte> encoded, DecodeTo to,
                      std::span<float> elements) const = 0;
};

}  // namespace tug

#endif  // TUG_COMPRESSION_CODEC_H_
