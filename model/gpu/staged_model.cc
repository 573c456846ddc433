// SPDX-License-Identifier: Apache-2.0
#include "model/gpu/staged_model.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "kernels/cuda/attention/attention_cuda.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/layernorm_cuda.h"
#include "model/backend/cuda_device.h"
#include "model/backend/stream_spans.h"
#include "model/layout.h"
#include "model/transformer/create_model.h"
#include "model/transformer/memory.h"

namespace tug {
namespace {

using kernels::Bf16;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::Event;
using kernels::cuda::Stream;

constexpr size_t kPageBytes = 4096;
// Below this size, registering costs more than faster copies gain.
constexpr size_t kMinPinnedBytes = size_t{64} << 10;

std::string Mebibytes(uint64_t bytes) {
  return absl::StrCat((bytes + (1 << 20) - 1) >> 20, " MiB");
}

absl::Status TooLittle(const DeviceBytes& plan, uint64_t free_bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the model needs ", Mebibytes(plan.total()), " of the GPU's memory (weights ",
      Mebibytes(plan.weights), ", their bf16 copies ", Mebibytes(plan.copies), ", gradients ",
      Mebibytes(plan.gradients), ", activations ", Mebibytes(plan.activations), ", attention ",
      Mebibytes(plan.attention), ", encoded gradients ", Mebibytes(plan.encoder), ", CUDA itself ",
      Mebibytes(plan.peers + kGpuProcessBytes), "), but only ", Mebibytes(free_bytes),
      " are free: lower train.micro_batch, set train.recompute to keep less, train.precision to "
      "BF16, or device to CPU"));
}

// Allocates a part of the plan.
absl::StatusOr<DeviceBuffer> Allocate(uint64_t bytes, const DeviceBytes& plan) {
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Create(bytes);
  if (!absl::IsResourceExhausted(buffer.status())) return buffer;
  ASSIGN_OR_RETURN(const kernels::cuda::DeviceFacts facts, kernels::cuda::GetDeviceFacts());
  return TooLittle(plan, facts.free_bytes);
}

absl::Status CheckKernels(const ModelConfig& config) {
  const uint32_t head = config.width() / std::max(1u, config.heads());
  if (head <= kernels::cuda::kMaxHeadDim && config.width() <= kernels::cuda::kMaxLayerNormWidth) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("no GPU kernels for this model: heads have ", head, " elements and LayerNorms ",
                   config.width(), ", but kernels support at most ", kernels::cuda::kMaxHeadDim,
                   " and ", kernels::cuda::kMaxLayerNormWidth));
}

// Part of a block of `bytes` that one of several GPUs copies.
struct PeerPart {
  PeerPart(size_t bytes, const GpuPeers& peers)
      : stride(DevicePartBytes(bytes, peers.world())),
        begin(std::min(peers.rank() * stride, bytes)),
        size(std::min(stride, bytes - begin)) {}

  size_t stride;  // from one part to the next; the last parts may be empty
  size_t begin, size;
};

class StagedModel final : public Model, public PassTracer {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Create(int gpu, std::unique_ptr<CudaDevice> device,
                                                       const GpuModelOptions& options,
                                                       const DeviceBytes& plan,
                                                       std::unique_ptr<GpuPeers> peers);
  ~StagedModel() override { Synchronize().IgnoreError(); }

  const BlockTable& blocks() const override { return inner_->blocks(); }
  std::optional<int> tied_block() const override { return inner_->tied_block(); }

  void BindWeights(int block, WeightsView weights) override;
  void ReleaseWeights(int block) override;
  uint64_t weight_copy_bytes() const override { return 0; }  // copies are on the GPU
  void BindGradient(int block, std::span<float> gradient) override;

  void Start(const MicroBatch& batch) override;
  void Forward(int block) override;
  void Backward(int block) override;
  LossSums losses() const override { return is_empty_ ? LossSums() : inner_->losses(); }

  bool queues() const override { return true; }
  absl::Status AwaitGradient(int block) override;
  std::shared_ptr<void> Pin(std::span<std::byte> host) override;
  void TraceNextPass(TraceTrack& track, const TraceEvent& about) override;
  absl::Status status() const override { return status_.ok() ? inner_->status() : status_; }
  absl::Status Synchronize() override;

