// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/sorted_indices.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

std::vector<uint32_t> Draw(size_t elements, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> indices(elements);
  for (size_t i = 0; i < elements; ++i) indices[i] = static_cast<uint32_t>(i);
  std::shuffle(indices.begin(), indices.end(), random);
  indices.resize(count);
  std::sort(indices.begin(), indices.end());
  return indices;
}

void ExpectRoundTrip(const std::vector<uint32_t>& indices, size_t elements) {
  const size_t count = indices.size();
  const size_t bytes = SortedIndicesBytes(elements, count);
  std::vector<std::byte> packed(bytes + 4, std::byte{0xFF});
  PackSortedIndices(indices, elements, packed.data());
  EXPECT_EQ(packed[bytes], std::byte{0xFF}) << "wrote beyond";
  SortedIndexReader reader(packed.data(), elements, count);
  for (const uint32_t index : indices) ASSERT_EQ(reader.Next(), index) << count << "/" << elements;
  EXPECT_TRUE(reader.AtEnd());
}

TEST(SortedIndices, GivesBackWhatWasPacked) {
  for (const size_t elements : {1, 2, 3, 31, 64, 65, 1000, 4096, 70001}) {
    for (size_t count = 0; count <= elements; count += 1 + count / 2) {
      ExpectRoundTrip(Draw(elements, count, count), elements);
    }
    ExpectRoundTrip(Draw(elements, elements, 1), elements);
    ExpectRoundTrip({static_cast<uint32_t>(elements - 1)}, elements);
  }
  ExpectRoundTrip({0, 1, 2, (1 << 24) - 2, (1 << 24) - 1}, size_t{1} << 24);
}

TEST(SortedIndices, TakesUnderNineBitsAtOnePercent) {
  EXPECT_LT(8.0 * static_cast<double>(SortedIndicesBytes(262144, 2621)) / 2621, 8.6);
}

TEST(SortedIndices, FewerTakeNoMoreThanTheBound) {
  for (size_t elements = 1; elements < 700; ++elements) {
    size_t longest = 0;
    for (size_t count = 0; count <= elements; ++count) {
      longest = std::max(longest, SortedIndicesBytes(elements, count));
      ASSERT_LE(longest, MaxSortedIndicesBytes(elements, count)) << count << "/" << elements;
    }
  }
  for (const size_t elements : {size_t{65536 + 7}, size_t{262144}}) {
    size_t longest = 0;
    for (size_t count = 0; count <= elements; ++count) {
      longest = std::max(longest, SortedIndicesBytes(elements, count));
      ASSERT_LE(longest, MaxSortedIndicesBytes(elements, count)) << count << "/" << elements;
    }
  }
}

// Overwrites low or all bits, so that indices repeat, are too large, too few or too many.
TEST(SortedIndices, RefusesWhatDoesNotAscendOrIsTooLarge) {
  constexpr size_t kElements = 100;
  std::vector<std::byte> packed(SortedIndicesBytes(kElements, 2) + 4);
  PackSortedIndices(std::vector<uint32_t>{40, 41}, kElements, packed.data());
  packed[0] = packed[1] = std::byte{0};  // both 32
  SortedIndexReader alike(packed.data(), kElements, 2);
  EXPECT_EQ(alike.Next(), 32u);
  EXPECT_EQ(alike.Next(), std::nullopt);

  PackSortedIndices(std::vector<uint32_t>{40, 99}, kElements, packed.data());
  packed[0] = packed[1] = std::byte{0xFF};  // the second one 127
  SortedIndexReader large(packed.data(), kElements, 2);
  EXPECT_EQ(large.Next(), 63u);
  EXPECT_EQ(large.Next(), std::nullopt);

  std::fill(packed.begin(), packed.end(), std::byte{0});  // none at all
  SortedIndexReader none(packed.data(), kElements, 2);
  EXPECT_EQ(none.Next(), std::nullopt);

  std::fill(packed.begin(), packed.end(), std::byte{0xFF});  // one too many
  SortedIndexReader more(packed.data(), kElements, 1);
  EXPECT_EQ(more.Next(), 63u);
  EXPECT_FALSE(more.AtEnd());
}

}  // namespace
}  // namespace tug
