// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/push_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compression/codecs/frames.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 1024;
constexpr uint32_t kVirtualWorker = 5;
// bf16 rounds 1 + 2^-9 to 1: 2^-9 is a quarter of the distance to the next number.
constexpr float kRounded = 1.0f + 1.0f / 512;
constexpr double kLeftOut = 1.0 / 512;

// One block: a matrix of two segments, and a vector, which is not encoded.
class PushEncoderTest : public testing::Test {
 protected:
  PushEncoderTest() {
    options_.comm.mutable_push_codec()->mutable_bf16();
    options_.comm.mutable_push_codec()->set_blocks("*");
    options_.comm.mutable_push_codec()->set_error_feedback(true);
    options_.block_names = {"all"};
    encoder_.emplace(options_, table_, nullptr);
  }
  static SegmentTable Table() {
    BlockTable blocks;
    BlockSpec& block = *blocks.add_blocks();
    TensorSpec& matrix = *block.add_tensors();
    matrix.add_shape(2 * kSegment);
    matrix.set_weight_decay(true);
    block.add_tensors()->add_shape(8);
    return *SegmentTable::Create(blocks, kSegment);
  }
  static Partition Part(uint32_t first, uint32_t count) {
    const uint64_t end = first + count == 3 ? 2 * kSegment + 8 : (first + count) * kSegment;
    return {.first_segment = first, .segment_count = count, .begin = first * kSegment, .end = end};
  }
  static PushRequest Request(float gradient, uint64_t clock = 0) {
    auto buffer = std::make_shared<AlignedBuffer>((2 * kSegment + 8) * sizeof(float));
    for (float& element : buffer->floats()) element = gradient;
    return {.virtual_worker = kVirtualWorker,
            .clock = clock,
            .gradient = Lease(buffer, std::as_const(*buffer).floats())};
  }
  // Elements of a payload; none: a frame is invalid or not finite.
  static std::optional<std::vector<float>> Decode(const Lease& payload, const Partition& part) {
    std::vector<float> elements(part.end - part.begin);
    std::span<const std::byte> bytes = payload.bytes();
    for (size_t begin = 0; begin < elements.size(); begin += kSegment) {
      const std::span<float> of = std::span(elements).subspan(begin).first(
          std::min<size_t>(kSegment, elements.size() - begin));
      const std::optional<Frame> frame = TakeFrame(of.size(), bytes);
      if (!frame.has_value() || !DecodeFrame(*frame, DecodeTo::kStore, of)) return std::nullopt;
    }
    if (!bytes.empty()) return std::nullopt;
    return elements;
  }
  double Squares() const {
    const std::span<const double> squares = encoder_->residual_squares();
    return kVirtualWorker < squares.size() ? squares[kVirtualWorker] : 0;
  }

  const SegmentTable table_ = Table();
  ExchangeOptions options_;
  std::optional<PushEncoder> encoder_;
};

TEST_F(PushEncoderTest, MakesAFrameOfEachSegmentAndLeavesVectorsAsTheyAre) {
  EncodedPush encoded;
  const Lease payload = encoder_->Encode(Request(kRounded), Part(0, 3), encoded);
  const size_t halves = FrameBytes(kSegment * 2);
  EXPECT_EQ(payload.size_bytes(), 2 * halves + FrameBytes(8 * sizeof(float)));
  EXPECT_EQ(encoder_->MaxBytes(Part(0, 3), 0), payload.size_bytes());
  const auto elements = Decode(payload, Part(0, 3));
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ((*elements)[0], 1.0f);
  EXPECT_EQ((*elements)[2 * kSegment - 1], 1.0f);
  EXPECT_EQ((*elements)[2 * kSegment], kRounded);
  EXPECT_FALSE(encoder_->Encodes(Part(2, 1), 0));
}

TEST_F(PushEncoderTest, AddsWhatWasLeftOutToTheNextPush) {
  double sum = 0;
  for (uint64_t clock = 0; clock < 8; ++clock) {
    EncodedPush encoded;
    const auto elements =
        Decode(encoder_->Encode(Request(kRounded, clock), Part(0, 2), encoded), Part(0, 2));
    ASSERT_TRUE(elements.has_value());
    sum += (*elements)[7];
    const double left_out = (clock + 1) * double{kRounded} - sum;
    EXPECT_NEAR(Squares(), 2 * kSegment * left_out * left_out, 1e-12) << clock;
  }
  EXPECT_NE(sum, 8) << "nothing was ever made up for";
}

