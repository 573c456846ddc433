// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/cuda_encoder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "blocks/codec_choice.h"
#include "compression/codecs/frames.h"
#include "compression/cuda/int8_cuda.h"
#include "compression/cuda/one_bit_cuda.h"
#include "compression/cuda/segments_cuda.h"
#include "compression/cuda/top_k_cuda.h"
#include "config/push_plan.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/sum_cuda.h"
#include "kernels/sum.h"

namespace tug {
namespace {

using cuda::SegmentBatch;
using cuda::SegmentPlace;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::Event;
using kernels::cuda::PinnedBuffer;
using kernels::cuda::Stream;

constexpr uint64_t kBoundaryBytes = 256;
constexpr int64_t kMaxSegments = 65535;  // per SegmentBatch

uint64_t AtBoundary(uint64_t bytes) {
  return (bytes + kBoundaryBytes - 1) / kBoundaryBytes * kBoundaryBytes;
}

// Layout of a block's frames: one slot per segment, of the size of its longest frame, on the GPU
// and at first in host memory too. Take compacts the frames in host memory once their lengths are
// known.
struct BlockPlan {
  size_t frames_bytes = 0;         // of all slots; 0: nothing is encoded
  std::vector<size_t> slots = {};  // begin of each slot, by segment, then the end of the last
  std::vector<bool> encoded = {};  // by segment
  std::vector<SegmentPlace> places = {};  // encoded segments, with encodings in their slots
  int64_t max_elements = 0;               // of the largest encoded segment
  uint64_t residual_at = 0;               // offset within a virtual worker's residual, in elements
  size_t facts_at = 0;                    // offset within the host's facts, in bytes
  int64_t places_at = 0;
};

// Facts about an encoded block, copied to the host with it: the sum of squares of its residual,
// then the lengths of its encodings in the order of BlockPlan::places.
class Facts {
 public:
  static size_t Bytes(size_t segments) { return sizeof(double) + segments * sizeof(uint32_t); }

  explicit Facts(std::byte* at) : at_(at) {}
  double* residual_squares() const { return reinterpret_cast<double*>(at_); }
  uint32_t* lengths() const { return reinterpret_cast<uint32_t*>(at_ + sizeof(double)); }

 private:
  std::byte* at_;
};

class CudaEncoder final : public DeviceEncoder {
 public:
  explicit CudaEncoder(DeviceEncoderOptions options);

  uint64_t device_bytes() const override;
  absl::Status Allocate() override;
  absl::Status Send(int block, std::span<const float> gradient, std::span<float> bound,
                    const Stream& stream) override;

  size_t FramesBytes(uint32_t block) const override { return plans_[block].frames_bytes; }
  void Start(uint32_t virtual_worker, uint64_t clock) override {
    virtual_worker_ = virtual_worker;
    clock_ = clock;
  }
  void Bind(uint32_t block, std::span<std::byte> frames) override {
    TUG_CHECK_EQ(frames.size(), plans_[block].frames_bytes);
    sent_[block].frames = frames;
  }
  std::vector<uint64_t> Take(uint32_t block) override;

  void GiveUpAllBut(std::span<const uint32_t> virtual_workers) override;
  absl::StatusOr<std::vector<SegmentResidual>> CopyResiduals(uint32_t virtual_worker) override;
  absl::Status RestoreResiduals(uint32_t virtual_worker,
                                std::span<const SegmentResidual> residuals) override;
  double ResidualSquares(uint32_t virtual_worker) const override;

 private:
  // Residual of a virtual worker.
  struct Residual {
    DeviceBuffer elements;        // each block at BlockPlan::residual_at
    std::vector<bool> begun;      // by block: encoded or restored before
    std::vector<double> squares;  // by block
  };
  // A block between Send and Take.
  struct Sent {
    std::span<std::byte> frames = {};    // bound by the caller
    std::span<const float> bound = {};   // bound by the caller
    std::optional<uint32_t> encoded_of;  // virtual worker; none: not encoded
  };
  // All GPU state except residuals.
  struct Device {
    Stream stream;  // for work outside of steps
    Event sent;     // end of the work queued by the last Send
    DeviceBuffer places;
    DeviceBuffer frames;  // of one block; reused by the next one on Send's stream
    DeviceBuffer facts;   // of one block; reused likewise
    PinnedBuffer host_facts;
  };

