// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CODECS_CODEC_TEST_SUPPORT_H_
#define TUG_COMPRESSION_CODECS_CODEC_TEST_SUPPORT_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "compression/codecs/codecs.h"
#include "config/field_path.h"
#include "config/job_config.h"

namespace tug {

// Configuration of a job that chooses the codec and leaves the rest to the defaults.
inline PushCodecConfig DefaultConfig(const CodecRow& row) {
  JobConfig job;
  TUG_CHECK_OK(SetFieldFromText(job, std::string("comm.push_codec.") + row.name, "{}"));
  FillDefaults(job, 1);
  return job.comm().push_codec();
}

inline std::unique_ptr<const SegmentCodec> DefaultCodec(const CodecRow& row) {
  return row.make(DefaultConfig(row));
}

inline std::vector<float> NormalElements(size_t n, uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> elements(n);
  for (float& x : elements) x = normal(random) * scale;
  return elements;
}

inline std::vector<uint32_t> BitsOf(std::span<const float> elements) {
  std::vector<uint32_t> bits;
  bits.reserve(elements.size());
  for (const float x : elements) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

inline double SumOfSquaresOf(std::span<const float> elements) {
  double sum = 0;
  for (const float x : elements) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace tug

#endif  // TUG_COMPRESSION_CODECS_CODEC_TEST_SUPPORT_H_
