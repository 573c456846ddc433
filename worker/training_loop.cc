#include "worker/training_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "exchange/codec_choice.h"
#include "exchange/worker_place.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "model/job_model.h"
#include "worker/orders_gate.h"
#include "worker/untouched_buffer.h"

namespace tug {
namespace {

static_assert(kNoSampleTarget == kernels::kNoTarget);

// How long an order of the coordinator may wait for an answer while weights are waited for.
constexpr absl::Duration kOrdersInterval = absl::Milliseconds(20);

std::span<const kernels::Bf16> Bf16Elements(const AlignedBuffer& buffer) {
  return {reinterpret_cast<const kernels::Bf16*>(buffer.data()),
          buffer.size_bytes() / sizeof(kernels::Bf16)};
}

}  // namespace

void TrainingLoop::Share::Add(const LossSums& more) {
  sums.loss += more.loss;
  sums.targets += more.targets;
  sums.correct += more.correct;
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
      bf16_weights_(options_.config.train().precision() == TrainConfig::BF16 &&
                    options_.config.comm().pull_format() == CommConfig::BF16 && local_ == 1),
      clips_(
          (mode_.update_per_push && options_.config.optimizer().clip() != OptimizerConfig::OFF) ||
          local_ > 1),
      straggler_(options_.config),
      machine_(MakeMachineOptions()),
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
  machine.eval_interval = options_.config.train().eval_interval();
  machine.eval_micro_batches = [this](uint32_t index, bool last) {
    const uint64_t samples =
        sampler_.EvalShare(EvalSamples(last), options_.virtual_workers[index]).count;
    return static_cast<uint32_t>((samples + micro_batch_ - 1) / micro_batch_);
  };
  return machine;
}

void TrainingLoop::AllocateBuffers() {
  gradients_.resize(options_.virtual_workers.size());
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    const size_t size_bytes = table_.block_elements(block) * sizeof(float);
    weights_.push_back({UntouchedBuffer(bf16_weights_ ? size_bytes / 2 : size_bytes), {}, false});
    for (auto& gradients : gradients_) gradients.push_back(exchange_.NewBuffer(size_bytes));
  }
}

// Runs are FP32, so with another format, or a codec for some of it, the block is exchanged whole,
// or the rows would have other bits than without runs. So it is where rows do not stay those that
// were asked for: local steps change all, and a step that becomes a later one touches others.
void TrainingLoop::ChooseRuns() {
  const CommConfig& comm = options_.config.comm();
  if (replays_ || local_ > 1) return;
  if (model_.tied_block() == 0 || !comm.sparse_embeddings() || options_.shares_memory) return;
  const BlockSpec& embedding = model_.blocks().blocks(0);
  const CodecChoice codecs(comm.push_codec(), BlockNames(model_.blocks()));
  if (!codecs.Encodes(table_, 0)) pushed_runs_.emplace(embedding, sampler_);
  if (comm.pull_format() != CommConfig::FP32 || mode_.skips_steps) return;
  pulled_runs_.emplace(embedding, sampler_);
}

absl::Status TrainingLoop::Run() {
  times_.Begin();
  while (true) {
    RETURN_IF_ERROR(TakeOrders());
    if (orders_.go && !std::exchange(running_, true)) PullFirstWeights();
    switch (machine_.next()) {
      case StepMachine::Next::kFinished:
        for (uint32_t i = 0; i < options_.virtual_workers.size(); ++i) {
          SaveResiduals(i,
                        due_residuals_.AtEnd(options_.virtual_workers[i], orders_.final_version));
        }
        board_.SetState({true, machine_.begun().value_or(machine_.clock() - 1), machine_.paused(),
                         true, schedule_.number, view_});
        return absl::OkStatus();
      case StepMachine::Next::kWaitGate:
        RETURN_IF_ERROR(board_.WaitForOrdersOtherThan(orders_));
        times_.Begin();  // the wait is no part of the step
        break;
      case StepMachine::Next::kPull:
        Pull(machine_.pull(), EvaluationDue(machine_.pull().clock));
        machine_.OnPulling();
        break;
      case StepMachine::Next::kWaitWeights:
        RETURN_IF_ERROR(WaitForWeights(machine_.compute().block));
        break;
      case StepMachine::Next::kCompute:
        RETURN_IF_ERROR(RunCompute(machine_.compute()));
        break;
    }
  }
}

// Not before everyone is ready: a lane that is still in the timeline before would refuse it.
void TrainingLoop::PullFirstWeights() {
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    Pull(machine_.CurrentPull(block), /*whole=*/false);
  }
  // One that joins amid the timeline has nothing of what was passed before.
  for (uint32_t i = 0; i < options_.virtual_workers.size(); ++i) {
    SaveResidualsAt(i, machine_.next_clock(i));
  }
}