  const Segment& SegmentAt(uint32_t block, uint32_t index) const {
    return table_.segment(table_.id(block, index));
  }
  void Plan(uint32_t block);
  Facts HostFactsOf(uint32_t block) const {
    return Facts(device_->host_facts.As<std::byte>() + plans_[block].facts_at);
  }
  // Creates a residual of zeros on first use.
  absl::StatusOr<Residual*> ResidualOf(uint32_t virtual_worker);
  float* ElementsOf(const Residual& residual, uint32_t block) const {
    return residual.elements.As<float>() + plans_[block].residual_at;
  }
  absl::Status Encode(uint32_t block, const float* gradient, const Stream& stream);
  absl::Status EncodeBatch(const SegmentBatch& batch, const float* gradient, float* residual,
                           uint32_t* lengths, const Stream& stream) const;
  // Copies slots of encoded segments to the bound frames, and the gradient of other segments to
  // `bound`.
  absl::Status CopyToHost(uint32_t block, const float* gradient, std::span<float> bound,
                          const Stream& stream) const;

  const SegmentTable& table_;
  const PushCodecConfig codec_;
  const CodecChoice choice_;
  const std::vector<uint32_t> first_virtual_workers_;
  std::vector<BlockPlan> plans_;  // by block
  std::vector<SegmentPlace> places_;
  uint64_t residual_elements_ = 0;  // per virtual worker
  size_t facts_bytes_ = 0;          // of all blocks
  size_t max_frames_bytes_ = 0, max_facts_bytes_ = 0;