  void Logits(std::span<const int32_t> tokens, std::span<float> logits) override;
  void Logits(const MicroBatch& batch, int position, std::span<float> logits) override;

 private:
  struct Block {
    std::byte* weights = nullptr;     // on the GPU
    std::span<float> gradient;        // on the GPU
    std::span<float> bound_gradient;  // the caller's, in host memory
    Event copied;                     // on pull_: the latest weights
    Event read;                       // on compute: the last pass that reads the weights
    Event complete;                   // on compute: the gradient
    Event sent;                       // on push_: the gradient
  };

  // Constructor arguments.
  struct Parts {
    int gpu;
    std::unique_ptr<CudaDevice> device;
    bool bf16_weights;
    std::unique_ptr<GpuPeers> peers;  // null: a single GPU
    GradientEncoder* encoder;         // null: gradients are copied as they are
    DeviceBuffer weights, gradients;  // of all blocks
    Stream pull, push;
    std::vector<Block> blocks;
    std::unique_ptr<Model> inner;
  };

  explicit StagedModel(Parts parts);

  Block& of(int block) { return blocks_[static_cast<size_t>(block)]; }
  const Stream& compute() const { return device_->compute_stream(); }
  // Calls f(b) for each block whose weights a pass of `block` reads.
  void ForEachRead(int block, absl::FunctionRef<void(int)> f);
  // Queues `f` unless there was an error. Waits ignore errors: work queued earlier still reads and
  // writes host memory.
  void Queue(absl::FunctionRef<absl::Status()> f) {
    if (status_.ok()) status_ = f();
  }
  // Binds the block's GPU memory to the inner model.
  void BindOnDevice(int block);
  // Runs a pass of each kind.
  absl::Status Rehearse(const ModelOptions& options);
  void WaitForWeights(int block);
  void RecordRead(int block);
  void SendGradient(int block);
  // Copies between host memory and a block's GPU memory, on pull_ and push_.
  absl::Status CopyFromHost(std::byte* weights, const void* host, size_t bytes);
  absl::Status CopyToHost(int block);
  void FillZeroGradient(int block);
  // Enclose the work of the announced pass on the compute stream.
  void BeginSpan();
  void EndSpan();
  void CollectSpans();
  // Waits for the event; after an error, when it may not have been recorded, for all work queued on
  // the stream.
  void Await(const Event& event, const Stream& stream) {
    status_.Update(status_.ok() ? event.Synchronize() : stream.Synchronize());
  }