// Orders of the coordinator first, then what follows from them is published: once a pause is
// published, the machine has taken it and begins no further step.
absl::Status TrainingLoop::TakeOrders() {
  RETURN_IF_ERROR(board_.cancelled());
  const bool changed = board_.TakeOrders(orders_);
  const uint32_t view = view_;
  TakePlace();
  if (changed || view_ != view) machine_.SetGate(GateOf(orders_, options_.virtual_workers));
  board_.SetState({.started = machine_.begun().has_value(),
                   .clock = machine_.begun().value_or(0),
                   .pausing = orders_.pause,
                   .finished = false,
                   .schedule = schedule_.number,
                   .view = view_});
  return absl::OkStatus();
}

void TrainingLoop::TakePlace() {
  if (orders_.view == view_ || !machine_.CanPutBack()) return;
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
      gradients.emplace_back();
      for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
        gradients.back().push_back(
            exchange_.NewBuffer(table_.block_elements(block) * sizeof(float)));
      }
      continue;
    }
    before.emplace_back(static_cast<uint32_t>(had - carried.begin()));
    now.push_back({.clock = machine_.next_clock(*before.back()), .before = before.back()});
    gradients.push_back(std::move(gradients_[*before.back()]));
  }
  view_ = orders_.view;
  gradients_ = std::move(gradients);
  if (same) return;
  carried = place.virtual_workers;
  if (local_steps_.has_value()) local_steps_->Carry(before);
  exchange_.SetCarried({carried});
  share_ = {};
  step_shares_.clear();
  held_.clear();
  machine_.Carry(now);
  for (const uint32_t index : came) {
    due_residuals_.Forget(carried[index]);
    came_in_view_[carried[index]] = view_;
    SaveResidualsAt(index, machine_.next_clock(index));
  }
}

// An order to pause is answered here too: the weights may hang on a worker that has paused a step
// behind us, and goes on only when the coordinator has our answer.
absl::Status TrainingLoop::WaitForWeights(uint32_t block) {
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = machine_.clock()});
  const absl::Time begin = time_.Now();
  while (true) {
    ASSIGN_OR_RETURN(const bool pulled, exchange_.WaitPulled(block, 0, kOrdersInterval));
    if (pulled) break;
    const uint32_t view = view_;
    RETURN_IF_ERROR(TakeOrders());
    if (view_ != view) return absl::OkStatus();  // something else is next
    // Later weights may wait for a straggler, also the first ones of a worker that joins; those
    // that a timeline begins with are there before anyone may go, but for those of one whose clock
    // in the checkpoint is ahead of others'.
    const bool first = !stepped_ && machine_.clock() == options_.start_version &&
                       (options_.start_version == 0 || !mode_.update_per_push);
    if (first && time_.Now() - begin > FirstPullTimeout()) return NoAnswer(block);
  }
  times_.AddWaiting(time_.Now() - begin);
  TakeWeights(block);
  return absl::OkStatus();
}

void TrainingLoop::TakeWeights(uint32_t block) {
  BlockWeights& weights = weights_[block];
  weights.in_place = exchange_.TakeInPlace(block);
  model_.BindWeights(static_cast<int>(block), ViewOf(weights));
  const ExchangeClient::Versions versions = exchange_.PulledVersions(block);
  const uint64_t updates =
      mode_.update_per_push ? options_.config.cluster().virtual_workers() : 1;  // in a step
  if (block == 0 && mode_.update_per_push) {
    due_residuals_.OnWeights(versions.lowest / updates);
    for (uint32_t i = 0; i < options_.virtual_workers.size(); ++i) {
      SaveResidualsAt(i, machine_.next_clock(i));
    }
  }
  machine_.OnWeights(block, versions.lowest / updates, versions.highest / updates);
  ReportSkipped();
}

WeightsView TrainingLoop::ViewOf(const BlockWeights& weights) const {
  const InPlaceWeights& in_place = weights.in_place;
  if (bf16_weights_) {
    return {.bf16 = in_place.bf16_elements.empty() ? Bf16Elements(weights.own)
                                                   : in_place.bf16_elements};
  }
  return {.fp32 = in_place.elements.empty() ? weights.own.floats() : in_place.elements};
}

