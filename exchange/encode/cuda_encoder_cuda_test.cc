// SPDX-License-Identifier: Apache-2.0
// Compares frames made on the GPU with those that the exchange makes of the same gradients: equal
// bytes and equal residuals in every step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exchange/encode/cuda_encoder.h"
#include "exchange/encode/push_encoder.h"
#include "kernels/cuda/device/cuda_test_support.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_late.h"
#endif

namespace tug {
namespace {

using kernels::cuda::OnDevice;

constexpr uint64_t kSegment = 1024;
constexpr uint32_t kBlocks = 3;
constexpr uint64_t kWarmup = 1;
const std::vector<uint32_t> kCarried = {2, 5};

// Three blocks: vectors; a matrix of three segments, a matrix too small to be encoded, and vectors;
// a matrix alone.
BlockTable Blocks() {
  BlockTable blocks;
  const std::vector<std::vector<std::pair<uint64_t, bool>>> tensors = {
      {{8, false}, {2000, false}},
      {{2 * kSegment + 500, true}, {63, true}, {7, false}, {3, false}},
      {{kSegment + 1, true}}};
  for (const auto& of_block : tensors) {
    BlockSpec& block = *blocks.add_blocks();
    block.set_name(std::string(1, static_cast<char>('a' + blocks.blocks_size() - 1)));
    for (const auto& [elements, weight_decay] : of_block) {
      TensorSpec& tensor = *block.add_tensors();
      tensor.add_shape(elements);
      tensor.set_weight_decay(weight_decay);
    }
  }
  return blocks;
}

struct Case {
  const char* name;
  void (*set)(PushCodecConfig& codec);
  bool error_feedback;
};

class CudaEncoderTest : public kernels::cuda::CudaTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    PushCodecConfig& codec = *options_.comm.mutable_push_codec();
    GetParam().set(codec);
    codec.set_blocks("*");
    codec.set_error_feedback(GetParam().error_feedback);
    codec.set_warmup_steps(kWarmup);
    codec.set_min_elements(64);
    options_.block_names = BlockNames(Blocks());
    host_.emplace(options_, table_, nullptr);
    encoder_ = NewEncoder();
  }
  std::unique_ptr<DeviceEncoder> NewEncoder() {
    auto encoder = NewCudaEncoder({.codec = options_.comm.push_codec(),
                                   .block_names = options_.block_names,
                                   .table = &table_,
                                   .virtual_workers = kCarried});
    EXPECT_TRUE(encoder.ok()) << encoder.status();
    const absl::Status allocated = (*encoder)->Allocate();
    EXPECT_TRUE(allocated.ok()) << allocated;
    return *std::move(encoder);
  }

  std::shared_ptr<AlignedBuffer> Gradient(uint32_t block) {
    const uint64_t elements = table_.block_elements(block);
    auto gradient = std::make_shared<AlignedBuffer>(elements * sizeof(float));
    std::normal_distribution<float> normal;
    for (float& element : gradient->floats()) element = normal(random_);
    return gradient;
  }

  // The push that a worker makes of a gradient on the GPU.
  PushRequest OnGpu(PushRequest request) {
    const std::span<const float> elements = request.gradient.floats();
    const OnDevice<float> gradient({elements.begin(), elements.end()}, stream());
    auto bound = std::make_shared<AlignedBuffer>(request.gradient.size_bytes());
    auto frames = std::make_shared<AlignedBuffer>(encoder_->FramesBytes(request.block));
    encoder_->Start(request.virtual_worker, request.clock);
    if (frames->size_bytes() > 0) {
      encoder_->Bind(request.block, {frames->data(), frames->size_bytes()});
    }
    const absl::Status sent =
        encoder_->Send(static_cast<int>(request.block), {gradient.data(), elements.size()},
                       bound->floats(), stream());
    EXPECT_TRUE(sent.ok()) << sent;
    if (after_send_) after_send_();
    EXPECT_TRUE(stream().Synchronize().ok());
    request.frames.begins = encoder_->Take(request.block);
    if (!request.frames.empty()) {
      request.frames.bytes =
          Lease(frames, std::span<const std::byte>(frames->data(), request.frames.begins.back()));
    }
    request.gradient = Lease(bound, std::as_const(*bound).floats());
    return request;
  }

