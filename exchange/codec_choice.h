#ifndef TUG_EXCHANGE_CODEC_CHOICE_H_
#define TUG_EXCHANGE_CODEC_CHOICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "exchange/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// Which segments of a job's pushes are encoded, and by what. A function of the job and its blocks
// alone: whoever computes a run again, or works out its bytes, chooses alike. Immutable,
// thread-safe.
class CodecChoice {
 public:
  // `config`: all fields filled. `block_names`: by block; read only if there is a codec.
  CodecChoice(const PushCodecConfig& config, std::span<const std::string> block_names);

  // What encodes the segment's gradient of that clock; null: it is pushed as FP32. With `auto`: the
  // first candidate, in place of which another one or FP32 may be chosen.
  const SegmentCodec* Of(const Segment& segment, uint64_t clock) const {
    return clock >= warmup_steps_ ? AfterWarmup(segment) : nullptr;
  }
  // Once the steps that go in full are over.
  const SegmentCodec* AfterWarmup(const Segment& segment) const;
  // Whether any segment of the block is encoded then.
  bool Encodes(const SegmentTable& table, uint32_t block) const;

  // Of the codec, in its frames; 0: there is none. With `auto`: as Of.
  uint8_t id() const { return codecs_.empty() ? 0 : codecs_.front().id; }
  bool is_auto() const { return is_auto_; }
  // What encodings leave out is kept, and added to the next ones.
  bool error_feedback() const { return !codecs_.empty() && error_feedback_; }

  struct Candidate {
    std::string name;
    uint8_t id = 0;  // in frames
    std::unique_ptr<const SegmentCodec> codec;
  };
  // The codec; with `auto` all candidates, in the order of the job.
  std::span<const Candidate> codecs() const { return codecs_; }

 private:
  const std::vector<Candidate> codecs_;
  const bool is_auto_;
  const bool error_feedback_;
  const uint64_t warmup_steps_;
  const uint64_t min_elements_;
  const bool vectors_;
  std::vector<bool> chosen_;  // by block
};

// What an encoding depends on beside its elements.
inline CodecKey KeyOf(uint64_t seed, const Segment& segment, uint32_t virtual_worker,
                      uint64_t clock) {
  return {.seed = seed,
          .block = segment.block,
          .segment = segment.index,
          .virtual_worker = virtual_worker,
          .clock = clock};
}

// Whether the name is one of a list's patterns, which are separated by commas; * stands for any
// letters.
bool MatchesNames(const std::string& patterns, const std::string& name);

}  // namespace tug

#endif  // TUG_EXCHANGE_CODEC_CHOICE_H_