  std::optional<Device> device_;
  std::map<uint32_t, Residual> residuals_;  // by virtual worker
  std::vector<Sent> sent_;                  // by block
  uint32_t virtual_worker_ = 0;             // of the current step
  uint64_t clock_ = 0;
  CodecScratch scratch_;
};

CudaEncoder::CudaEncoder(DeviceEncoderOptions options)
    : table_(*options.table),
      codec_(std::move(options.codec)),
      choice_(codec_, options.block_names),
      first_virtual_workers_(std::move(options.virtual_workers)),
      plans_(table_.num_blocks()),
      sent_(table_.num_blocks()) {
  TUG_CHECK(HasGpuKernels(codec_.codec_case()));
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    if (choice_.Encodes(table_, block)) Plan(block);
  }
}

void CudaEncoder::Plan(uint32_t block) {
  BlockPlan& plan = plans_[block];
  size_t at = 0;
  for (uint32_t i = 0; i < table_.segments_in_block(block); ++i) {
    const Segment& segment = SegmentAt(block, i);
    const SegmentCodec* const codec = choice_.AfterWarmup(segment);
    plan.slots.push_back(at);
    plan.encoded.push_back(codec != nullptr);
    if (codec != nullptr) {
      const auto elements = static_cast<int64_t>(segment.elements());
      plan.places.push_back({static_cast<int64_t>(segment.begin), elements,
                             static_cast<int64_t>(at + kFrameHeaderBytes)});
      plan.max_elements = std::max(plan.max_elements, elements);
    }
    at += MaxFrameBytes(codec, segment.elements());
  }
  plan.slots.push_back(at);
  plan.frames_bytes = at;
  plan.places_at = static_cast<int64_t>(places_.size());
  places_.insert(places_.end(), plan.places.begin(), plan.places.end());
  plan.residual_at = residual_elements_;
  residual_elements_ += AtBoundary(table_.block_elements(block) * sizeof(float)) / sizeof(float);
  plan.facts_at = facts_bytes_;
  const size_t facts = Facts::Bytes(plan.places.size());
  facts_bytes_ += AtBoundary(facts);
  max_facts_bytes_ = std::max(max_facts_bytes_, facts);
  max_frames_bytes_ = std::max(max_frames_bytes_, plan.frames_bytes);
}

// ---- memory ----

uint64_t CudaEncoder::device_bytes() const {
  if (places_.empty()) return 0;
  const uint64_t residuals = choice_.error_feedback() ? residual_elements_ * sizeof(float) : 0;
  return AtBoundary(places_.size() * sizeof(SegmentPlace)) + AtBoundary(max_frames_bytes_) +
         AtBoundary(max_facts_bytes_) + first_virtual_workers_.size() * residuals;
}

absl::Status CudaEncoder::Allocate() {
  TUG_CHECK(!device_.has_value());
  if (places_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  ASSIGN_OR_RETURN(Event sent, Event::Create());
  ASSIGN_OR_RETURN(DeviceBuffer places,
                   DeviceBuffer::Create(places_.size() * sizeof(SegmentPlace)));
  ASSIGN_OR_RETURN(DeviceBuffer frames, DeviceBuffer::Create(max_frames_bytes_));
  ASSIGN_OR_RETURN(DeviceBuffer facts, DeviceBuffer::Create(max_facts_bytes_));
  ASSIGN_OR_RETURN(PinnedBuffer host_facts, PinnedBuffer::Create(facts_bytes_));
  device_.emplace(Device{std::move(stream), std::move(sent), std::move(places), std::move(frames),
                         std::move(facts), std::move(host_facts)});
  RETURN_IF_ERROR(kernels::cuda::CopyToDeviceAsync(device_->places.data(), places_.data(),
                                                   places_.size() * sizeof(SegmentPlace),
                                                   device_->stream));
  RETURN_IF_ERROR(device_->stream.Synchronize());
  if (!choice_.error_feedback()) return absl::OkStatus();
  for (const uint32_t virtual_worker : first_virtual_workers_) {
    RETURN_IF_ERROR(ResidualOf(virtual_worker).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<CudaEncoder::Residual*> CudaEncoder::ResidualOf(uint32_t virtual_worker) {
  const auto found = residuals_.find(virtual_worker);
  if (found != residuals_.end()) return &found->second;
  ASSIGN_OR_RETURN(DeviceBuffer elements, DeviceBuffer::Create(residual_elements_ * sizeof(float)));
  RETURN_IF_ERROR(
      kernels::cuda::FillZeroAsync(elements.data(), elements.size_bytes(), device_->stream));
  RETURN_IF_ERROR(device_->stream.Synchronize());
  Residual residual{std::move(elements), std::vector<bool>(plans_.size()),
                    std::vector<double>(plans_.size())};
  return &residuals_.emplace(virtual_worker, std::move(residual)).first->second;
}

// ---- a block's gradient ----

absl::Status CudaEncoder::Send(int number, std::span<const float> gradient, std::span<float> bound,
                               const Stream& stream) {
  const auto block = static_cast<uint32_t>(number);
  Sent& sent = sent_[block];
  sent.bound = bound;
  sent.encoded_of.reset();
  const BlockPlan& plan = plans_[block];
  const auto encodes = [&](uint32_t i) {
    return choice_.Of(SegmentAt(block, i), clock_) != nullptr;
  };
  const auto first = std::find(plan.encoded.begin(), plan.encoded.end(), true);
  if (first == plan.encoded.end() ||
      !encodes(static_cast<uint32_t>(first - plan.encoded.begin()))) {
    return kernels::cuda::CopyToHostAsync(bound.data(), gradient.data(), gradient.size_bytes(),
                                          stream);
  }
  TUG_CHECK_EQ(sent.frames.size(), plan.frames_bytes) << "no memory for frames is bound";
  RETURN_IF_ERROR(Encode(block, gradient.data(), stream));
  RETURN_IF_ERROR(CopyToHost(block, gradient.data(), bound, stream));
  sent.encoded_of = virtual_worker_;
  return device_->sent.Record(stream);
}

absl::Status CudaEncoder::Encode(uint32_t block, const float* gradient, const Stream& stream) {
  const BlockPlan& plan = plans_[block];
  float* residual = nullptr;
  if (choice_.error_feedback()) {
    ASSIGN_OR_RETURN(Residual* const of, ResidualOf(virtual_worker_));
    residual = ElementsOf(*of, block);
    of->begun[block] = true;
  }
  const Facts facts(device_->facts.As<std::byte>());
  const auto count = static_cast<int64_t>(plan.places.size());
  for (int64_t at = 0; at < count; at += kMaxSegments) {
    const SegmentBatch batch{device_->places.As<SegmentPlace>() + plan.places_at + at,
                             std::min(kMaxSegments, count - at), plan.max_elements};
    RETURN_IF_ERROR(EncodeBatch(batch, gradient, residual, facts.lengths() + at, stream));
  }
  if (residual == nullptr) return absl::OkStatus();
  return kernels::cuda::SumOfSquares(residual, static_cast<int64_t>(table_.block_elements(block)),
                                     facts.residual_squares(), stream);
}

absl::Status CudaEncoder::EncodeBatch(const SegmentBatch& batch, const float* gradient,
                                      float* residual, uint32_t* lengths,
                                      const Stream& stream) const {
  auto* const frames = device_->frames.As<std::byte>();
  if (codec_.has_int8()) {
    if (residual == nullptr) return cuda::EncodeInt8(batch, gradient, frames, lengths, stream);
    return cuda::EncodeInt8WithResidual(batch, gradient, residual, frames, lengths, stream);
  }
  if (codec_.has_one_bit()) {
    if (residual == nullptr) return cuda::EncodeOneBit(batch, gradient, frames, lengths, stream);
    return cuda::EncodeOneBitWithResidual(batch, gradient, residual, frames, lengths, stream);
  }
  const double density = codec_.top_k().density();
  if (residual == nullptr) {
    return cuda::EncodeTopK(batch, density, gradient, frames, lengths, stream);
  }
  return cuda::EncodeTopKWithResidual(batch, density, gradient, residual, frames, lengths, stream);
}

absl::Status CudaEncoder::CopyToHost(uint32_t block, const float* gradient, std::span<float> bound,
                                     const Stream& stream) const {
  const BlockPlan& plan = plans_[block];
  const uint32_t segments = table_.segments_in_block(block);
  uint32_t end = 0;
  for (uint32_t first = 0; first < segments; first = end) {
    end = first + 1;
    while (end < segments && plan.encoded[end] == plan.encoded[first]) ++end;
    if (plan.encoded[first]) {
      const size_t at = plan.slots[first];
      RETURN_IF_ERROR(kernels::cuda::CopyToHostAsync(sent_[block].frames.data() + at,
                                                     device_->frames.As<std::byte>() + at,
                                                     plan.slots[end] - at, stream));
    } else {
      const uint64_t begin = SegmentAt(block, first).begin;
      RETURN_IF_ERROR(kernels::cuda::CopyToHostAsync(
          bound.data() + begin, gradient + begin,
          (SegmentAt(block, end - 1).end - begin) * sizeof(float), stream));
    }
  }
  return kernels::cuda::CopyToHostAsync(HostFactsOf(block).residual_squares(),
                                        device_->facts.data(), Facts::Bytes(plan.places.size()),
                                        stream);
}

// Compacts the frames in place: each moves behind the previous one.
std::vector<uint64_t> CudaEncoder::Take(uint32_t block) {
  Sent& sent = sent_[block];
  if (!sent.encoded_of.has_value()) return {};
  const uint32_t virtual_worker = *std::exchange(sent.encoded_of, std::nullopt);
  const BlockPlan& plan = plans_[block];
  const std::span<std::byte> frames = std::exchange(sent.frames, {});
  const Facts facts = HostFactsOf(block);
  std::vector<uint64_t> begins = {0};
  size_t place = 0;
  for (uint32_t i = 0; i < plan.encoded.size(); ++i) {
    const std::span<std::byte> out = frames.subspan(begins.back());
    if (!plan.encoded[i]) {
      const Segment& segment = SegmentAt(block, i);
      const std::span<const float> elements = sent.bound.subspan(segment.begin, segment.elements());
      begins.push_back(begins.back() + WriteFrame(0, nullptr, {}, elements, {}, out, scratch_));
      continue;
    }
    const size_t length = facts.lengths()[place++];
    TUG_CHECK_LE(FrameBytes(length), plan.slots[i + 1] - plan.slots[i]);
    const std::byte* const encoding = frames.data() + plan.slots[i] + kFrameHeaderBytes;
    std::memmove(out.data() + kFrameHeaderBytes, encoding, length);
    begins.push_back(begins.back() + FinishFrame(choice_.id(), length, out));
  }
  if (choice_.error_feedback()) {
    residuals_.at(virtual_worker).squares[block] = *facts.residual_squares();
  }
  return begins;
}

// ---- residuals ----

void CudaEncoder::GiveUpAllBut(std::span<const uint32_t> virtual_workers) {
  std::erase_if(residuals_, [&](const auto& residual) {
    return std::find(virtual_workers.begin(), virtual_workers.end(), residual.first) ==
           virtual_workers.end();
  });
}

absl::StatusOr<std::vector<SegmentResidual>> CudaEncoder::CopyResiduals(uint32_t virtual_worker) {
  std::vector<SegmentResidual> copies;
  const auto found = residuals_.find(virtual_worker);
  if (found == residuals_.end()) return copies;
  const Residual& residual = found->second;
  RETURN_IF_ERROR(device_->stream.WaitFor(device_->sent));
  for (uint32_t block = 0; block < plans_.size(); ++block) {
    if (!residual.begun[block]) continue;
    for (uint32_t i = 0; i < plans_[block].encoded.size(); ++i) {
      if (!plans_[block].encoded[i]) continue;
      const Segment& segment = SegmentAt(block, i);
      copies.push_back({table_.id(block, i), AlignedBuffer(segment.bytes())});
      RETURN_IF_ERROR(kernels::cuda::CopyToHostAsync(copies.back().values.data(),
                                                     ElementsOf(residual, block) + segment.begin,
                                                     segment.bytes(), device_->stream));
    }
  }
  RETURN_IF_ERROR(device_->stream.Synchronize());
  return copies;
}

absl::Status CudaEncoder::RestoreResiduals(uint32_t virtual_worker,
                                           std::span<const SegmentResidual> residuals) {
  residuals_.erase(virtual_worker);
  ASSIGN_OR_RETURN(Residual* const residual, ResidualOf(virtual_worker));
  for (const SegmentResidual& restored : residuals) {
    const Segment& segment = table_.segment(restored.segment);
    TUG_CHECK_EQ(restored.values.size_bytes(), segment.bytes());
    TUG_CHECK(plans_[segment.block].encoded[segment.index]);
    RETURN_IF_ERROR(
        kernels::cuda::CopyToDeviceAsync(ElementsOf(*residual, segment.block) + segment.begin,
                                         restored.values.data(), segment.bytes(), device_->stream));
    residual->begun[segment.block] = true;
    residual->squares[segment.block] += kernels::SumOfSquares(
        restored.values.floats().data(), static_cast<int64_t>(segment.elements()));
  }
  return device_->stream.Synchronize();
}

double CudaEncoder::ResidualSquares(uint32_t virtual_worker) const {
  const auto found = residuals_.find(virtual_worker);
  if (found == residuals_.end()) return 0;
  const std::vector<double>& squares = found->second.squares;
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceEncoder>> NewCudaEncoder(DeviceEncoderOptions options) {
  return std::make_unique<CudaEncoder>(std::move(options));
}

}  // namespace tug