  Partition Part(uint32_t block, uint32_t first, uint32_t count) const {
    return {.block = block,
            .first_segment = first,
            .segment_count = count,
            .begin = table_.segment(table_.id(block, first)).begin,
            .end = table_.segment(table_.id(block, first + count - 1)).end};
  }
  static void ExpectSame(std::span<const std::byte> a, std::span<const std::byte> b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0);
  }

  // Encodes the gradient on both sides, whole and split in two at every segment, and expects equal
  // payloads.
  void Push(uint32_t virtual_worker, uint64_t clock, uint32_t block,
            std::shared_ptr<AlignedBuffer> gradient) {
    SCOPED_TRACE(testing::Message() << virtual_worker << " at " << clock << " block " << block);
    const PushRequest request{.block = block,
                              .virtual_worker = virtual_worker,
                              .clock = clock,
                              .gradient = Lease(gradient, std::as_const(*gradient).floats())};
    const PushRequest framed = OnGpu(request);
    EncodedPush kept;
    const uint32_t segments = table_.segments_in_block(block);
    EXPECT_EQ(framed.frames.empty(), clock < kWarmup || block == 0);
    PushEncoder exchange(options_, table_, nullptr);
    for (uint32_t cut = 0; cut < segments; ++cut) {
      for (const auto& [first, count] : {std::pair(0u, cut), std::pair(cut, segments - cut)}) {
        if (count == 0) continue;
        const Partition part = Part(block, first, count);
        if (host_->Encodes(part, clock)) {
          EncodedPush none;
          ExpectSame(host_->Encode(request, part, kept).bytes(),
                     exchange.Encode(framed, part, none).bytes());
          EXPECT_TRUE(none.segments.empty());
          exchange.Restore(framed, part, none);
        } else {
          const auto bytes = [&](const PushRequest& of) {
            return of.gradient.Slice(part.begin * sizeof(float), part.bytes());
          };
          ExpectSame(bytes(request).bytes(), bytes(framed).bytes());
        }
      }
    }
    EXPECT_TRUE(exchange.CopyResiduals(virtual_worker).empty());
  }
  static void ExpectSame(const absl::StatusOr<std::vector<SegmentResidual>>& gpu,
                         const std::vector<SegmentResidual>& host) {
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    ASSERT_EQ(gpu->size(), host.size());
    for (size_t i = 0; i < host.size(); ++i) {
      EXPECT_EQ((*gpu)[i].segment, host[i].segment);
      ExpectSame(std::as_bytes((*gpu)[i].values.floats()), std::as_bytes(host[i].values.floats()));
    }
  }
  void ExpectSameResiduals() {
    for (uint32_t virtual_worker = 0; virtual_worker < 8; ++virtual_worker) {
      SCOPED_TRACE(virtual_worker);
      ExpectSame(encoder_->CopyResiduals(virtual_worker), host_->CopyResiduals(virtual_worker));
      const std::span<const double> squares = host_->residual_squares();
      const double expected = virtual_worker < squares.size() ? squares[virtual_worker] : 0;
      EXPECT_NEAR(encoder_->ResidualSquares(virtual_worker), expected, 1e-12 * expected);
    }
  }
  void Steps(uint64_t first, uint64_t end) {
    for (uint64_t clock = first; clock < end; ++clock) {
      for (const uint32_t virtual_worker : kCarried) {
        for (uint32_t block = kBlocks; block-- > 0;) {
          Push(virtual_worker, clock, block, Gradient(block));
        }
      }
      ExpectSameResiduals();
    }
  }

  const SegmentTable table_ = *SegmentTable::Create(Blocks(), kSegment);
  ExchangeOptions options_;
  std::mt19937 random_{17};
  std::optional<PushEncoder> host_;  // compared with encoder_
  std::unique_ptr<DeviceEncoder> encoder_;
  std::function<void()> after_send_;  // called while the work queued by Send is in flight
};

TEST_P(CudaEncoderTest, MakesTheFramesThatTheExchangeMakes) {
  Steps(0, 4);
  EXPECT_EQ(encoder_->ResidualSquares(kCarried[0]) > 0, GetParam().error_feedback);
}