  const int gpu_;
  const std::unique_ptr<CudaDevice> device_;
  const bool bf16_weights_;
  const std::unique_ptr<GpuPeers> peers_;
  GradientEncoder* const encoder_;
  const DeviceBuffer weights_, gradients_;
  const Stream pull_, push_;
  std::vector<Block> blocks_;
  const std::unique_ptr<Model> inner_;
  bool partial_ = false;  // of the current pass
  bool accumulate_ = false;
  bool is_empty_ = false;
  bool told_of_slow_copies_ = false;
  std::optional<StreamSpans> spans_;  // null: not traced
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<Model>> StagedModel::Create(int gpu,
                                                           std::unique_ptr<CudaDevice> device,
                                                           const GpuModelOptions& options,
                                                           const DeviceBytes& plan,
                                                           std::unique_ptr<GpuPeers> peers) {
  const uint32_t gpus = peers == nullptr ? 1 : peers->world();
  ASSIGN_OR_RETURN(DeviceBuffer weights, Allocate(plan.weights, plan));
  ASSIGN_OR_RETURN(DeviceBuffer gradients, Allocate(plan.gradients, plan));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> inner, CreateModel(options.model, *device));
  ASSIGN_OR_RETURN(Stream pull, Stream::Create());
  ASSIGN_OR_RETURN(Stream push, Stream::Create());
  if (options.encoder != nullptr) RETURN_IF_ERROR(options.encoder->Allocate());
  std::vector<Block> blocks;
  size_t weights_begin = 0, gradients_begin = 0;
  for (int b = 0; b < inner->num_blocks(); ++b) {
    ASSIGN_OR_RETURN(Event copied, Event::Create());
    ASSIGN_OR_RETURN(Event read, Event::Create());
    ASSIGN_OR_RETURN(Event complete, Event::Create());
    ASSIGN_OR_RETURN(Event sent, Event::Create());
    const uint64_t elements = ElementCount(inner->blocks().blocks(b));
    blocks.push_back(
        {.weights = weights.As<std::byte>() + weights_begin,
         .gradient = {reinterpret_cast<float*>(gradients.As<std::byte>() + gradients_begin),
                      elements},
         .copied = std::move(copied),
         .read = std::move(read),
         .complete = std::move(complete),
         .sent = std::move(sent)});
    weights_begin +=
        DeviceBlockBytes(elements, options.bf16_weights ? sizeof(Bf16) : sizeof(float), gpus);
    gradients_begin += DeviceBlockBytes(elements, sizeof(float), gpus);
  }
  TUG_CHECK_EQ(weights_begin, plan.weights);
  TUG_CHECK_EQ(gradients_begin, plan.gradients);
  const bool has_peers = peers != nullptr;
  auto model = absl::WrapUnique(new StagedModel({.gpu = gpu,
                                                 .device = std::move(device),
                                                 .bf16_weights = options.bf16_weights,
                                                 .peers = std::move(peers),
                                                 .encoder = options.encoder,
                                                 .weights = std::move(weights),
                                                 .gradients = std::move(gradients),
                                                 .pull = std::move(pull),
                                                 .push = std::move(push),
                                                 .blocks = std::move(blocks),
                                                 .inner = std::move(inner)}));
  if (has_peers) RETURN_IF_ERROR(model->Rehearse(options.model));
  return model;
}

StagedModel::StagedModel(Parts parts)
    : gpu_(parts.gpu),
      device_(std::move(parts.device)),
      bf16_weights_(parts.bf16_weights),
      peers_(std::move(parts.peers)),
      encoder_(parts.encoder),
      weights_(std::move(parts.weights)),
      gradients_(std::move(parts.gradients)),
      pull_(std::move(parts.pull)),
      push_(std::move(parts.push)),
      blocks_(std::move(parts.blocks)),
      inner_(std::move(parts.inner)) {
  for (int b = 0; b < num_blocks(); ++b) inner_->BindGradient(b, of(b).gradient);
}

void StagedModel::BindWeights(int block, WeightsView weights) {
  Block& to = of(block);
  TUG_CHECK_EQ(weights.size(), to.gradient.size());
  TUG_CHECK_EQ(!weights.bf16.empty(), bf16_weights_);
  const void* const host = bf16_weights_ ? static_cast<const void*>(weights.bf16.data())
                                         : static_cast<const void*>(weights.fp32.data());
  const size_t bytes = weights.fp32.size_bytes() + weights.bf16.size_bytes();
  Queue([&]() -> absl::Status {
    RETURN_IF_ERROR(pull_.WaitFor(to.read));
    RETURN_IF_ERROR(CopyFromHost(to.weights, host, bytes));
    return to.copied.Record(pull_);
  });
  BindOnDevice(block);
}

void StagedModel::BindOnDevice(int block) {
  const std::byte* const weights = of(block).weights;
  const size_t elements = of(block).gradient.size();
  if (bf16_weights_) {
    inner_->BindWeights(block, {.bf16 = {reinterpret_cast<const Bf16*>(weights), elements}});
  } else {
    inner_->BindWeights(block, {.fp32 = {reinterpret_cast<const float*>(weights), elements}});
  }
}

