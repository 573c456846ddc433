// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_CODEC_CHOICE_H_
#define TUG_BLOCKS_CODEC_CHOICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blocks/segment_table.h"
#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

// Selects the segments of a job's pushes that are encoded, and their codec. A function of the job
// and its blocks only, so re-execution and byte counts make the same choice. Immutable,
// thread-safe.
class CodecChoice {
 public:
  // `config`: all fields filled. `block_names`: by block; read only with a codec.
  CodecChoice(const PushCodecConfig& config, std::span<const std::string> block_names);

  // Codec of the segment's gradient at this clock; null: it is pushed as FP32. With `auto`: the
  // first candidate; the exchange may choose another one, or FP32, instead.
  const SegmentCodec* Of(const Segment& segment, uint64_t clock) const {
    return clock >= warmup_steps_ ? AfterWarmup(segment) : nullptr;
  }
  // Codec of the segment after comm.push_codec.warmup_steps, whose gradients are pushed in full.
  const SegmentCodec* AfterWarmup(const Segment& segment) const;
  // Whether any segment of the block is encoded after the warm-up.
  bool Encodes(const SegmentTable& table, uint32_t block) const;

  // Codec id in frames; 0: no codec. With `auto`: id of the first candidate.
  uint8_t id() const { return codecs_.empty() ? 0 : codecs_.front().id; }
  bool is_auto() const { return is_auto_; }
  // Whether encoding errors are kept (as residuals) and added to the next gradient.
  bool error_feedback() const { return !codecs_.empty() && error_feedback_; }

  struct Candidate {
    std::string name;
    uint8_t id = 0;  // in frames
    std::unique_ptr<const SegmentCodec> codec;
  };
  // The codec; with `auto` all candidates, in the job's order.
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

// Inputs of an encoding other than its elements.
inline CodecKey KeyOf(uint64_t seed, const Segment& segment, uint32_t virtual_worker,
                      uint64_t clock) {
  return {.seed = seed,
          .block = segment.block,
          .segment = segment.index,
          .virtual_worker = virtual_worker,
          .clock = clock};
}

// Whether the name matches one of the comma-separated patterns; * stands for any letters.
bool MatchesNames(const std::string& patterns, const std::string& name);

}  // namespace tug

#endif  // TUG_BLOCKS_CODEC_CHOICE_H_