// For an evaluation that was not foreseen when the block was pulled: the job ends early, or goes by
// versions. No orders are taken amid the computation; nor need they be, since what was served once
// is served again.
absl::Status TrainingLoop::WaitForWholeWeights(uint32_t block) {
  if (weights_[block].whole) return absl::OkStatus();
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = machine_.clock()});
  const absl::Time begin = time_.Now();
  Pull(machine_.CurrentPull(block), /*whole=*/true);
  while (true) {
    RETURN_IF_ERROR(board_.cancelled());
    ASSIGN_OR_RETURN(const bool pulled, exchange_.WaitPulled(block, 0, kOrdersInterval));
    if (pulled) break;
  }
  times_.AddWaiting(time_.Now() - begin);
  TakeWeights(block);
  return absl::OkStatus();
}

absl::Duration TrainingLoop::FirstPullTimeout() const {
  return 3 * absl::Milliseconds(options_.config.comm().resend_ms());
}

absl::Status TrainingLoop::NoAnswer(uint32_t block) const {
  return absl::UnavailableError(absl::StrCat(
      "no server has answered a pull of block ", block, " for ",
      absl::FormatDuration(FirstPullTimeout()),
      ": start servers on an address that this host reaches (tug server --listen ADDRESS)"));
}

absl::Status TrainingLoop::RunCompute(const Compute compute) {
  const bool last_block = compute.block + 1 == table_.num_blocks();
  const bool first = compute.phase == ComputePhase::kForward && step_shares_.empty() &&
                     compute.micro_batch == 0 && compute.block == 0 && compute.local_step == 0;
  if (first) BeginStep();
  const absl::Time begin = time_.Now();
  {
    const TraceSpan span(options_.trace, EventOf(compute));
    RETURN_IF_ERROR(compute.phase == ComputePhase::kBackward ? RunBackward(compute, last_block)
                                                             : RunForward(compute, last_block));
    if (compute.phase != ComputePhase::kEvaluate) {
      const absl::Duration taken = time_.Now() - begin;
      times_.AddComputing(taken);
      RETURN_IF_ERROR(Straggle(compute, taken));
    }
  }
  const bool evaluating_last = machine_.evaluating_last();
  const StepEffects effects = machine_.OnComputeDone();
  CarryOut(compute, effects);
  if (effects.evaluation_done) ReportEval(compute, evaluating_last);
  return absl::OkStatus();
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
            ? ViewOf(weights_[compute.block])
            : WeightsView{.fp32 = local_steps_->Weights(compute.virtual_worker, compute.block)});
  }
  model_.Forward(static_cast<int>(compute.block));
  if (evaluating && last_block) share_.Add(model_.losses());
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunBackward(const Compute& compute, bool last_block) {
  RETURN_IF_ERROR(BindGradient(compute, compute.block));
  // A tied head adds its part to the embedding's gradient.
  const std::optional<int> tied = model_.tied_block();
  if (last_block && tied.has_value()) {
    RETURN_IF_ERROR(BindGradient(compute, static_cast<uint32_t>(*tied)));
  }
  model_.Backward(static_cast<int>(compute.block));
  if (last_block) share_.Add(model_.losses());
  if (clips_ && !replays_ && IsLastMicroBatch(compute)) OnGradient(compute);
  return absl::OkStatus();
}

void TrainingLoop::StartTraining(const Compute& compute) {
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  const uint32_t first = compute.micro_batch * micro_batch_;
  const uint64_t step = SampleStep(compute);
  sampler_.Fill(step, virtual_worker, first, micro_batch_, batch_);
  MicroBatch batch = MicroBatchOf(batch_);
  batch.training = true;
  batch.accumulate = compute.micro_batch > 0;
  batch.dropout = {options_.config.seed(), static_cast<uint32_t>(step),
                   virtual_worker * sampler_.share() + first};
  if (compute.micro_batch == 0) share_.before_local = share_.sums.targets;
  StartModel(batch);
}

void TrainingLoop::StartModel(const MicroBatch& batch) {
  model_.Start(batch);
  share_.tokens += batch_.TokenCount();
}

// The block's gradient of the step before is committed by now, or its weights of this step would
// not be here: this is the guard, not a wait (but for an answer that was lost).
absl::Status TrainingLoop::BindGradient(const Compute& compute, uint32_t block) {
  // The first one of the step has bound it.
  if (compute.micro_batch > 0 || compute.local_step > 0) return absl::OkStatus();
  RETURN_IF_ERROR(exchange_.WaitCommitted(block, options_.virtual_workers[compute.virtual_worker]));
  std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  // A repeat that is still under way keeps its bytes.
  if (!IsOnlyOwner(gradient)) gradient = exchange_.NewBuffer(gradient->size_bytes());
  model_.BindGradient(static_cast<int>(block), gradient->floats());
  return absl::OkStatus();
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