// Weights were never written, so the results are meaningless.
absl::Status StagedModel::Rehearse(const ModelOptions& options) {
  const ModelConfig& config = options.config;
  const auto samples = static_cast<size_t>(options.max_micro_batch);
  const std::vector<int32_t> zeros(samples * config.context());
  const std::vector<int32_t> lengths(samples, static_cast<int32_t>(config.context()));
  MicroBatch batch{.samples = options.max_micro_batch, .tokens = zeros, .targets = zeros};
  if (config.family() != ModelConfig::DECODER) batch.lengths = lengths;
  if (config.family() == ModelConfig::ENCODER) batch.targets = batch.targets.first(samples);
  if (config.family() == ModelConfig::ENCODER_DECODER) batch.decoder_tokens = zeros;
  for (int b = 0; b < num_blocks(); ++b) BindOnDevice(b);
  for (const bool training : {true, false}) {
    if (training && options.inference) continue;
    batch.training = training;
    inner_->Start(batch);
    for (int b = 0; b < num_blocks(); ++b) inner_->Forward(b);
    for (int b = num_blocks() - 1; b >= 0 && training; --b) inner_->Backward(b);
    inner_->losses();
  }
  return inner_->Synchronize();
}

// GPU memory is kept: it is part of the plan.
void StagedModel::ReleaseWeights(int block) { Await(of(block).copied, pull_); }

void StagedModel::BindGradient(int block, std::span<float> gradient) {
  TUG_CHECK_EQ(gradient.size(), of(block).gradient.size());
  of(block).bound_gradient = gradient;
}

void StagedModel::Start(const MicroBatch& batch) {
  partial_ = batch.partial;
  accumulate_ = batch.accumulate;
  is_empty_ = batch.samples == 0 && peers_ != nullptr;
  if (!is_empty_) inner_->Start(batch);
}

void StagedModel::ForEachRead(int block, absl::FunctionRef<void(int)> f) {
  f(block);
  const std::optional<int> tied = tied_block();
  if (tied.has_value() && block + 1 == num_blocks()) f(*tied);
}

void StagedModel::WaitForWeights(int block) {
  ForEachRead(block, [&](int read) { Queue([&] { return compute().WaitFor(of(read).copied); }); });
}

void StagedModel::RecordRead(int block) {
  ForEachRead(block, [&](int read) { Queue([&] { return of(read).read.Record(compute()); }); });
}

void StagedModel::Forward(int block) {
  WaitForWeights(block);
  BeginSpan();
  if (!is_empty_) inner_->Forward(block);
  EndSpan();
  RecordRead(block);
}

void StagedModel::Backward(int block) {
  WaitForWeights(block);
  ForEachRead(block,
              [&](int written) { Queue([&] { return compute().WaitFor(of(written).sent); }); });
  BeginSpan();
  if (is_empty_) {
    FillZeroGradient(block);
  } else {
    inner_->Backward(block);
  }
  EndSpan();
  RecordRead(block);
  if (!partial_) SendGradient(block);
}

void StagedModel::SendGradient(int block) {
  Block& from = of(block);
  TUG_CHECK_EQ(from.bound_gradient.size(), from.gradient.size()) << "no gradient is bound";
  Queue([&]() -> absl::Status {
    RETURN_IF_ERROR(from.complete.Record(compute()));
    RETURN_IF_ERROR(push_.WaitFor(from.complete));
    RETURN_IF_ERROR(CopyToHost(block));
    return from.sent.Record(push_);
  });
}

absl::Status StagedModel::CopyFromHost(std::byte* weights, const void* host, size_t bytes) {
  if (peers_ == nullptr) return kernels::cuda::CopyToDeviceAsync(weights, host, bytes, pull_);
  const PeerPart part(bytes, *peers_);
  RETURN_IF_ERROR(kernels::cuda::CopyToDeviceAsync(
      weights + part.begin, static_cast<const std::byte*>(host) + part.begin, part.size, pull_));
  return peers_->AllGather(weights, part.stride, pull_);
}

absl::Status StagedModel::CopyToHost(int block) {
  const std::span<float> gradient = of(block).gradient, host = of(block).bound_gradient;
  if (encoder_ != nullptr) return encoder_->Send(block, gradient, host, push_);
  if (peers_ == nullptr) {
    return kernels::cuda::CopyToHostAsync(host.data(), gradient.data(), host.size_bytes(), push_);
  }
  const PeerPart part(host.size_bytes(), *peers_);
  RETURN_IF_ERROR(peers_->ReduceScatter(gradient.data(), part.stride / sizeof(float), push_));
  const size_t first = part.begin / sizeof(float);
  return kernels::cuda::CopyToHostAsync(host.data() + first, gradient.data() + first, part.size,
                                        push_);
}

