#include "worker/training_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/bf16.h"
#include "kernels/cross_entropy.h"
#include "worker/untouched_buffer.h"

namespace tug {
namespace {

static_assert(kNoSampleTarget == kernels::kNoTarget);

// How long an order of the coordinator may wait for an answer while weights are waited for.
constexpr absl::Duration kOrdersInterval = absl::Milliseconds(20);

std::span<kernels::Bf16> Bf16Elements(AlignedBuffer& buffer) {
  return {reinterpret_cast<kernels::Bf16*>(buffer.data()),
          buffer.size_bytes() / sizeof(kernels::Bf16)};
}
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
      table_(table),
      model_(model),
      sampler_(sampler),
      exchange_(exchange),
      board_(board),
      micro_batch_(options_.config.train().micro_batch()),
      bf16_weights_(options_.config.train().precision() == TrainConfig::BF16 &&
                    options_.config.comm().pull_format() == CommConfig::BF16),
      machine_(MakeMachineOptions()) {
  AllocateBuffers();
  ChooseRuns();
}

StepMachineOptions TrainingLoop::MakeMachineOptions() const {
  StepMachineOptions machine;
  machine.blocks = table_.num_blocks();
  machine.virtual_workers = static_cast<uint32_t>(options_.virtual_workers.size());
  machine.micro_batches = sampler_.share() / micro_batch_;
  machine.start_version = options_.start_version;
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

// Runs are FP32, so with another format the block is exchanged whole, or the rows would have other
// bits than without runs.
void TrainingLoop::ChooseRuns() {
  const CommConfig& comm = options_.config.comm();
  if (options_.config.compute() == JobConfig::REPLAY) return;  // it has no rows
  if (model_.tied_block() == 0 || !comm.sparse_embeddings() || options_.shares_memory) return;
  const BlockSpec& embedding = model_.blocks().blocks(0);
  if (comm.push_format() != CommConfig::BF16) pushed_runs_.emplace(embedding, sampler_);
  if (comm.pull_format() != CommConfig::BF16) pulled_runs_.emplace(embedding, sampler_);
}

bool TrainingLoop::EvaluationDue(uint64_t version) const {
  const uint64_t interval = options_.config.train().eval_interval();
  return (interval > 0 && version % interval == 0) || version == orders_.final_version;
}

// REQUIRES: nothing reads the block's weights any more, until these have arrived.
void TrainingLoop::Pull(uint32_t block, uint64_t version, bool whole) {
  BlockWeights& weights = weights_[block];
  weights.in_place = {};
  PullRequest request{
      .block = block, .want = Want::kExact, .version = version, .allow_in_place = true};
  if (bf16_weights_) {
    request.bf16_destination = Bf16Elements(weights.own);
  } else {
    request.destination = weights.own.floats();
  }
  weights.whole = whole || block > 0 || !pulled_runs_.has_value();
  if (!weights.whole) request.runs = pulled_runs_->Of(version, options_.virtual_workers);
  exchange_.Pull(std::move(request));
}

absl::Status TrainingLoop::Run() {
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    Pull(block, options_.start_version, /*whole=*/false);
  }
  BeginStepTime();
  while (true) {
    RETURN_IF_ERROR(TakeOrders());
    switch (machine_.next()) {
      case StepMachine::Next::kFinished:
        board_.SetState({true, machine_.clock() - 1, machine_.paused(), true, schedule_.number});
        return absl::OkStatus();
      case StepMachine::Next::kWaitGate:
        RETURN_IF_ERROR(board_.WaitForOrdersOtherThan(orders_));
        BeginStepTime();  // the wait is no part of the step
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

// Orders of the coordinator first, then what follows from them is published: once a pause is
// published, the machine has taken it and begins no further step.
absl::Status TrainingLoop::TakeOrders() {
  RETURN_IF_ERROR(board_.cancelled());
  orders_ = board_.orders();
  // Orders come before `go`, with the version that the job will end at: they open nothing yet.
  machine_.SetGate(!orders_.go || orders_.pause, orders_.go ? orders_.final_version : 0);
  const uint64_t clock = machine_.clock();
  const bool in_step = machine_.in_step();
  board_.SetState({.started = in_step || clock > options_.start_version,
                   .clock = in_step ? clock : clock - 1,
                   .pausing = orders_.pause,
                   .finished = false,
                   .schedule = schedule_.number});
  return absl::OkStatus();
}

// An order to pause is answered here too: the weights may hang on a worker that has paused a step
// behind us, and goes on only when the coordinator has our answer.
absl::Status TrainingLoop::WaitForWeights(uint32_t block) {
  const TraceSpan span(options_.trace,
                       {.kind = TraceKind::kWait, .block = block, .clock = machine_.clock()});
  const absl::Time begin = time_.Now();
  while (true) {
    ASSIGN_OR_RETURN(const bool pulled,
                     exchange_.WaitPulled(block, machine_.clock(), kOrdersInterval));
    if (pulled) break;
    RETURN_IF_ERROR(TakeOrders());
    // Later weights may wait for a straggler; the first ones are there before anyone may go.
    const bool first = machine_.clock() == options_.start_version;
    if (first && time_.Now() - begin > FirstPullTimeout()) return NoAnswer(block);
  }
  times_.waiting += time_.Now() - begin;
  BlockWeights& weights = weights_[block];
  weights.in_place = exchange_.TakeInPlace(block);
  model_.BindWeights(static_cast<int>(block), ViewOf(weights));
  machine_.OnWeights(block, machine_.clock());
  return absl::OkStatus();
}

WeightsView TrainingLoop::ViewOf(const BlockWeights& weights) const {
  const InPlaceWeights& in_place = weights.in_place;
  if (bf16_weights_) {
    return {.bf16 = in_place.bf16_elements.empty() ? Bf16Elements(weights.own)
                                                   : in_place.bf16_elements};
  }
  return {.fp32 = in_place.elements.empty() ? weights.own.floats() : in_place.elements};
}

// For an evaluation that was not foreseen when the block was pulled: the job ends early.
absl::Status TrainingLoop::WaitForWholeWeights(uint32_t block) {
  if (weights_[block].whole) return absl::OkStatus();
  Pull(block, machine_.clock(), /*whole=*/true);
  return WaitForWeights(block);
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
  const bool first = compute.phase == ComputePhase::kForward && compute.virtual_worker == 0 &&
                     compute.micro_batch == 0 && compute.block == 0;
  if (first) BeginStep();
  const absl::Time begin = time_.Now();
  {
    const TraceSpan span(options_.trace, EventOf(compute));
    RETURN_IF_ERROR(compute.phase == ComputePhase::kBackward ? RunBackward(compute, last_block)
                                                             : RunForward(compute, last_block));
  }
  if (compute.phase != ComputePhase::kEvaluate) times_.computing += time_.Now() - begin;
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

void TrainingLoop::BeginStepTime() {
  times_.begin = time_.Now();
  times_.begin_ns = options_.trace == nullptr ? 0 : options_.trace->NowNs();
  times_.waiting = absl::ZeroDuration();
  times_.computing = absl::ZeroDuration();
  times_.open = exchange_.OpenTime();
}

int64_t TrainingLoop::TraceStep(uint64_t clock) {
  if (options_.trace == nullptr) return 0;
  const int64_t now_ns = options_.trace->NowNs();
  options_.trace->Add(
      {.kind = TraceKind::kStep, .clock = clock, .begin_ns = times_.begin_ns, .end_ns = now_ns});
  return now_ns;
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
  return absl::OkStatus();
}

void TrainingLoop::StartTraining(const Compute& compute) {
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  const uint32_t first = compute.micro_batch * micro_batch_;
  sampler_.Fill(compute.clock, virtual_worker, first, micro_batch_, batch_);
  MicroBatch batch;
  batch.training = true;
  batch.accumulate = compute.micro_batch > 0;
  batch.dropout = {options_.config.seed(), static_cast<uint32_t>(compute.clock),
                   virtual_worker * sampler_.share() + first};
  StartModel(batch);
}

void TrainingLoop::StartModel(MicroBatch batch) {
  batch.samples = static_cast<int>(batch_.samples);
  batch.tokens = batch_.tokens;
  batch.lengths = batch_.lengths;
  batch.decoder_tokens = batch_.decoder_tokens;
  batch.targets = batch_.targets;
  model_.Start(batch);
  share_.tokens += batch_.TokenCount();
}

// The block's gradient of the step before is committed by now, or its weights of this step would
// not be here: this is the guard, not a wait (but for an answer that was lost).
absl::Status TrainingLoop::BindGradient(const Compute& compute, uint32_t block) {
  if (compute.micro_batch > 0) return absl::OkStatus();  // the first one has bound it
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
  StartModel({});
}

void TrainingLoop::Push(const Compute& compute, uint32_t block) {
  const std::shared_ptr<AlignedBuffer>& gradient = gradients_[compute.virtual_worker][block];
  const uint32_t virtual_worker = options_.virtual_workers[compute.virtual_worker];
  PushRequest request{.block = block,
                      .virtual_worker = virtual_worker,
                      .virtual_worker_count = 1,
                      .clock = compute.clock,
                      .token_count = share_.sums.targets,
                      .gradient = Lease(gradient, std::as_const(*gradient).floats())};
  if (block == 0 && pushed_runs_.has_value()) {
    request.runs = pushed_runs_->Of(compute.clock, {&virtual_worker, 1});
  }
  exchange_.Push(std::move(request));
}

void TrainingLoop::CarryOut(const Compute& compute, const StepEffects& effects) {
  // Nothing reads these weights any more: the server may use their memory for the next version.
  if (effects.pull.has_value()) weights_[*effects.pull].in_place = {};
  if (effects.push.has_value()) Push(compute, *effects.push);
  if (effects.pull.has_value()) {
    Pull(*effects.pull, compute.clock + 1, EvaluationDue(compute.clock + 1));
  }
  if (effects.virtual_worker_done) {
    step_shares_.push_back(std::exchange(share_, {}));
  }
  if (effects.step_done) ReportStep(compute.clock);
}

void TrainingLoop::ReportStep(uint64_t clock) {
  const absl::Time now = time_.Now();
  const ExchangeCounters counters = exchange_.counters();
  const absl::Duration open = exchange_.OpenTime();
  for (size_t i = 0; i < step_shares_.size(); ++i) {
    StepReport report;
    report.set_virtual_worker(options_.virtual_workers[i]);
    report.set_clock(clock);
    report.set_loss_sum(step_shares_[i].sums.loss);
    report.set_targets(step_shares_[i].sums.targets);
    report.set_correct(step_shares_[i].sums.correct);
    report.set_tokens(step_shares_[i].tokens);
    report.set_step_seconds(absl::ToDoubleSeconds(now - times_.begin));
    report.set_wait_seconds(absl::ToDoubleSeconds(times_.waiting));
    report.set_compute_seconds(absl::ToDoubleSeconds(times_.computing));
    report.set_communication_seconds(absl::ToDoubleSeconds(open - times_.open));
    report.set_pushed_bytes(counters.pushed_bytes - times_.pushed_bytes);
    report.set_pulled_bytes(counters.pulled_bytes - times_.pulled_bytes);
    report.set_schedule(schedule_.number);
    board_.AddStep(std::move(report));
  }
  step_shares_.clear();
  times_ = {.begin = now,
            .begin_ns = TraceStep(clock),
            .open = open,
            .pushed_bytes = counters.pushed_bytes,
            .pulled_bytes = counters.pulled_bytes};
}

void TrainingLoop::ReportEval(const Compute& compute, bool final) {
  EvalReport report;
  report.set_virtual_worker(options_.virtual_workers[compute.virtual_worker]);
  report.set_version(compute.clock);
  const Share share = std::exchange(share_, {});
  report.set_loss_sum(share.sums.loss);
  report.set_targets(share.sums.targets);
  report.set_correct(share.sums.correct);
  report.set_final(final);
  board_.AddEval(std::move(report));
}

}  // namespace tug
