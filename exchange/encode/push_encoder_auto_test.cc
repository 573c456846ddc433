// SPDX-License-Identifier: Apache-2.0
// Pushes with comm.push_codec.auto, which chooses the codec that takes the least time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "compression/codecs/frames.h"
#include "exchange/encode/push_encoder.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 1024;
constexpr uint64_t kElements = 2 * kSegment;
constexpr uint32_t kVirtualWorker = 1;
constexpr uint32_t kLane = 300;
constexpr auto kInt8 = static_cast<uint8_t>(PushCodecConfig::kInt8);
constexpr auto kTopK = static_cast<uint8_t>(PushCodecConfig::kTopKInt8);

// A clock by which every encoding takes the given time.
class SteadyTime final : public TimeSource {
 public:
  explicit SteadyTime(absl::Duration encoding) : encoding_(encoding) {}
  absl::Time Now() const override { return now_ += encoding_; }

 private:
  const absl::Duration encoding_;
  mutable absl::Time now_ = absl::UnixEpoch();
};

// One block, a matrix of two segments, on a lane reached over a link or through shared memory.
class PushEncoderAutoTest : public testing::Test {
 protected:
  PushEncoderAutoTest() {
    PushCodecConfig& codec = *options_.comm.mutable_push_codec();
    codec.mutable_auto_()->set_candidates("int8,one_bit,top_k_int8");
    codec.mutable_auto_()->set_max_residual(1e6);
    codec.set_blocks("*");
    codec.set_error_feedback(true);
    options_.block_names = {"all"};
    Make();
  }
  void Make() {
    options_.time = &time_;
    encoder_.emplace(options_, table_, nullptr, [this](PeerId) { return shares_memory_; });
  }
  static SegmentTable Table() {
    BlockTable blocks;
    TensorSpec& matrix = *blocks.add_blocks()->add_tensors();
    matrix.add_shape(kElements);
    matrix.set_weight_decay(true);
    return *SegmentTable::Create(blocks, kSegment);
  }
  static Partition Part(uint32_t first, uint32_t count) {
    return {.lane = kLane,
            .first_segment = first,
            .segment_count = count,
            .begin = first * kSegment,
            .end = (first + count) * kSegment};
  }
  static PushRequest Request(std::span<const float> gradient, uint64_t clock) {
    auto buffer = std::make_shared<AlignedBuffer>(kElements * sizeof(float));
    std::copy(gradient.begin(), gradient.end(), buffer->floats().begin());
    return {.virtual_worker = kVirtualWorker,
            .clock = clock,
            .gradient = Lease(buffer, std::as_const(*buffer).floats())};
  }
  std::vector<float> Gradient() {
    std::vector<float> gradient(kElements);
    for (float& element : gradient) element = normal_(random_);
    return gradient;
  }
  // Adds enough samples to determine the rate.
  void SetLink(double bytes_per_second) {
    LinkRate& link = *encoder_->LinkTo(kLane);
    for (int i = 0; i < 9; ++i) {
      const LinkRate::Sent sent = link.OnSent({now_});
      now_ += absl::Seconds((1 << 20) / bytes_per_second);
      link.OnDelivered(sent, 1 << 20, {now_});
    }
  }
  // Decodes a payload as the server does. `in_place`: the elements of an empty payload.
  static std::vector<float> Decode(const Lease& payload, std::span<const float> in_place,
                                   std::set<uint8_t>* codecs = nullptr) {
    if (payload.size_bytes() == 0) {
      if (codecs != nullptr) codecs->insert(0);
      return {in_place.begin(), in_place.end()};
    }
    std::vector<float> elements(kElements);
    std::span<const std::byte> bytes = payload.bytes();
    for (size_t begin = 0; begin < kElements; begin += kSegment) {
      const auto of = std::span(elements).subspan(begin, kSegment);
      const std::optional<Frame> frame = TakeFrame(kSegment, bytes);
      EXPECT_TRUE(frame.has_value() && DecodeFrame(*frame, DecodeTo::kStore, of));
      if (frame.has_value() && codecs != nullptr) codecs->insert(frame->codec);
    }
    EXPECT_TRUE(bytes.empty());
    return elements;
  }
  // Makes a push that is committed; returns its codecs.
  std::set<uint8_t> Push(std::span<const float> gradient) {
    EncodedPush encoded;
    std::set<uint8_t> codecs;
    const PushRequest request = Request(gradient, clock_++);
    const std::vector<float> decoded =
        Decode(encoder_->Encode(request, Part(0, 2), encoded), gradient, &codecs);
    for (size_t i = 0; i < kElements; ++i) {
      pushed_[i] += double{gradient[i]};
      decoded_[i] += double{decoded[i]};
    }
    return codecs;
  }
  // Pushes until all codecs are measured and one is chosen.
  void Settle() {
    for (int i = 0; i < 8; ++i) Push(Gradient());
  }
  double Norm() const {
    const std::span<const double> squares = encoder_->residual_squares();
    return kVirtualWorker < squares.size() ? std::sqrt(squares[kVirtualWorker]) : 0;
  }

