// SPDX-License-Identifier: Apache-2.0
#include "blocks/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace tug {
namespace {

// Aligned like a transport's payloads, with no spare bytes after the end, so that a sanitizer
// detects overruns.
class Payload {
 public:
  explicit Payload(size_t size) : words_((size + 7) / 8), size_(size) {}
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_.data()) + (words_.size() * 8 - size_) / 8 * 8,
            size_};
  }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

std::vector<float> Counting(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(Runs, RunsOfRowsAreSortedAndJoined) {
  const std::vector<int32_t> rows = {7, 2, 3, 7, 0};
  EXPECT_EQ(RunsOfRows(rows, 10, 100), (ElementRuns{{100, 110}, {120, 140}, {170, 180}}));
  EXPECT_TRUE(RunsOfRows({}, 10, 100).empty());
}

TEST(Runs, MergeJoinsWhatOverlapsOrAdjoins) {
  const ElementRuns a = {{0, 10}, {20, 30}, {50, 60}};
  const ElementRuns b = {{5, 12}, {30, 31}, {40, 45}, {52, 55}};
  const ElementRuns both = {{0, 12}, {20, 31}, {40, 45}, {50, 60}};
  EXPECT_EQ(Merge(a, b), both);
  EXPECT_EQ(Merge(b, a), both);
  EXPECT_EQ(Merge(a, {}), a);
}

TEST(Runs, ClipKeepsThePartInsideRelativeToItsBegin) {
  const ElementRuns runs = {{0, 10}, {20, 30}, {50, 60}};
  EXPECT_EQ(Clip(runs, 5, 25), (ElementRuns{{0, 5}, {15, 20}}));
  EXPECT_EQ(Clip(runs, 22, 24), (ElementRuns{{0, 2}}));
  EXPECT_TRUE(Clip(runs, 10, 20).empty());
  EXPECT_TRUE(Clip(runs, 60, 100).empty());
}

TEST(Runs, ElementsOfCountsAll) { EXPECT_EQ(ElementsOf(ElementRuns{{0, 10}, {20, 25}}), 15u); }

TEST(Runs, ValuesComeBackToTheirPlaces) {
  const std::vector<float> elements = Counting(100);
  const ElementRuns runs = {{0, 3}, {50, 51}, {90, 100}};
  Payload payload(EncodedBytes(runs, true));
  EncodeRuns(runs, elements, payload.bytes());
  const std::optional<EncodedRuns> decoded = DecodeRuns(payload.bytes(), 100, true);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->runs, runs);
  std::vector<float> out(100, -1.0f);
  Scatter(*decoded, out);
  for (size_t i = 0; i < 100; ++i) {
    const bool in_run = i < 3 || i == 50 || i >= 90;
    EXPECT_EQ(out[i], in_run ? elements[i] : -1.0f) << i;
  }
}

TEST(Runs, NoRunsAreEightBytes) {
  Payload payload(EncodedBytes({}, true));
  EXPECT_EQ(payload.bytes().size(), 8u);
  EncodeRuns({}, {}, payload.bytes());
  ASSERT_TRUE(DecodeRuns(payload.bytes(), 10, true).has_value());
  ASSERT_TRUE(DecodeRuns(payload.bytes(), 10, false).has_value());
}

TEST(Runs, APullHasTheListAlone) {
  const ElementRuns runs = {{4, 8}};
  Payload payload(EncodedBytes(runs, false));
  EncodeRunList(runs, payload.bytes());
  const std::optional<EncodedRuns> decoded = DecodeRuns(payload.bytes(), 8, false);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->runs, runs);
  EXPECT_TRUE(decoded->values.empty());
  EXPECT_FALSE(DecodeRuns(payload.bytes(), 8, true).has_value());  // values are missing
}

TEST(Runs, MalformedListsAreRefused) {
  const auto decodes = [](std::vector<uint32_t> words) {
    Payload payload(words.size() * sizeof(uint32_t));
    std::ranges::copy(std::as_bytes(std::span(words)), payload.bytes().begin());
    return DecodeRuns(payload.bytes(), 100, false).has_value();
  };
  EXPECT_TRUE(decodes({2, 0, 0, 10, 11, 100}));
  EXPECT_FALSE(decodes({2, 1, 0, 10, 11, 100}));   // nonzero reserved word
  EXPECT_FALSE(decodes({2, 0, 0, 10, 11, 101}));   // beyond the end
  EXPECT_FALSE(decodes({2, 0, 0, 10, 10, 100}));   // adjacent
  EXPECT_FALSE(decodes({2, 0, 0, 10, 9, 100}));    // overlap
  EXPECT_FALSE(decodes({2, 0, 50, 60, 0, 10}));    // out of order
  EXPECT_FALSE(decodes({1, 0, 10, 10}));           // empty
  EXPECT_FALSE(decodes({1, 0, 10, 9}));            // backwards
  EXPECT_FALSE(decodes({3, 0, 0, 10, 11, 100}));   // more runs announced than present
  EXPECT_FALSE(decodes({1, 0, 0, 10, 11, 100}));   // longer than announced
  EXPECT_FALSE(decodes({0xffffffffu, 0, 0, 10}));  // far more runs announced than present
  EXPECT_FALSE(decodes({1}));
  EXPECT_FALSE(decodes({}));
}

// For arbitrary bytes: decoding reads nothing outside them, and accepts only well-formed input.
TEST(Runs, AcceptsOnlyWellFormedBytes) {
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int i = 0; i < 100000; ++i) {
    constexpr uint64_t kElements = 64;
    // A valid message, then a few random faults.
    ElementRuns runs;
    for (uint32_t at = random() % 8; at + 1 < kElements && random() % 4 != 0;) {
      const auto end = static_cast<uint32_t>(at + 1 + random() % (kElements - at));
      runs.push_back({at, end});
      at = end + 1 + random() % 8;
    }
    const bool with_values = random() % 2 == 0;
    std::vector<std::byte> bytes(EncodedBytes(runs, with_values));
    if (with_values) {
      EncodeRuns(runs, Counting(kElements), bytes);
    } else {
      EncodeRunList(runs, bytes);
    }
    for (uint64_t faults = random() % 3; faults > 0 && !bytes.empty(); --faults) {
      if (random() % 2 == 0) bytes.resize(random() % (bytes.size() + 9));
      if (!bytes.empty()) bytes[random() % bytes.size()] ^= static_cast<std::byte>(random() % 256);
    }
    Payload payload(bytes.size());
    if (!bytes.empty()) std::memcpy(payload.bytes().data(), bytes.data(), bytes.size());
    const std::optional<EncodedRuns> decoded = DecodeRuns(payload.bytes(), kElements, with_values);
    if (!decoded.has_value()) continue;
    ++accepted;
    ASSERT_EQ(EncodedBytes(decoded->runs, with_values), bytes.size());
    ASSERT_EQ(decoded->values.size(), with_values ? ElementsOf(decoded->runs) : 0);
    std::vector<float> out(kElements);
    if (with_values) Scatter(*decoded, out);
    ASSERT_EQ(Merge(decoded->runs, {}), decoded->runs);  // sorted and separate
  }
  EXPECT_GT(accepted, 30000);
  EXPECT_LT(accepted, 100000);
}

}  // namespace
}  // namespace tug
