// SPDX-License-Identifier: Apache-2.0
#include "worker/training_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "blocks/codec_choice.h"
#include "config/placement_mode.h"
#include "config/push_plan.h"
#include "kernels/bf16.h"

namespace tug {
namespace {

std::optional<uint32_t> TiedBlock(const Model& model) {
  if (!model.tied_block().has_value()) return std::nullopt;
  return static_cast<uint32_t>(*model.tied_block());
}

// Bytes of the weights, by block.
std::vector<size_t> WeightBytes(const SegmentTable& table, bool bf16) {
  std::vector<size_t> bytes;
  for (uint32_t block = 0; block < table.num_blocks(); ++block) {
    bytes.push_back(table.block_elements(block) * (bf16 ? sizeof(kernels::Bf16) : sizeof(float)));
  }
  return bytes;
}

std::span<std::byte> BytesOf(AlignedBuffer& buffer) { return {buffer.data(), buffer.size_bytes()}; }

// Wraps `bytes` of `memory`, pinned for its lifetime.
template <typename Memory>
AlignedBuffer Pinned(std::span<std::byte> bytes, Memory memory, std::shared_ptr<void> pin) {
  struct Owner {
    Memory memory;
    std::shared_ptr<void> pin;  // destroyed first
  };
  return AlignedBuffer(std::make_shared<Owner>(std::move(memory), std::move(pin)), bytes);
}

WeightMemory MakeWeightMemory(const TrainingLoopOptions& options, const SegmentTable& table,
                              const std::optional<BlockWindow>& window) {
  const bool bf16 = PushPlanOf(options.config).binds_bf16;
  return {WeightBytes(table, bf16),
          options.in_place.empty() ? std::vector<bool>(table.num_blocks()) : options.in_place,
          window, bf16};
}

}  // namespace

TrainingLoop::TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Model& model,
                           const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board)
    : options_(std::move(options)),
      table_(table),
      model_(model),
      sampler_(sampler),
      exchange_(exchange),
      board_(board),
      batches_(options_.config, sampler_),
      replays_(options_.config.compute() == JobConfig::REPLAY),
      straggler_(options_.config),
      window_(WindowOf(options_.config, table_.num_blocks(), TiedBlock(model_))),
      core_(CoreOptions(), *this, board),
      whole_(table_.num_blocks()),
      weight_memory_(MakeWeightMemory(options_, table_, window_)),
      times_(exchange_, options_.trace) {
  AllocateBuffers();
  ChooseRuns();
  if (PushPlanOf(options_.config).worker_clips && !replays_) {
    change_.emplace(options_.config, table_,
                    static_cast<uint32_t>(options_.virtual_workers.size()));
  }
}

TrainingLoop::~TrainingLoop() { model_.Synchronize().IgnoreError(); }

WorkerCore::Options TrainingLoop::CoreOptions() const {
  return {.config = options_.config,
          .virtual_workers = options_.virtual_workers,
          .start_clocks = options_.start_clocks,
          .start_version = options_.start_version,
          .view = options_.view,
          .blocks = table_.num_blocks(),
          .micro_batches = batches_.micro_batches(),
          .window = window_,
          .eval_micro_batches =
              [this](uint32_t virtual_worker, bool last) {
                return batches_.EvalMicroBatches(virtual_worker, last);
              },
          .saves_residuals = options_.residuals != nullptr};
}

// With several micro-batches the first one produces gradients of all blocks, and only the last one
// completes them.
void TrainingLoop::AllocateBuffers() {
  if (PlacementModeOf(options_.config).frees_gradients) {
    gradient_pool_.emplace(
        WeightBytes(table_, /*bf16=*/false),
        GradientBlocks(options_.config.placement(), batches_.micro_batches(), table_.num_blocks()),
        [this](size_t size_bytes) { return NewBuffer(size_bytes); });
  }
  if (options_.encoder != nullptr) {
    encoded_.emplace(*options_.encoder,
                     [this](size_t size_bytes) { return NewBuffer(size_bytes); });
  }
  gradients_.resize(options_.virtual_workers.size());
  for (auto& gradients : gradients_) gradients = NewGradients();
  for (uint32_t block = 0; block < table_.num_blocks() && !window_.has_value(); ++block) {
    AlignedBuffer& weights = weight_memory_.of(block);
    const std::span<std::byte> bytes = BytesOf(weights);
    std::shared_ptr<void> pin = model_.Pin(bytes);
    if (pin != nullptr) weights = Pinned(bytes, std::move(weights), std::move(pin));
  }
}

std::shared_ptr<AlignedBuffer> TrainingLoop::NewBuffer(size_t size_bytes) {
  std::shared_ptr<AlignedBuffer> buffer = exchange_.NewBuffer(size_bytes);
  const std::span<std::byte> bytes = BytesOf(*buffer);
  std::shared_ptr<void> pin = model_.Pin(bytes);
  if (pin == nullptr) return buffer;
  return std::make_shared<AlignedBuffer>(Pinned(bytes, std::move(buffer), std::move(pin)));
}

