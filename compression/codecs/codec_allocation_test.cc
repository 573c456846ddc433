// SPDX-License-Identifier: Apache-2.0
// Codecs allocate nothing once their scratch has grown.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/memory/count_allocations.h"
#include "compression/codecs/codec_test_support.h"

namespace tug {
namespace {

TEST(CodecAllocation, NoneAfterTheFirstSegment) {
  constexpr size_t kElements = 65536 + 7;
  for (const CodecRow& row : Codecs()) {
    const std::unique_ptr<const SegmentCodec> codec = DefaultCodec(row);
    const SegmentCodec* const decoder = DecoderOf(row.id);
    std::vector<float> elements = NormalElements(kElements, 1, 0.01f);
    std::vector<float> residual(kElements + codec->StateFloats(kElements));
    std::vector<float> decoded(kElements);
    std::vector<std::byte> out(codec->MaxEncodedBytes(kElements));
    CodecScratch scratch;
    const auto use = [&](uint64_t clock) {
      size_t bytes = codec->Encode({.clock = clock}, elements, out, scratch);
      bool good = decoder->Decode(std::span(out).first(bytes), DecodeTo::kStore, decoded);
      bytes = codec->EncodeWithResidual({.clock = clock}, elements, residual, out, scratch);
      for (const DecodeTo to : {DecodeTo::kAdd, DecodeTo::kSubtract}) {
        good = good && decoder->Decode(std::span(out).first(bytes), to, decoded);
      }
      return good;
    };
    bool good = use(0);
    const uint64_t before = CountAllocations();
    for (uint64_t clock = 1; clock < 4; ++clock) good = use(clock) && good;
    std::fill(elements.begin(), elements.end(), 1.0f);  // all equal: the most candidates
    good = use(4) && good;
    EXPECT_EQ(CountAllocations(), before) << row.name;
    EXPECT_TRUE(good) << row.name;
  }
}

}  // namespace
}  // namespace tug
