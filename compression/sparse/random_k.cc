// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/random_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/philox.h"
#include "compression/dense/unaligned.h"
#include "compression/residual.h"
#include "compression/sparse/sparse.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr uint32_t kPurpose = 8;  // differs from those of base/philox.h
constexpr size_t kSeedBytes = sizeof(uint64_t);
// Elements that stay in the nearest cache between two passes.
constexpr size_t kChunk = 4096;

uint64_t SeedOf(const CodecKey& key) {
  const auto of_place =
      Philox4x32({key.block, key.segment, key.virtual_worker, kPurpose},
                 {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  const auto of_clock =
      Philox4x32({static_cast<uint32_t>(key.clock), static_cast<uint32_t>(key.clock >> 32),
                  of_place[0], of_place[1]},
                 {of_place[2], of_place[3]});
  return uint64_t{of_clock[0]} << 32 | of_clock[1];
}

// Draws elements, one after the other.
class Draw {
 public:
  // REQUIRES: 1 <= count <= elements.
  Draw(uint64_t seed, size_t elements, size_t count)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        whole_(elements / count),
        rest_(elements % count),
        count_(count) {}

  struct Element {
    size_t index;
    size_t stratum;  // elements in it
  };
  // REQUIRES: called at most `count` times.
  Element Next() {
    if (drawn_ % 4 == 0) words_ = Philox4x32({drawn_ / 4, 0, 0, 0}, key_);
    // Stratum i begins at i * elements / count, rounded down.
    carried_ += rest_;
    const size_t longer = carried_ >= count_ ? 1 : 0;
    carried_ -= longer * count_;
    const size_t stratum = whole_ + longer;
    const size_t index = begin_ + (uint64_t{words_[drawn_ % 4]} * stratum >> 32);
    begin_ += stratum;
    ++drawn_;
    return {index, stratum};
  }

 private:
  const std::array<uint32_t, 2> key_;
  const size_t whole_;
  const size_t rest_;
  const size_t count_;
  std::array<uint32_t, 4> words_ = {};
  uint32_t drawn_ = 0;
  size_t carried_ = 0;
  size_t begin_ = 0;
};

// residual += elements. Returns whether the sums are finite.
bool AddAndCheckSum(std::span<const float> elements, std::span<float> residual) {
  bool finite = true;
  for (size_t i = 0; i < elements.size(); i += kChunk) {
    const auto n = static_cast<int64_t>(std::min(kChunk, elements.size() - i));
    kernels::AddAndCheck(elements.data() + i, residual.data() + i, n);
    finite = kernels::AllFinite(residual.data() + i, n) && finite;
  }
  return finite;
}

}  // namespace

size_t RandomKCodec::MaxEncodedBytes(size_t elements) const {
  return kSeedBytes + KeptElements(density_, elements) * sizeof(float);
}

size_t RandomKCodec::Encode(const CodecKey& key, std::span<const float> elements,
                            std::span<std::byte> out, CodecScratch& /*scratch*/) const {
  if (!kernels::AllFinite(elements.data(), static_cast<int64_t>(elements.size()))) return 0;
  const uint64_t seed = SeedOf(key);
  std::memcpy(out.data(), &seed, sizeof(seed));
  const size_t count = KeptElements(density_, elements.size());
  Draw draw(seed, elements.size(), count);
  bool finite = true;
  for (size_t i = 0; i < count; ++i) {
    const auto [index, stratum] = draw.Next();
    const float value = elements[index] * (scaled_ ? static_cast<float>(stratum) : 1.0f);
    finite = std::isfinite(value) && finite;
    std::memcpy(out.data() + kSeedBytes + i * sizeof(float), &value, sizeof(value));
  }
  return finite ? MaxEncodedBytes(elements.size()) : 0;
}

size_t RandomKCodec::EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                        std::span<float> residual, std::span<std::byte> out,
                                        CodecScratch& scratch) const {
  if (scaled_) {
    return SegmentCodec::EncodeWithResidual(key, elements, residual, out, scratch);
  }
  const uint64_t seed = SeedOf(key);
  const size_t count = KeptElements(density_, elements.size());
  const bool encoded = EncodeSum(elements, residual, [&] {
    if (!AddAndCheckSum(elements, residual)) return false;
    std::memcpy(out.data(), &seed, sizeof(seed));
    Draw draw(seed, elements.size(), count);
    for (size_t i = 0; i < count; ++i) {
      float& left = residual[draw.Next().index];
      std::memcpy(out.data() + kSeedBytes + i * sizeof(float), &left, sizeof(left));
      left = 0.0f;
    }
    return true;
  });
  return encoded ? MaxEncodedBytes(elements.size()) : 0;
}

bool RandomKCodec::Decode(std::span<const std::byte> encoded, DecodeTo to,
                          std::span<float> elements) const {
  if (encoded.size() <= kSeedBytes || encoded.size() % sizeof(float) != 0) return false;
  const size_t count = (encoded.size() - kSeedBytes) / sizeof(float);
  if (count > elements.size()) return false;
  Draw draw(LoadOnce<uint64_t>(encoded.data()), elements.size(), count);
  SparseTarget target(to, elements);
  for (size_t i = 0; i < count; ++i) {
    const auto value = LoadOnce<float>(encoded.data() + kSeedBytes + i * sizeof(float));
    if (!target.Put(draw.Next().index, value)) return false;
  }
  return true;
}

}  // namespace tug