// Its frame is marked as not finite, the other frames are unchanged, and its earlier residual is
// discarded.
TEST_P(CudaEncoderTest, SkipsASegmentThatIsNotFinite) {
  Steps(kWarmup, kWarmup + 2);
  std::shared_ptr<AlignedBuffer> gradient = Gradient(1);
  gradient->floats()[kSegment + 3] = std::numeric_limits<float>::infinity();
  gradient->floats()[2 * kSegment + 510] = std::nanf("");
  Push(kCarried[1], kWarmup + 2, 1, gradient);
  ExpectSameResiduals();
  Steps(kWarmup + 3, kWarmup + 5);
}

TEST_P(CudaEncoderTest, GoesOnFromWhatItIsGivenOfResiduals) {
  Steps(0, 3);
  std::vector<std::vector<SegmentResidual>> copies;
  for (const uint32_t virtual_worker : kCarried) {
    auto copy = encoder_->CopyResiduals(virtual_worker);
    ASSERT_TRUE(copy.ok()) << copy.status();
    copies.push_back(*std::move(copy));
  }
  encoder_ = NewEncoder();
  for (size_t i = 0; i < kCarried.size(); ++i) {
    const absl::Status restored = encoder_->RestoreResiduals(kCarried[i], copies[i]);
    ASSERT_TRUE(restored.ok()) << restored;
  }
  ExpectSameResiduals();
  Steps(3, 5);
}

TEST_P(CudaEncoderTest, CopiesResidualsOfWhatIsStillOnItsWay) {
  Steps(kWarmup, kWarmup + 1);
#if TUG_CUDA_EMULATED
  const kernels::emulation::LateStreams latest(/*seed=*/0);
#endif
  absl::StatusOr<std::vector<SegmentResidual>> copied = absl::UnknownError("not copied");
  after_send_ = [&] { copied = encoder_->CopyResiduals(kCarried[0]); };
  Push(kCarried[0], kWarmup + 1, 1, Gradient(1));
  ExpectSame(copied, host_->CopyResiduals(kCarried[0]));
}

TEST_P(CudaEncoderTest, GivesUpWhatIsNotCarriedAndTakesOthers) {
  Steps(kWarmup, kWarmup + 2);
  host_->GiveUpAllBut(std::vector<uint32_t>{kCarried[1]});
  encoder_->GiveUpAllBut(std::vector<uint32_t>{kCarried[1]});
  ExpectSameResiduals();
  Push(/*virtual_worker=*/7, kWarmup + 2, 1, Gradient(1));
  Steps(kWarmup + 2, kWarmup + 3);
}

TEST_P(CudaEncoderTest, SaysHowMuchMemoryItTakes) {
  uint64_t residuals = 0;
  for (uint32_t block = 1; block < kBlocks; ++block) {
    residuals += table_.block_elements(block) * sizeof(float);
  }
  if (!GetParam().error_feedback) residuals = 0;
  EXPECT_GE(encoder_->device_bytes(), encoder_->FramesBytes(1) + kCarried.size() * residuals);
  EXPECT_LE(encoder_->device_bytes(),
            encoder_->FramesBytes(1) + kCarried.size() * residuals + 2048);
  EXPECT_EQ(PredictPushEncoderBytes(options_.comm.push_codec(), Blocks(), table_, 2, true),
            2 * (encoder_->FramesBytes(1) + encoder_->FramesBytes(2)));
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, CudaEncoderTest,
    testing::Values(
        Case{"Int8", [](PushCodecConfig& codec) { codec.mutable_int8(); }, false},
        Case{"Int8Feedback", [](PushCodecConfig& codec) { codec.mutable_int8(); }, true},
        Case{"OneBit", [](PushCodecConfig& codec) { codec.mutable_one_bit(); }, false},
        Case{"OneBitFeedback", [](PushCodecConfig& codec) { codec.mutable_one_bit(); }, true},
        Case{"TopK", [](PushCodecConfig& codec) { codec.mutable_top_k()->set_density(0.02); },
             false},
        Case{"TopKFeedback",
             [](PushCodecConfig& codec) { codec.mutable_top_k()->set_density(0.02); }, true}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tug
