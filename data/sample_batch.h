// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SAMPLE_BATCH_H_
#define TUG_DATA_SAMPLE_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/job.pb.h"

namespace tug {

// Target after the end of a padded sample, which the loss ignores: kernels::kNoTarget.
inline constexpr int32_t kNoSampleTarget = -1;
// Token after the end of a padded sample; its value has no effect.
inline constexpr int32_t kPadding = 0;

// One sample of a batch, for writing. `context` elements each, except where noted.
struct SampleRow {
  std::span<int32_t> tokens;
  int32_t* length = nullptr;          // null unless samples are padded
  std::span<int32_t> decoder_tokens;  // ENCODER_DECODER; else empty
  std::span<int32_t> targets;         // ENCODER: one element
};

// Samples in the layout of model/model.h's MicroBatch. Memory is reused from batch to batch.
struct SampleBatch {
  uint32_t samples = 0;
  std::vector<int32_t> tokens;          // [samples, context]
  std::vector<int32_t> lengths;         // [samples]; empty: no sample is padded
  std::vector<int32_t> decoder_tokens;  // ENCODER_DECODER: [samples, context]
  std::vector<int32_t> targets;         // [samples, context]; ENCODER: [samples]

  // Resizes the arrays to `count` samples.
  void Resize(ModelConfig::Family family, bool padded, uint32_t context, uint32_t count) {
    samples = count;
    tokens.resize(size_t{count} * context);
    lengths.resize(padded ? count : 0);
    const bool pairs = family == ModelConfig::ENCODER_DECODER;
    decoder_tokens.resize(pairs ? size_t{count} * context : 0);
    targets.resize(family == ModelConfig::ENCODER ? count : size_t{count} * context);
  }

  // Number of tokens without padding, of sources and targets.
  uint64_t TokenCount() const {
    uint64_t count = lengths.empty() ? tokens.size() : 0;
    for (const int32_t length : lengths) count += static_cast<uint64_t>(length);
    if (decoder_tokens.empty()) return count;
    return count + static_cast<uint64_t>(std::ranges::count_if(
                       targets, [](int32_t target) { return target != kNoSampleTarget; }));
  }

  // REQUIRES: row < samples.
  SampleRow Row(uint32_t row) {
    const auto part = [&](std::vector<int32_t>& all) {
      const size_t size = all.size() / samples;
      return std::span(all).subspan(row * size, size);
    };
    return {part(tokens), lengths.empty() ? nullptr : &lengths[row], part(decoder_tokens),
            part(targets)};
  }
};

}  // namespace tug

#endif  // TUG_DATA_SAMPLE_BATCH_H_