// Gradient of a pass without samples. What the head would add for a tied block is zero too.
void StagedModel::FillZeroGradient(int block) {
  if (accumulate_) return;
  const std::span<float> gradient = of(block).gradient;
  Queue([&] {
    return kernels::cuda::FillZeroAsync(gradient.data(), gradient.size_bytes(), compute());
  });
}

absl::Status StagedModel::AwaitGradient(int block) {
  Await(of(block).sent, push_);
  CollectSpans();
  return status();
}

void StagedModel::TraceNextPass(TraceTrack& track, const TraceEvent& about) {
  if (!spans_.has_value()) spans_.emplace(compute());
  spans_->Announce(track, about);
}

void StagedModel::BeginSpan() {
  if (spans_.has_value()) Queue([&] { return spans_->Begin(); });
}

void StagedModel::EndSpan() {
  if (spans_.has_value()) Queue([&] { return spans_->End(); });
}

void StagedModel::CollectSpans() {
  if (spans_.has_value()) Queue([&] { return spans_->Collect(); });
}

// Registration covers whole pages; a piece of the heap would share its pages with other data.
std::shared_ptr<void> StagedModel::Pin(std::span<std::byte> host) {
  const bool at_page = reinterpret_cast<uintptr_t>(host.data()) % kPageBytes == 0;
  if (!at_page || host.size() < kMinPinnedBytes) return nullptr;
  auto registered = kernels::cuda::RegisteredMemory::Create(host.data(), host.size());
  if (!registered.ok()) {
    if (!std::exchange(told_of_slow_copies_, true)) {
      LogWarning("host memory cannot be pinned: its copies delay the computation of the GPU",
                 {{"error", std::string(registered.status().message())}});
    }
    return nullptr;
  }
  return std::make_shared<kernels::cuda::RegisteredMemory>(*std::move(registered));
}

// Runs on whichever thread uses or destroys the model. A thread that has never used a GPU would
// otherwise create a context on device 0.
absl::Status StagedModel::Synchronize() {
  status_.Update(kernels::cuda::UseDevice(gpu_));
  status_.Update(pull_.Synchronize());
  status_.Update(inner_->Synchronize());
  status_.Update(push_.Synchronize());
  CollectSpans();
  return status();
}

void StagedModel::Logits(std::span<const int32_t> tokens, std::span<float> logits) {
  for (int b = 0; b < num_blocks(); ++b) WaitForWeights(b);
  inner_->Logits(tokens, logits);
}

void StagedModel::Logits(const MicroBatch& batch, int position, std::span<float> logits) {
  for (int b = 0; b < num_blocks(); ++b) WaitForWeights(b);
  inner_->Logits(batch, position, logits);
}

}  // namespace

absl::StatusOr<GpuModel> NewStagedModel(int gpu, const GpuModelOptions& options,
                                        std::unique_ptr<GpuPeers> peers) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<CudaDevice> device,
      NewCudaDevice(gpu, peers == nullptr ? GraphUse::kWhereLaunchesDominate : GraphUse::kNever));
  ASSIGN_OR_RETURN(const kernels::cuda::DeviceFacts facts, kernels::cuda::GetDeviceFacts());
  RETURN_IF_ERROR(CheckKernels(options.model.config));
  const DeviceBytes plan =
      PredictDeviceBytes(options.model, options.bf16_weights, peers == nullptr ? 1 : peers->world(),
                         options.encoder == nullptr ? 0 : options.encoder->device_bytes());
  if (plan.total() > facts.free_bytes) return TooLittle(plan, facts.free_bytes);
  GpuModel made{.device = absl::StrCat(facts.name, ", ", facts.memory_bytes >> 30, " GiB"),
                .device_bytes = plan.total(),
                .encodes = options.encoder != nullptr};
  ASSIGN_OR_RETURN(made.model,
                   StagedModel::Create(gpu, std::move(device), options, plan, std::move(peers)));
  made.tracer = dynamic_cast<PassTracer*>(made.model.get());
  return made;
}

}  // namespace tug