TEST_F(PushEncoderTest, EncodesASegmentOnceHoweverItIsCut) {
  EncodedPush encoded;
  const PushRequest request = Request(kRounded);
  const Lease second = encoder_->Encode(request, Part(1, 1), encoded);
  const double squares = Squares();
  EXPECT_NEAR(squares, kSegment * kLeftOut * kLeftOut, 1e-12);
  const Lease again = encoder_->Encode(request, Part(1, 1), encoded);
  EXPECT_EQ(Squares(), squares);
  ASSERT_EQ(again.size_bytes(), second.size_bytes());
  EXPECT_EQ(0, std::memcmp(again.bytes().data(), second.bytes().data(), second.size_bytes()));
  const Lease both = encoder_->Encode(request, Part(0, 2), encoded);
  EXPECT_EQ(Squares(), 2 * squares);
  EXPECT_EQ(0, std::memcmp(both.bytes().data() + second.size_bytes(), second.bytes().data(),
                           second.size_bytes()));
}

TEST_F(PushEncoderTest, TakesBackWhatIsDroppedOnce) {
  EncodedPush encoded;
  const PushRequest request = Request(kRounded);
  encoder_->Encode(request, Part(0, 3), encoded);
  encoder_->Restore(request, Part(0, 3), encoded);
  const double all = 2 * kSegment * double{kRounded} * double{kRounded};
  EXPECT_NEAR(Squares(), all, 1e-9 * all);
  encoder_->Restore(request, Part(0, 3), encoded);
  EXPECT_NEAR(Squares(), all, 1e-9 * all);
  EncodedPush next;
  const auto elements = Decode(encoder_->Encode(Request(1, 1), Part(0, 2), next), Part(0, 2));
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ((*elements)[0], 2.0f) << "1 + kRounded, rounded";
}

TEST_F(PushEncoderTest, SaysThatAGradientIsNotFiniteAndGivesUpTheResidual) {
  EncodedPush first, second;
  encoder_->Encode(Request(kRounded), Part(0, 2), first);
  EXPECT_GT(Squares(), 0);
  const PushRequest request = Request(std::numeric_limits<float>::infinity(), 1);
  const Lease payload = encoder_->Encode(request, Part(0, 2), second);
  EXPECT_EQ(payload.size_bytes(), 2 * kFrameHeaderBytes);
  EXPECT_FALSE(Decode(payload, Part(0, 2)).has_value());
  EXPECT_EQ(Squares(), 0);
  encoder_->Restore(request, Part(0, 2), second);
  EXPECT_EQ(Squares(), 0);
}

TEST_F(PushEncoderTest, GivesUpResidualsOfThoseThatAreNotCarried) {
  EncodedPush encoded;
  encoder_->Encode(Request(kRounded), Part(0, 2), encoded);
  encoder_->GiveUpAllBut(std::vector<uint32_t>{4, kVirtualWorker});
  EXPECT_GT(Squares(), 0);
  encoder_->GiveUpAllBut(std::vector<uint32_t>{4});
  EXPECT_EQ(Squares(), 0);
  EncodedPush again;
  const auto elements = Decode(encoder_->Encode(Request(kRounded), Part(0, 2), again), Part(0, 2));
  EXPECT_EQ((*elements)[0], 1.0f);
}

TEST_F(PushEncoderTest, PredictsItsMemory) {
  BlockTable blocks;
  blocks.add_blocks()->set_name("all");
  const PushCodecConfig& codec = options_.comm.push_codec();
  EXPECT_EQ(PredictPushEncoderBytes(codec, blocks, table_, 3),
            3 * 2 * (FrameBytes(2 * kSegment) + kSegment * sizeof(float)));
  EXPECT_EQ(PredictPushEncoderBytes(PushCodecConfig(), blocks, table_, 3), 0u);
}

TEST_F(PushEncoderTest, KeepsNoResidualWithoutErrorFeedback) {
  options_.comm.mutable_push_codec()->set_error_feedback(false);
  encoder_.emplace(options_, table_, nullptr);
  EncodedPush encoded;
  const PushRequest request = Request(kRounded);
  encoder_->Encode(request, Part(0, 2), encoded);
  encoder_->Restore(request, Part(0, 2), encoded);
  EXPECT_TRUE(encoder_->residual_squares().empty());
}

}  // namespace
}  // namespace tug
