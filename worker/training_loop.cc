#include "worker/training_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "exchange/codec_choice.h"
#include "exchange/worker_place.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "model/job_model.h"
#include "proto/placement_mode.h"
#include "worker/orders_gate.h"

namespace tug {
namespace {

static_assert(kNoSampleTarget == kernels::kNoTarget);

std::optional<BlockWindow> WindowOf(const JobConfig& config, const Model& model) {
  if (!PlacementModeOf(config).frees_weights) return std::nullopt;
  std::optional<uint32_t> tied;
  if (model.tied_block().has_value()) tied = static_cast<uint32_t>(*model.tied_block());
  return BlockWindow(static_cast<uint32_t>(model.num_blocks()),
                     config.placement().prefetch_blocks(), tied);
}

// By block.
std::vector<size_t> WeightBytes(const SegmentTable& table, bool bf16) {
  std::vector<size_t> bytes;
  for (uint32_t block = 0; block < table.num_blocks(); ++block) {
    bytes.push_back(table.block_elements(block) * (bf16 ? sizeof(kernels::Bf16) : sizeof(float)));
  }
  return bytes;
}

std::span<std::byte> BytesOf(AlignedBuffer& buffer) { return {buffer.data(), buffer.size_bytes()}; }

// `bytes`, of `memory`, as long as they are pinned.
template <typename Memory>
AlignedBuffer Pinned(std::span<std::byte> bytes, Memory memory, std::shared_ptr<void> pin) {
  struct Owner {
    Memory memory;
    std::shared_ptr<void> pin;  // goes first
  };
  return AlignedBuffer(std::make_shared<Owner>(std::move(memory), std::move(pin)), bytes);
}

std::vector<bool> InPlace(const TrainingLoopOptions& options, const SegmentTable& table) {
  return options.in_place.empty() ? std::vector<bool>(table.num_blocks(), false) : options.in_place;
}

}  // namespace

bool BindsBf16(const JobConfig& config) {
  return config.train().precision() == TrainConfig::BF16 &&
         config.comm().pull_format() == CommConfig::BF16 && config.sync().local_steps() <= 1;
}

TrainingLoop::TrainingLoop(TrainingLoopOptions options, const SegmentTable& table, Model& model,
                           const Sampler& sampler, ExchangeClient& exchange, ControlBoard& board)
    : options_(std::move(options)),
      mode_(SyncModeOf(options_.config.sync().policy())),
      table_(table),
      model_(model),
      sampler_(sampler),
      exchange_(exchange),
      board_(board),
      micro_batch_(options_.config.train().micro_batch()),
      local_(std::max(1u, options_.config.sync().local_steps())),
      replays_(options_.config.compute() == JobConfig::REPLAY),
      bf16_weights_(BindsBf16(options_.config)),
      clips_(ClipsInWorker(options_.config)),
      straggler_(options_.config),
      window_(WindowOf(options_.config, model_)),
      machine_(MakeMachineOptions()),
      weights_(table_.num_blocks()),
      weight_memory_(WeightBytes(table_, bf16_weights_), InPlace(options_, table_), window_),
      clip_(options_.config.optimizer(), table_.num_blocks()),
      due_residuals_(
          {options_.config.checkpoint().interval(), options_.start_version, mode_.update_per_push}),
      times_(exchange_, options_.trace) {
  AllocateBuffers();
  ChooseRuns();
  if (local_ > 1 && !replays_) {
    local_steps_.emplace(options_.config, table_,
                         static_cast<uint32_t>(options_.virtual_workers.size()));
  }
}

TrainingLoop::~TrainingLoop() { model_.Synchronize().IgnoreError(); }

StepMachineOptions TrainingLoop::MakeMachineOptions() const {
  StepMachineOptions machine;
  machine.blocks = table_.num_blocks();
  machine.virtual_workers = static_cast<uint32_t>(options_.virtual_workers.size());
  machine.micro_batches = sampler_.share() / micro_batch_;
  machine.local_steps = local_;
  machine.mode = mode_;
  machine.start_version = options_.start_version;
  machine.start_clocks = options_.start_clocks;
  machine.steps = options_.config.train().steps();
  machine.window = window_;
  machine.eval_interval = options_.config.train().eval_interval();
  machine.eval_micro_batches = [this](uint32_t index, bool last) {
    const uint64_t samples =
        sampler_.EvalShare(EvalSamples(last), options_.virtual_workers[index]).count;
    return static_cast<uint32_t>((samples + micro_batch_ - 1) / micro_batch_);
  };
  return machine;
}

// With several micro-batches the gradients of all blocks are made in the first one, and are
// complete in the last one only.
void TrainingLoop::AllocateBuffers() {
  if (PlacementModeOf(options_.config).frees_gradients) {
    gradient_pool_.emplace(WeightBytes(table_, /*bf16=*/false),
                           GradientBlocks(options_.config.placement(),
                                          sampler_.share() / micro_batch_, table_.num_blocks()),
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

// Runs are FP32, so with another format, or a codec for some of it, the block is exchanged whole,
// or the rows would have other bits than without runs. So it is where rows do not stay those that
// were asked for: local steps change all, and a step that becomes a later one touches others. With
// a window the others are gone by then.
void TrainingLoop::ChooseRuns() {
  const CommConfig& comm = options_.config.comm();
  if (replays_ || local_ > 1) return;
  if (model_.tied_block() == 0 || !comm.sparse_embeddings() || options_.shares_memory) return;
  const BlockSpec& embedding = model_.blocks().blocks(0);
  const CodecChoice codecs(comm.push_codec(), BlockNames(model_.blocks()));
  if (!codecs.Encodes(table_, 0)) pushed_runs_.emplace(embedding, sampler_);
  if (comm.pull_format() != CommConfig::FP32 || mode_.skips_steps || window_.has_value()) return;
  pulled_runs_.emplace(embedding, sampler_);
}

absl::Status TrainingLoop::Run() {
  times_.Begin();
  while (true) {
    RETURN_IF_ERROR(TakeOrders());
    if (orders_.go && !std::exchange(running_, true)) RETURN_IF_ERROR(PullFirstWeights());
    if (machine_.next() != StepMachine::Next::kCompute) RETURN_IF_ERROR(FinishQueued());
    NoteActivity();
    switch (machine_.next()) {
      case StepMachine::Next::kFinished:
        for (uint32_t i = 0; i < options_.virtual_workers.size(); ++i) {
          RETURN_IF_ERROR(SaveResiduals(
              i, due_residuals_.AtEnd(options_.virtual_workers[i], orders_.final_version)));
        }
        board_.SetState({true, machine_.begun().value_or(machine_.clock() - 1), machine_.paused(),
                         true, schedule_.number, view_});
        return absl::OkStatus();
      case StepMachine::Next::kWaitGate:
        RETURN_IF_ERROR(board_.WaitForOrdersOtherThan(orders_));
        times_.Begin();  // the wait is no part of the step
        break;
      case StepMachine::Next::kPull:
        if (!running_) {
          RETURN_IF_ERROR(board_.WaitForOrdersOtherThan(orders_));
          times_.Begin();
          break;
        }
        Pull(machine_.pull(), EvaluationDue(machine_.pull().clock));
        machine_.OnPulling();
        break;
      case StepMachine::Next::kDrop:
        RETURN_IF_ERROR(DropWeights(machine_.drop()));
        machine_.OnDropped();
        break;
      case StepMachine::Next::kWaitWeights:
        RETURN_IF_ERROR(WaitForWeights(machine_.awaited()));
        break;
      case StepMachine::Next::kCompute:
        RETURN_IF_ERROR(RunCompute(machine_.compute()));
        break;
    }
  }
}

void TrainingLoop::NoteActivity() {
  using Doing = CurrentActivity::Doing;
  const StepMachine::Activity now = machine_.activity();
  const Doing doing = now.next == StepMachine::Next::kCompute       ? Doing::kComputing
                      : now.next == StepMachine::Next::kWaitWeights ? Doing::kWaiting
                                                                    : Doing::kResting;
  activity_.Set(doing, now.block, now.clock, time_.Now());
}

// Not before everyone is ready: a lane that is still in the timeline before would refuse it. With a
// window the machine says which.
absl::Status TrainingLoop::PullFirstWeights() {
  for (uint32_t block = 0; block < table_.num_blocks() && !window_.has_value(); ++block) {
    Pull(machine_.CurrentPull(block), /*whole=*/false);
  }
  // One that joins amid the timeline has nothing of what was passed before.
  for (uint32_t i = 0; i < options_.virtual_workers.size(); ++i) {
    RETURN_IF_ERROR(SaveResidualsAt(i, machine_.next_clock(i)));
  }
  return absl::OkStatus();
}

// Orders of the coordinator first, then what follows from them is published: once a pause is
// published, the machine has taken it and begins no further step.
absl::Status TrainingLoop::TakeOrders() {
  RETURN_IF_ERROR(board_.cancelled());
  const bool changed = board_.TakeOrders(orders_);
  const uint32_t view = view_;
  RETURN_IF_ERROR(TakePlace());
  if (changed || view_ != view) machine_.SetGate(GateOf(orders_, options_.virtual_workers));
  board_.SetState({.started = machine_.begun().has_value(),
                   .clock = machine_.begun().value_or(0),
                   .pausing = orders_.pause,
                   .finished = false,
                   .schedule = schedule_.number,
                   .view = view_});
  return absl::OkStatus();
}

absl::Status TrainingLoop::TakePlace() {
  if (orders_.view == view_ || !machine_.CanPutBack()) return absl::OkStatus();
  const WorkerPlace place = board_.place();
  std::vector<uint32_t>& carried = options_.virtual_workers;
  std::vector<StepMachine::Carried> now;
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients;
  std::vector<std::optional<uint32_t>> before;
  const bool same = place.virtual_workers == carried;
  std::vector<uint32_t> came;  // by index
  for (size_t i = 0; i < place.virtual_workers.size(); ++i) {
    const auto had = std::find(carried.begin(), carried.end(), place.virtual_workers[i]);
    if (had == carried.end()) {
      before.emplace_back(std::nullopt);
      came.push_back(static_cast<uint32_t>(i));
      now.push_back({.clock = place.start_clocks[i]});
      gradients.push_back(NewGradients());
      continue;
    }
    before.emplace_back(static_cast<uint32_t>(had - carried.begin()));
    now.push_back({.clock = machine_.next_clock(*before.back()), .before = before.back()});
    gradients.push_back(std::move(gradients_[*before.back()]));
  }
  view_ = orders_.view;
  gradients_ = std::move(gradients);
  if (same) return absl::OkStatus();
  carried = place.virtual_workers;
  if (local_steps_.has_value()) local_steps_->Carry(before);
  exchange_.SetCarried({carried});
  if (encoded_.has_value()) encoded_->GiveUpAllBut(carried);
  share_ = {};
  step_shares_.clear();
  held_.clear();
  machine_.Carry(now);
  for (const uint32_t index : came) {
    due_residuals_.Forget(carried[index]);
    came_in_view_[carried[index]] = view_;
    RETURN_IF_ERROR(SaveResidualsAt(index, machine_.next_clock(index)));
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunCompute(const Compute compute) {
  const bool last_block = compute.block + 1 == table_.num_blocks();
  const bool first = compute.phase == ComputePhase::kForward && step_shares_.empty() &&
                     compute.micro_batch == 0 && compute.block == 0 && compute.local_step == 0;
  if (first) BeginStep();
  if (compute.phase == ComputePhase::kBackward) {
    RETURN_IF_ERROR(BindGradients(compute, last_block));
  }
  const bool is_queued = model_.queues() && compute.phase == ComputePhase::kBackward;
  Computed computed{.compute = compute};
  const absl::Time begin = time_.Now();
  if (options_.tracer) options_.tracer->TraceNextPass(*options_.device_trace, EventOf(compute));
  {
    const TraceSpan span(options_.trace, EventOf(compute));
    if (compute.phase == ComputePhase::kBackward) {
      model_.Backward(static_cast<int>(compute.block));
      CountHeld();
      if (!is_queued) RETURN_IF_ERROR(TakeBackward(compute));
    } else {
      RETURN_IF_ERROR(RunForward(compute, last_block));
    }
    computed.taken = time_.Now() - begin;
    if (!is_queued) RETURN_IF_ERROR(CountTime(compute, computed.taken));
  }
  const bool evaluating_last = machine_.evaluating_last();
  computed.effects = machine_.OnComputeDone();
  RETURN_IF_ERROR(FinishQueued());
  // The block below is the next computation.
  if (is_queued && compute.block > 0) {
    queued_ = computed;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Finish(computed));
  if (computed.effects.evaluation_done) ReportEval(compute, evaluating_last);
  return absl::OkStatus();
}

absl::Status TrainingLoop::FinishQueued() {
  if (!queued_.has_value()) return absl::OkStatus();
  return Finish(*std::exchange(queued_, std::nullopt));
}

absl::Status TrainingLoop::Finish(const Computed& computed) {
  const Compute& compute = computed.compute;
  if (model_.queues() && compute.phase == ComputePhase::kBackward) {
    const TraceSpan span(options_.trace, EventOf(compute));
    const absl::Time begin = time_.Now();
    RETURN_IF_ERROR(TakeBackward(compute));
    RETURN_IF_ERROR(CountTime(compute, computed.taken + (time_.Now() - begin)));
  }
  return CarryOut(compute, computed.effects);
}

// Within its span of the trace: that is what the step is told to have computed.
absl::Status TrainingLoop::CountTime(const Compute& compute, absl::Duration taken) {
  if (compute.phase == ComputePhase::kEvaluate) return absl::OkStatus();
  times_.AddComputing(taken);
  return Straggle(compute, taken);
}

// All pushes and pulls of a step are cut alike; the weights it waits for were asked for by the step
// before.
void TrainingLoop::BeginStep() {
  if (orders_.schedule == schedule_) return;
  schedule_ = orders_.schedule;
  exchange_.SetSchedule(schedule_);
}

TraceEvent TrainingLoop::EventOf(const Compute& compute) const {
  const TraceKind kind = compute.phase == ComputePhase::kForward    ? TraceKind::kForward
                         : compute.phase == ComputePhase::kBackward ? TraceKind::kBackward
                                                                    : TraceKind::kEvaluate;
  return {.kind = kind,
          .block = compute.block,
          .virtual_worker = options_.virtual_workers[compute.virtual_worker],
          .clock = compute.clock};
}

absl::Status TrainingLoop::Straggle(const Compute& compute, absl::Duration taken) {
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  absl::Duration time = straggler_.Slowdown(virtual_worker, taken);
  const bool ends_step = compute.phase == ComputePhase::kBackward && compute.block == 0 &&
                         IsLastMicroBatch(compute) && IsLastLocalStep(compute);
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
      StartEvaluation(compute);
    } else {
      StartTraining(compute);
    }
  }
  // Each of the virtual workers begins from what was pulled, and goes on from its own.
  if (!evaluating && local_steps_.has_value() && compute.micro_batch == 0) {
    model_.BindWeights(
        static_cast<int>(compute.block),
        compute.local_step == 0
            ? ViewOf(compute.block)
            : WeightsView{.fp32 = local_steps_->Weights(compute.virtual_worker, compute.block)});
  }
  model_.Forward(static_cast<int>(compute.block));
  CountHeld();
  if (!evaluating || !last_block) return absl::OkStatus();
  share_.Add(model_.losses());
  return model_.status();
}

// The host waits for the losses of a model that queues, and the block below with them: a push says
// how many targets its gradient is a sum over.
absl::Status TrainingLoop::TakeBackward(const Compute& compute) {
  if (compute.block + 1 == table_.num_blocks()) share_.Add(model_.losses());
  if (!IsLastMicroBatch(compute)) return absl::OkStatus();
  RETURN_IF_ERROR(model_.AwaitGradient(static_cast<int>(compute.block)));
  if (clips_ && !replays_) OnGradient(compute);
  return absl::OkStatus();
}

void TrainingLoop::StartTraining(const Compute& compute) {
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  const uint32_t first = compute.micro_batch * micro_batch_;
  const uint64_t step = SampleStep(compute);
  activity_.Set(CurrentActivity::Doing::kReading, 0, compute.clock, time_.Now());
  sampler_.Fill(step, virtual_worker, first, micro_batch_, batch_);
  NoteActivity();
  MicroBatch batch = MicroBatchOf(batch_);
  batch.training = true;
  batch.accumulate = compute.micro_batch > 0;
  batch.partial = !IsLastMicroBatch(compute);
  batch.dropout = {options_.config.seed(), static_cast<uint32_t>(step),
                   virtual_worker * sampler_.share() + first};
  if (compute.micro_batch == 0) share_.before_local = share_.sums.targets;
  if (encoded_.has_value()) encoded_->encoder().Start(virtual_worker, compute.clock);
  StartModel(batch);
}

void TrainingLoop::StartModel(const MicroBatch& batch) {
  model_.Start(batch);
  share_.tokens += batch_.TokenCount();
}

uint64_t TrainingLoop::EvalSamples(bool last) const {
  return last ? 0 : options_.config.train().eval_samples();  // 0: the whole validation split
}

void TrainingLoop::StartEvaluation(const Compute& compute) {
  const uint64_t eval_samples = EvalSamples(machine_.evaluating_last());
  const Sampler::Run share =
      sampler_.EvalShare(eval_samples, options_.virtual_workers[compute.virtual_worker]);
  const uint64_t done = uint64_t{compute.micro_batch} * micro_batch_;
  const auto samples = static_cast<uint32_t>(std::min<uint64_t>(micro_batch_, share.count - done));
  sampler_.FillEval(eval_samples, share.first + done, samples, batch_);
  StartModel(MicroBatchOf(batch_));
}

}  // namespace tug