  const SegmentTable table_ = Table();
  const SteadyTime time_ = SteadyTime(absl::Microseconds(1));  // 1 ns per element
  bool shares_memory_ = false;
  ExchangeOptions options_;
  std::optional<PushEncoder> encoder_;
  absl::Time now_ = absl::UnixEpoch();
  uint64_t clock_ = 0;
  std::mt19937 random_ = std::mt19937(5);
  std::normal_distribution<float> normal_;
  std::vector<double> pushed_ = std::vector<double>(kElements);
  std::vector<double> decoded_ = std::vector<double>(kElements);
};

TEST_F(PushEncoderAutoTest, GoesInPlaceThroughSharedMemory) {
  shares_memory_ = true;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Push(Gradient()), std::set<uint8_t>{0});
  EncodedPush encoded;
  const PushRequest request = Request(Gradient(), clock_);
  EXPECT_EQ(encoder_->Encode(request, Part(0, 2), encoded).size_bytes(), 0u);
  EXPECT_TRUE(encoder_->residual_squares().empty()) << "nothing is kept";
  EXPECT_EQ(encoder_->MaxBytes(Part(0, 2), 0), Part(0, 2).bytes());
  EXPECT_EQ(encoder_->LinkTo(kLane), nullptr);
}

TEST_F(PushEncoderAutoTest, TakesTheFewestBytesOnASlowLinkAndFp32OnAFastOne) {
  SetLink(1e6);
  Settle();
  EXPECT_EQ(Push(Gradient()), std::set<uint8_t>{kTopK});
  EXPECT_GT(Norm(), 0);
  SetLink(1e12);
  Settle();
  EXPECT_EQ(Push(Gradient()), std::set<uint8_t>{0});
  EXPECT_EQ(Norm(), 0);
  EncodedPush encoded;
  const PushRequest request = Request(Gradient(), clock_);
  EXPECT_EQ(encoder_->Encode(request, Part(0, 2), encoded).size_bytes(), 0u)
      << "in place: there is no residual";
}

TEST_F(PushEncoderAutoTest, LosesNothingFromCodecToCodecAndToFp32) {
  for (const double link : {1e6, 1e12, 3e7, 1e5, 1e9, 2e6, 1e12}) {
    SetLink(link);
    for (int i = 0; i < 30; ++i) Push(Gradient());
  }
  ASSERT_EQ(Norm(), 0);
  for (size_t i = 0; i < kElements; ++i) ASSERT_NEAR(pushed_[i], decoded_[i], 1e-4) << i;
}

TEST_F(PushEncoderAutoTest, ARepeatHasTheSameBytesHoweverTheLinkHasChanged) {
  SetLink(1e6);
  Settle();
  const PushRequest request = Request(Gradient(), clock_);
  EncodedPush encoded;
  const Lease whole = encoder_->Encode(request, Part(0, 2), encoded);
  const double norm = Norm();
  SetLink(1e12);
  const Lease first = encoder_->Encode(request, Part(0, 1), encoded);
  const Lease second = encoder_->Encode(request, Part(1, 1), encoded);
  ASSERT_EQ(first.size_bytes() + second.size_bytes(), whole.size_bytes());
  EXPECT_EQ(0, std::memcmp(whole.bytes().data(), first.bytes().data(), first.size_bytes()));
  EXPECT_EQ(0, std::memcmp(whole.bytes().data() + first.size_bytes(), second.bytes().data(),
                           second.size_bytes()));
  EXPECT_EQ(Norm(), norm);
}

