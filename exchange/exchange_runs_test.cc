// SPDX-License-Identifier: Apache-2.0
// Pushes and pulls of only some elements of a block.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "blocks/runs.h"
#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

TEST_F(ExchangeTest, PushesOnlyTheRunsWhereThatIsSmaller) {
  // Few elements of the first partition, none of the second, all of the third.
  Push(1, 0, {{10, 20}, {100, 101}, {2 * kSegment, 3 * kSegment}});
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[0].header.codec, Codec::kRuns);
  std::optional<EncodedRuns> runs = DecodeRuns(sent_[0].payload.bytes(), kSegment, true);
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(runs->runs, (ElementRuns{{10, 20}, {100, 101}}));
  EXPECT_EQ(runs->values.front(), 11.0f);
  EXPECT_EQ(runs->values.back(), 101.0f);
  EXPECT_EQ(sent_[1].header.codec, Codec::kRuns);
  runs = DecodeRuns(sent_[1].payload.bytes(), kSegment, true);
  ASSERT_TRUE(runs.has_value());
  EXPECT_TRUE(runs->runs.empty());
  EXPECT_EQ(sent_[2].header.codec, Codec::kNone);
  EXPECT_EQ(sent_[2].payload.floats().front(), 1.0f + 2 * kSegment);
  // A repeat is encoded again.
  now_ += absl::Seconds(1);
  exchange_.OnTick(now_);
  ASSERT_EQ(sent_.size(), 6u);
  EXPECT_EQ(sent_[3].header, sent_[0].header);
  EXPECT_EQ(0, std::memcmp(sent_[3].payload.bytes().data(), sent_[0].payload.bytes().data(),
                           sent_[0].payload.size_bytes()));
}

TEST_F(ExchangeTest, RunsTakeTheirBytesOfTheCredit) {
  for (uint32_t block : {2u, 1u, 0u}) Push(block, 0, {{0, 1}});
  EXPECT_EQ(sent_.size(), 9u);
}

TEST_F(ExchangeTest, PullsOnlyTheRuns) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true, {{10, 12}, {2 * kSegment, 3 * kSegment}}},
                 now_);
  ASSERT_EQ(sent_.size(), 2u);  // none of the second partition is requested
  EXPECT_EQ(sent_[0].header.codec, Codec::kRuns);
  const std::optional<EncodedRuns> asked = DecodeRuns(sent_[0].payload.bytes(), kSegment, false);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->runs, (ElementRuns{{10, 12}}));
  EXPECT_EQ(sent_[1].header.codec, Codec::kNone);
  const auto answer = [this](const ElementRuns& runs) {
    std::vector<float> payload(EncodedBytes(runs, true) / sizeof(float));
    EncodeRuns(runs, std::vector<float>(kSegment, 3.0f),
               std::as_writable_bytes(std::span(payload)));
    Answer(sent_[0], MessageKind::kWeights, payload);
  };
  Answer(sent_[1], MessageKind::kWeights, std::vector<float>(kSegment, 5.0f));
  answer({{10, 11}});  // not the requested ranges
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  EXPECT_TRUE(pulled_.empty());
  answer({{10, 12}});
  ASSERT_EQ(pulled_.size(), 1u);
  for (size_t e = 0; e < destination_.size(); ++e) {
    const float expected = e == 10 || e == 11 ? 3.0f : e >= 2 * kSegment ? 5.0f : -1.0f;
    ASSERT_EQ(destination_[e], expected) << e;
  }
}

}  // namespace
}  // namespace tug
