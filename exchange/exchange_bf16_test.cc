// SPDX-License-Identifier: Apache-2.0
// Weights sent as two bytes per element.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"
#include "kernels/bf16.h"

namespace tug {
namespace {

class Bf16ExchangeTest : public ExchangeTest {
 protected:
  Bf16ExchangeTest() : ExchangeTest(CommConfig::BF16) {}
};

TEST_F(Bf16ExchangeTest, WidensWeights) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true, {{0, 1}}}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  std::vector<uint16_t> bits(kSegment, 0x4040);
  std::vector<float> payload(kSegment / 2);
  std::memcpy(payload.data(), bits.data(), kSegment * sizeof(uint16_t));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sent_[i].header.codec, Codec::kBf16);
    Answer(sent_[i], MessageKind::kWeights, payload);
  }
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, 3.0f));
}

class Bf16PullTest : public Bf16ExchangeTest {
 protected:
  static Lease Rounded() {
    const Lease weights = SharedWeights();
    auto memory = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(kernels::Bf16));
    kernels::Bf16FromFloat(weights.floats().data(),
                           reinterpret_cast<kernels::Bf16*>(memory->data()), 3 * kSegment);
    const std::span<const std::byte> bytes(memory->data(), memory->size_bytes());
    return Lease(std::move(memory), bytes);
  }
  void Pull(bool allow_in_place) {
    PullRequest request{.block = 1, .clock = 7, .allow_in_place = allow_in_place};
    request.bf16_destination = rounded_;
    exchange_.Pull(std::move(request), now_);
  }

  std::vector<kernels::Bf16> rounded_ = std::vector<kernels::Bf16>(3 * kSegment);
};

TEST_F(Bf16PullTest, ReceivesWeightsAsTheyArePulled) {
  Pull(/*allow_in_place=*/false);
  const Lease memory = Rounded();
  for (int i : {1, 2, 0}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(0, std::memcmp(rounded_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(Bf16PullTest, LeavesThemInPlaceToo) {
  Pull(/*allow_in_place=*/true);
  const Lease memory = Rounded();
  for (int i : {1, 2, 0}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_EQ(static_cast<const void*>(pulled_[0].in_place.bf16_elements.data()),
            static_cast<const void*>(memory.bytes().data()));
  EXPECT_EQ(pulled_[0].in_place.bf16_elements.size(), 3 * kSegment);
  EXPECT_EQ(rounded_, std::vector<kernels::Bf16>(3 * kSegment));
}

TEST_F(Bf16PullTest, CopiesThemIfTheyLieApart) {
  Pull(/*allow_in_place=*/true);
  const Lease memory = Rounded();
  const Lease other = Rounded();
  for (int i : {0, 1, 2}) AnswerInPlace(sent_[i], i == 1 ? other : memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.bf16_elements.empty());
  EXPECT_EQ(0, std::memcmp(rounded_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(Bf16PullTest, WidensThemForAPullOfFloats) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = Rounded();
  for (int i : {0, 1, 2}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(destination_[3], 3.5f);
}

}  // namespace
}  // namespace tug