std::vector<std::shared_ptr<AlignedBuffer>> TrainingLoop::NewGradients() {
  std::vector<std::shared_ptr<AlignedBuffer>> gradients(table_.num_blocks());
  if (gradient_pool_.has_value()) return gradients;
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    gradients[block] = NewBuffer(table_.block_elements(block) * sizeof(float));
  }
  return gradients;
}

// Runs are FP32: with another format, or a codec for part of the block, it is exchanged whole, or
// the rows would have other bits than without runs. It is also whole where the requested rows may
// change: local steps change all rows, and a step that becomes a later one touches others. With a
// window, the other rows would be gone.
void TrainingLoop::ChooseRuns() {
  const CommConfig& comm = options_.config.comm();
  if (replays_ || options_.config.sync().local_steps() > 1) return;
  if (model_.tied_block() == 0 || !comm.sparse_embeddings() || options_.shares_memory) return;
  const BlockSpec& embedding = model_.blocks().blocks(0);
  const CodecChoice codecs(comm.push_codec(), BlockNames(model_.blocks()));
  if (!codecs.Encodes(table_, 0)) pushed_runs_.emplace(embedding, sampler_);
  if (comm.pull_format() != CommConfig::FP32 || core_.mode().skips_steps || window_.has_value())
    return;
  pulled_runs_.emplace(embedding, sampler_);
}

absl::Status TrainingLoop::Run() {
  times_.Begin();
  while (true) {
    RETURN_IF_ERROR(core_.RefreshOrders());
    if (core_.next() != WorkerCore::Next::kCompute) RETURN_IF_ERROR(FinishQueued());
    NoteActivity();
    switch (core_.next()) {
      case WorkerCore::Next::kFinished:
        return core_.OnFinished();
      case WorkerCore::Next::kAwaitOrders:
        RETURN_IF_ERROR(board_.WaitForOrdersOtherThan(core_.orders()));
        times_.Begin();  // the wait is not part of the step
        break;
      case WorkerCore::Next::kAct:
        RETURN_IF_ERROR(core_.Act());
        break;
      case WorkerCore::Next::kAwaitWeights:
        RETURN_IF_ERROR(WaitForWeights(core_.awaited()));
        break;
      case WorkerCore::Next::kCompute:
        RETURN_IF_ERROR(RunCompute(core_.compute()));
        break;
    }
  }
}

void TrainingLoop::NoteActivity() {
  using Doing = CurrentActivity::Doing;
  const StepMachine::Activity now = core_.activity();
  const Doing doing = now.next == StepMachine::Next::kCompute       ? Doing::kComputing
                      : now.next == StepMachine::Next::kWaitWeights ? Doing::kWaiting
                                                                    : Doing::kResting;
  activity_.Set(doing, now.block, now.clock, time_.Now());
}

void TrainingLoop::Carry(const std::vector<uint32_t>& virtual_workers,
                         const std::vector<std::optional<uint32_t>>& before) {
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients;
  for (const std::optional<uint32_t>& had : before) {
    gradients.push_back(had.has_value() ? std::move(gradients_[*had]) : NewGradients());
  }
  gradients_ = std::move(gradients);
  if (change_.has_value()) change_->Carry(before);
  exchange_.SetCarried({virtual_workers});
  if (encoded_.has_value()) encoded_->GiveUpAllBut(virtual_workers);
}

absl::Status TrainingLoop::RunCompute(const Compute compute) {
  const bool last_block = compute.block + 1 == table_.num_blocks();
  core_.BeginCompute();
  if (compute.phase == ComputePhase::kBackward) {
    RETURN_IF_ERROR(BindGradients(compute, last_block));
  }
  const bool is_queued = model_.queues() && compute.phase == ComputePhase::kBackward;
  const absl::Time begin = time_.Now();
  absl::Duration taken;
  if (options_.tracer) options_.tracer->TraceNextPass(*options_.device_trace, EventOf(compute));
  {
    const TraceSpan span(options_.trace, EventOf(compute));
    if (compute.phase == ComputePhase::kBackward) {
      model_.Backward(static_cast<int>(compute.block));
      CountHeld();
      if (!is_queued) RETURN_IF_ERROR(FinishBackward(compute));
    } else {
      RETURN_IF_ERROR(RunForward(compute, last_block));
    }
    taken = time_.Now() - begin;
    if (!is_queued) RETURN_IF_ERROR(CountTime(compute, taken));
  }
  const Queued queued{core_.OnComputeDone(), taken};
  RETURN_IF_ERROR(FinishQueued());
  // The block below is the next computation.
  if (is_queued && compute.block > 0) {
    queued_ = queued;
    return absl::OkStatus();
  }
  return Finish(queued);
}