TEST_F(PushEncoderAutoTest, PushSentInPlaceIsResentInPlace) {
  shares_memory_ = true;
  const std::vector<float> gradient = Gradient();
  const PushRequest request = Request(gradient, clock_);
  EncodedPush encoded;
  EXPECT_EQ(encoder_->Encode(request, Part(0, 2), encoded).size_bytes(), 0u);
  shares_memory_ = false;
  SetLink(1e6);
  EXPECT_EQ(encoder_->Encode(request, Part(0, 1), encoded).size_bytes(), 0u);
  EXPECT_TRUE(encoder_->residual_squares().empty());
}

TEST_F(PushEncoderAutoTest, TakesBackFp32ThatTookAResidualWithIt) {
  SetLink(1e6);
  Settle();
  SetLink(1e12);
  const std::vector<float> gradient = Gradient();
  const PushRequest request = Request(gradient, clock_++);
  EncodedPush encoded;
  std::set<uint8_t> codecs;
  std::vector<float> sent =
      Decode(encoder_->Encode(request, Part(0, 2), encoded), gradient, &codecs);
  ASSERT_EQ(codecs, std::set<uint8_t>{0});
  EXPECT_NE(sent, gradient) << "with what had been left out";
  EXPECT_EQ(Norm(), 0);
  encoder_->Restore(request, Part(0, 2), encoded);
  double squares = 0;
  for (const float element : sent) squares += double{element} * double{element};
  EXPECT_NEAR(Norm(), std::sqrt(squares), 1e-3);
}

TEST_F(PushEncoderAutoTest, GivesTheResidualUpWithAGradientThatIsNotFinite) {
  SetLink(1e6);
  Settle();
  SetLink(1e12);
  std::vector<float> gradient = Gradient();
  gradient[7] = std::numeric_limits<float>::infinity();
  gradient[kSegment + 7] = std::numeric_limits<float>::infinity();
  const PushRequest request = Request(gradient, clock_++);
  EncodedPush encoded;
  const Lease payload = encoder_->Encode(request, Part(0, 2), encoded);
  std::span<const std::byte> bytes = payload.bytes();
  std::vector<float> elements(kSegment);
  const std::optional<Frame> frame = TakeFrame(kSegment, bytes);
  ASSERT_TRUE(frame.has_value());
  EXPECT_FALSE(DecodeFrame(*frame, DecodeTo::kStore, elements));
  EXPECT_EQ(Norm(), 0);
  encoder_->Restore(request, Part(0, 2), encoded);
  EXPECT_EQ(Norm(), 0);
}

// Elements of a constant gradient stay in the residual while others are larger.
TEST_F(PushEncoderAutoTest, KeepsTheResidualWithinItsBound) {
  const std::vector<float> gradient = Gradient();
  double norm = 0;
  for (const float element : gradient) norm += double{element} * double{element};
  norm = std::sqrt(norm);
  const auto most = [&] {
    double most = 0;
    std::set<uint8_t> all;
    for (int i = 0; i < 400; ++i) {
      all.merge(Push(gradient));
      if (i >= 16) most = std::max(most, Norm() / norm);
    }
    EXPECT_TRUE(all.contains(kTopK));
    return most;
  };
  SetLink(1e6);
  Settle();
  const double unbounded = most();
  options_.comm.mutable_push_codec()->mutable_auto_()->set_max_residual(4);
  Make();
  SetLink(1e6);
  Settle();
  const double bounded = most();
  EXPECT_GT(unbounded, 20);
  EXPECT_LE(bounded, 4 + 8 + 1) << "it is looked at in every eighth push";
}

TEST_F(PushEncoderAutoTest, PredictsMemoryOfFp32FramesWhichTakeAResidualAlong) {
  BlockTable blocks;
  blocks.add_blocks()->set_name("all");
  const uint64_t most = PredictPushEncoderBytes(options_.comm.push_codec(), blocks, table_, 3);
  const CodecChoice choice(options_.comm.push_codec(), options_.block_names);
  EXPECT_EQ(choice.codecs().size(), 3u);
  EXPECT_EQ(choice.codecs()[0].id, kInt8);
  EXPECT_GT(MaxFrameBytes(nullptr, kSegment),
            MaxFrameBytes(choice.codecs()[0].codec.get(), kSegment));
  EXPECT_EQ(most, 3 * 2 * (MaxFrameBytes(nullptr, kSegment) + kSegment * sizeof(float)));
  EXPECT_EQ(encoder_->MaxBytes(Part(0, 2), 0), 2 * MaxFrameBytes(nullptr, kSegment));
}

}  // namespace
}  // namespace tug
