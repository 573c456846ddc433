#include "compression/codec.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

std::span<std::byte> CodecScratch::Take(size_t size_bytes) {
  if (bytes_.size() < size_bytes + kAlignment) bytes_.resize(size_bytes + kAlignment);
  void* at = bytes_.data();
  size_t space = bytes_.size();
  at = std::align(kAlignment, size_bytes, at, space);
  return {static_cast<std::byte*>(at), size_bytes};
}

size_t SegmentCodec::EncodeWithResidual(const CodecKey& key, std::span<const float> elements,
                                        std::span<float> residual, std::span<std::byte> out,
                                        CodecScratch& scratch) const {
  TUG_CHECK_EQ(elements.size(), residual.size());
  const auto n = static_cast<int64_t>(elements.size());
  if (!kernels::AllFinite(elements.data(), n)) return 0;
  kernels::AddAndCheck(elements.data(), residual.data(), n);
  size_t bytes = Encode(key, residual, out, scratch);
  if (bytes == 0) {  // an overflow
    std::fill(residual.begin(), residual.end(), 0.0f);
    kernels::AddAndCheck(elements.data(), residual.data(), n);
    bytes = Encode(key, residual, out, scratch);
  }
  if (bytes == 0) {  // an element is too large by itself
    std::fill(residual.begin(), residual.end(), 0.0f);
    return 0;
  }
  TUG_CHECK(Decode(out.first(bytes), DecodeTo::kSubtract, residual));
  return bytes;
}

}  // namespace tug