absl::Status TrainingLoop::FinishQueued() {
  if (!queued_.has_value()) return absl::OkStatus();
  return Finish(*std::exchange(queued_, std::nullopt));
}

absl::Status TrainingLoop::Finish(const Queued& queued) {
  const Compute& compute = queued.computed.compute;
  if (model_.queues() && compute.phase == ComputePhase::kBackward) {
    const TraceSpan span(options_.trace, EventOf(compute));
    const absl::Time begin = time_.Now();
    RETURN_IF_ERROR(FinishBackward(compute));
    RETURN_IF_ERROR(CountTime(compute, queued.taken + (time_.Now() - begin)));
  }
  return core_.Finish(queued.computed);
}

// Called within the trace span of the computation, which shows the reported compute time.
absl::Status TrainingLoop::CountTime(const Compute& compute, absl::Duration taken) {
  if (compute.phase == ComputePhase::kEvaluate) return absl::OkStatus();
  times_.AddComputing(taken);
  return Straggle(compute, taken);
}

TraceEvent TrainingLoop::EventOf(const Compute& compute) const {
  const TraceKind kind = compute.phase == ComputePhase::kForward    ? TraceKind::kForward
                         : compute.phase == ComputePhase::kBackward ? TraceKind::kBackward
                                                                    : TraceKind::kEvaluate;
  return {.kind = kind,
          .block = compute.block,
          .virtual_worker = core_.NumberOf(compute),
          .clock = compute.clock};
}

absl::Status TrainingLoop::Straggle(const Compute& compute, absl::Duration taken) {
  const uint32_t virtual_worker = core_.NumberOf(compute);
  absl::Duration time = straggler_.Slowdown(virtual_worker, taken);
  const bool ends_step = compute.phase == ComputePhase::kBackward && compute.block == 0 &&
                         batches_.IsLastMicroBatch(compute) && batches_.IsLastLocalStep(compute);
  if (ends_step) time += straggler_.Pause(compute.clock, virtual_worker);
  if (time <= absl::ZeroDuration()) return absl::OkStatus();
  const absl::Time begin = time_.Now();
  RETURN_IF_ERROR(board_.Sleep(time));
  times_.AddStraggling(time_.Now() - begin);
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunForward(const Compute& compute, bool last_block) {
  const bool evaluating = compute.phase == ComputePhase::kEvaluate;
  if (compute.block == 0) {
    if (evaluating) {
      RETURN_IF_ERROR(WaitForWholeWeights(0));
      StartModel(batches_.Evaluation(compute, core_.NumberOf(compute), core_.evaluating_last()));
    } else {
      StartTraining(compute);
    }
  }
  // In local steps each virtual worker begins from the pulled weights and continues from its own.
  if (!evaluating && change_.has_value() && change_->takes_local_steps() &&
      compute.micro_batch == 0) {
    const std::span<const float> local = change_->LocalWeights(compute);
    model_.BindWeights(static_cast<int>(compute.block), local.empty()
                                                            ? weight_memory_.ViewOf(compute.block)
                                                            : WeightsView{.fp32 = local});
  }
  model_.Forward(static_cast<int>(compute.block));
  CountHeld();
  if (!evaluating || !last_block) return absl::OkStatus();
  core_.share().Add(model_.losses());
  return model_.status();
}

// For a model that queues, the host waits for the losses, and so does the block below: a push
// states how many targets its gradient sums.
absl::Status TrainingLoop::FinishBackward(const Compute& compute) {
  if (compute.block + 1 == table_.num_blocks()) core_.share().Add(model_.losses());
  if (!batches_.IsLastMicroBatch(compute)) return absl::OkStatus();
  RETURN_IF_ERROR(model_.AwaitGradient(static_cast<int>(compute.block)));
  if (change_.has_value()) {
    change_->OnGradient(compute, core_.share().sums.targets - targets_before_, [&](uint32_t block) {
      return GradientChange::Block{GradientOf(compute, block), weight_memory_.ViewOf(block).fp32};
    });
  }
  return absl::OkStatus();
}

void TrainingLoop::StartTraining(const Compute& compute) {
  const uint32_t virtual_worker = core_.NumberOf(compute);
  activity_.Set(CurrentActivity::Doing::kReading, 0, compute.clock, time_.Now());
  const MicroBatch batch = batches_.Training(compute, virtual_worker);
  NoteActivity();
  if (compute.micro_batch == 0) targets_before_ = core_.share().sums.targets;
  if (encoded_.has_value()) encoded_->encoder().Start(virtual_worker, compute.clock);
  StartModel(batch);
}

void TrainingLoop::StartModel(const MicroBatch& batch) {
  model_.Start(batch);
  core_.share().tokens += batches_.tokens();
}

}  // namespace tug
