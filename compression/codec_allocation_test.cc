// Codecs allocate nothing once their scratch has grown.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "compression/codec_test_support.h"

namespace {

uint64_t allocations = 0;  // one thread

void* Allocate(size_t size_bytes, size_t alignment) {
  ++allocations;
  const size_t rounded = (size_bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: the compiler would then see new and free that do not match.
[[gnu::noinline]] void* operator new(size_t size_bytes) {
  return Allocate(size_bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t size_bytes, std::align_val_t alignment) {
  return Allocate(size_bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tug {
namespace {

TEST(CodecAllocation, NoneAfterTheFirstSegment) {
  constexpr size_t kElements = 65536 + 7;
  for (const CodecRow& row : Codecs()) {
    const std::unique_ptr<const SegmentCodec> codec = DefaultCodec(row);
    const SegmentCodec* const decoder = DecoderOf(row.id);
    std::vector<float> elements = NormalElements(kElements, 1, 0.01f);
    std::vector<float> residual(kElements);
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
    const uint64_t before = allocations;
    for (uint64_t clock = 1; clock < 4; ++clock) good = use(clock) && good;
    std::fill(elements.begin(), elements.end(), 1.0f);  // all alike: the most candidates
    good = use(4) && good;
    EXPECT_EQ(allocations, before) << row.name;
    EXPECT_TRUE(good) << row.name;
  }
}

}  // namespace
}  // namespace tug
