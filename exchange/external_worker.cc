#include "exchange/external_worker.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "exchange/declared_blocks.h"
#include "exchange/view_lanes.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

// A ticket is its kind, its block and its clock: nothing is kept for it.
constexpr int kKindShift = 62;
constexpr int kBlockShift = 40;
constexpr uint64_t kPushKind = 1;
constexpr uint64_t kPullKind = 2;
static_assert(kMaxDeclaredBlocks <= 1 << (kKindShift - kBlockShift));

uint64_t MakeTicket(uint64_t kind, uint32_t block, uint64_t clock) {
  return kind << kKindShift | uint64_t{block} << kBlockShift | clock;
}
uint64_t KindOf(uint64_t ticket) { return ticket >> kKindShift; }
uint32_t BlockOf(uint64_t ticket) {
  return static_cast<uint32_t>(ticket >> kBlockShift & ((1u << (kKindShift - kBlockShift)) - 1));
}
uint64_t ClockOf(uint64_t ticket) { return ticket & ((uint64_t{1} << kBlockShift) - 1); }

}  // namespace

absl::StatusOr<std::unique_ptr<ExternalWorker>> ExternalWorker::Connect(
    const std::string& coordinator, absl::Duration timeout) {
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(coordinator, timeout));
  return std::unique_ptr<ExternalWorker>(new ExternalWorker(std::move(client)));
}

ExternalWorker::~ExternalWorker() {
  member_.reset();    // its thread calls OnEnd
  exchange_.reset();  // reads and writes the program's memory until here
}

void ExternalWorker::OnEnd(const absl::Status& end) {
  memory_->End();
  absl::MutexLock lock(&mutex_);
  end_ = end;
  if (exchange_ == nullptr) return;
  exchange_->Cancel(end.ok() ? absl::FailedPreconditionError("the job has ended") : end);
}

// ---- before the steps ----

absl::StatusOr<uint32_t> ExternalWorker::Declare(const std::string& name, uint64_t elements,
                                                 float init_mean, float init_std,
                                                 bool weight_decay) {
  BlockSpec block;
  block.set_name(name);
  TensorSpec* tensor = block.add_tensors();
  tensor->set_name(name);
  tensor->add_shape(elements);
  tensor->set_weight_decay(weight_decay);
  tensor->set_init_mean(init_mean);
  tensor->set_init_std(init_std);
  RETURN_IF_ERROR(CheckDeclaredBlock(block));
  absl::MutexLock lock(&mutex_);
  if (starting_) {
    return absl::FailedPreconditionError(
        absl::StrCat("block '", name, "' comes too late: declare all blocks before the start"));
  }
  for (const BlockSpec& other : blocks_.blocks()) {
    if (other.name() != name) continue;
    return absl::InvalidArgumentError(absl::StrCat("block '", name, "' is declared already"));
  }
  *blocks_.add_blocks() = std::move(block);
  return static_cast<uint32_t>(blocks_.blocks_size() - 1);
}

absl::Status ExternalWorker::Start() {
  std::unique_ptr<ControlClient> client;
  {
    absl::MutexLock lock(&mutex_);
    if (starting_) return absl::FailedPreconditionError("started already: start once");
    if (blocks_.blocks().empty()) {
      return absl::FailedPreconditionError("no block is declared: declare before the start");
    }
    starting_ = true;
    client = std::move(client_);
  }
  RETURN_IF_ERROR(Join(std::move(client)));
  ASSIGN_OR_RETURN(const View view, member_->WaitForView());
  RETURN_IF_ERROR(TakePlace(view));
  RETURN_IF_ERROR(BuildExchange(view));
  member_->SetReady();
  RETURN_IF_ERROR(member_->WaitForGo());
  absl::MutexLock lock(&mutex_);
  started_ = true;
  return absl::OkStatus();
}

absl::Status ExternalWorker::Join(std::unique_ptr<ControlClient> client) {
  ASSIGN_OR_RETURN(member_, JobMember::Join(std::move(client), blocks_,
                                            [this](const absl::Status& end) { OnEnd(end); }));
  return absl::OkStatus();
}

absl::Status ExternalWorker::TakePlace(const View& view) {
  const RegisterReply& registered = member_->registered();
  ASSIGN_OR_RETURN(table_,
                   SegmentTable::Create(blocks_, registered.config().comm().segment_elements()));
  count_ = static_cast<uint32_t>(view.workers_size());
  start_version_ = view.start_version();
  for (uint32_t i = 0; i < count_; ++i) {
    const WorkerAssignment& worker = view.workers(static_cast<int>(i));
    if (worker.node_id() != registered.node_id() || worker.virtual_workers_size() != 1) continue;
    index_ = i;
    virtual_worker_ = worker.virtual_workers(0);
    absl::MutexLock lock(&mutex_);
    states_.assign(table_.num_blocks(), BlockState{.clock = start_version_});
    return absl::OkStatus();
  }
  return absl::InternalError("the coordinator has no place for this worker in its view");
}

absl::Status ExternalWorker::BuildExchange(const View& view) {
  const RegisterReply& registered = member_->registered();
  ZmqTransport::Options options;
  options.self = WorkerPeer(registered.node_id());
  options.checksum = registered.config().comm().checksum();
  ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport, ZmqTransport::Create(options));
  RETURN_IF_ERROR(ConnectToLanes(view, options.self, *transport));
  transport_ = transport.get();
  auto exchange = std::make_unique<ExchangeClient>(
      ExchangeOptions{registered.job(), view.timeline(), view.number(), LaneNumberOfSegment(view),
                      registered.config().comm()},
      table_, std::move(transport));
  absl::MutexLock lock(&mutex_);
  exchange_ = std::move(exchange);
  // It may have ended meanwhile, with nothing to cancel.
  return end_.value_or(absl::OkStatus());
}

// ---- what may be done now ----

absl::Status ExternalWorker::CheckStarted() const {
  if (started_) return absl::OkStatus();
  return absl::FailedPreconditionError("not started: declare the blocks, then start, then this");
}

absl::Status ExternalWorker::CheckBlock(uint32_t block) const {
  RETURN_IF_ERROR(CheckStarted());
  if (block < states_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no block ", block, ": ", states_.size(),
                                                 " were declared, 0 to ", states_.size() - 1));
}

absl::Status ExternalWorker::CheckMayPush(uint32_t block) const {
  RETURN_IF_ERROR(CheckBlock(block));
  if (!step_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(block), " cannot be pushed outside of a step: begin one first"));
  }
  if (states_[block].clock > step_->clock) {
    return absl::FailedPreconditionError(absl::StrCat(
        Named(block), " was pushed in step ", step_->clock, " already: begin the next step first"));
  }
  return absl::OkStatus();
}

absl::Status ExternalWorker::CheckStepComplete() const {
  if (!step_.has_value()) return absl::OkStatus();
  for (uint32_t block = 0; block < states_.size(); ++block) {
    if (states_[block].clock > step_->clock) continue;
    return absl::FailedPreconditionError(absl::StrCat(Named(block), " was not pushed in step ",
                                                      step_->clock,
                                                      ": push every block once in every step"));
  }
  return absl::OkStatus();
}

absl::Status ExternalWorker::CheckTicket(Ticket ticket) const {
  RETURN_IF_ERROR(CheckStarted());
  const uint64_t kind = KindOf(ticket);
  const uint32_t block = BlockOf(ticket);
  const uint64_t clock = ClockOf(ticket);
  if (block < states_.size() && clock >= start_version_) {
    const BlockState& state = states_[block];
    if (kind == kPushKind && clock < state.clock) return absl::OkStatus();
    if (kind == kPullKind && state.pulled.has_value() && clock <= *state.pulled) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ticket, " is no ticket: wait for what a push or a pull has given"));
}

std::string ExternalWorker::Named(uint32_t block) const {
  return absl::StrCat("block '", blocks_.blocks(static_cast<int>(block)).name(), "'");
}

absl::StatusOr<uint32_t> ExternalWorker::Index() const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckStarted());
  return index_;
}

absl::StatusOr<uint32_t> ExternalWorker::Count() const {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckStarted());
  return count_;
}

// ---- steps ----

absl::StatusOr<std::optional<uint64_t>> ExternalWorker::BeginStep() {
  uint64_t clock = start_version_;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
    RETURN_IF_ERROR(CheckStepComplete());
    if (all_steps_done_) return std::optional<uint64_t>();
    if (beginning_) {
      return absl::FailedPreconditionError("another thread begins a step: one at a time");
    }
    beginning_ = true;
    if (step_.has_value()) ReportStep();
    clock = states_[0].clock;
    step_.reset();
  }
  const absl::StatusOr<bool> begins = member_->BeginStep(clock);
  absl::MutexLock lock(&mutex_);
  beginning_ = false;
  RETURN_IF_ERROR(begins.status());
  all_steps_done_ = !*begins;
  if (all_steps_done_) return std::optional<uint64_t>();
  step_ = Step{.clock = clock, .begin = time_.Now()};
  return std::optional<uint64_t>(clock);
}

void ExternalWorker::ReportStep() {
  const ExchangeCounters counters = exchange_->counters();
  StepReport report;
  report.set_virtual_worker(virtual_worker_);
  report.set_clock(step_->clock);
  report.set_loss_sum(step_->loss_sum);
  report.set_tokens(step_->count);
  report.set_step_seconds(absl::ToDoubleSeconds(time_.Now() - step_->begin));
  report.set_wait_seconds(absl::ToDoubleSeconds(step_->waiting));
  report.set_pushed_bytes(counters.pushed_bytes - reported_.pushed_bytes);
  report.set_pulled_bytes(counters.pulled_bytes - reported_.pulled_bytes);
  reported_ = counters;
  member_->ReportStep(std::move(report));
}

absl::Status ExternalWorker::ReportLoss(double loss_sum, uint64_t count) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckStarted());
  if (!step_.has_value()) {
    return absl::FailedPreconditionError("a loss belongs to a step: begin one first");
  }
  step_->loss_sum += loss_sum;
  step_->count += count;
  return absl::OkStatus();
}

// ---- push and pull ----

std::span<const std::byte> ExternalWorker::Sendable(uint32_t block, const float* gradient) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(gradient),
                                         table_.block_elements(block) * sizeof(float));
  if (memory_->Holds(bytes)) return bytes;
  std::span<std::byte>& own = states_[block].own;
  if (own.empty()) {
    void* begin = memory_->Keep(transport_->NewBuffer(bytes.size()));
    own = {static_cast<std::byte*>(begin), bytes.size()};
  }
  std::memcpy(own.data(), bytes.data(), bytes.size());
  return own;
}

absl::StatusOr<ExternalWorker::Ticket> ExternalWorker::Push(uint32_t block, const float* gradient,
                                                            uint64_t count) {
  Ticket before = 0;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckMayPush(block));
    if (gradient == nullptr || count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a push of ", Named(block), " needs a gradient, and a count of at least 1"));
    }
    before = states_[block].pushed;
  }
  // There already if the block was pulled since; never more than one push of a block is open.
  if (before != 0) RETURN_IF_ERROR(WaitPushed(before));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckMayPush(block));  // another thread may have been faster
  if (end_.has_value() && !end_->ok()) return *end_;
  BlockState& state = states_[block];
  const Ticket ticket = MakeTicket(kPushKind, block, state.clock);
  exchange_->Push({.block = block,
                   .virtual_worker = virtual_worker_,
                   .virtual_worker_count = 1,
                   .clock = state.clock,
                   .token_count = count,
                   .gradient = memory_->LeaseOut(Sendable(block, gradient), ticket)});
  state.pushed = ticket;
  ++state.clock;
  return ticket;
}

absl::StatusOr<ExternalWorker::Ticket> ExternalWorker::Pull(uint32_t block, float* weights) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckBlock(block));
  if (weights == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", Named(block), " needs memory to write to"));
  }
  BlockState& state = states_[block];
  if (state.pulled == state.clock) {
    return absl::FailedPreconditionError(absl::StrCat(Named(block), " was pulled for step ",
                                                      state.clock, " already: push it first"));
  }
  if (state.pulling) {
    return absl::FailedPreconditionError(
        absl::StrCat("a pull of ", Named(block), " is under way: wait for it first"));
  }
  if (end_.has_value() && !end_->ok()) return *end_;
  exchange_->Pull(
      {block, Want::kExact, state.clock, std::span<float>(weights, table_.block_elements(block))});
  state.pulled = state.clock;
  state.pulling = true;
  return MakeTicket(kPullKind, block, state.clock);
}

absl::Status ExternalWorker::Wait(Ticket ticket) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckTicket(ticket));
  }
  return KindOf(ticket) == kPushKind ? WaitPushed(ticket) : WaitPulled(ticket);
}

absl::Status ExternalWorker::WaitPushed(Ticket ticket) {
  {
    // A newer push of the block waited for this one.
    absl::MutexLock lock(&mutex_);
    if (states_[BlockOf(ticket)].pushed != ticket) return absl::OkStatus();
  }
  RETURN_IF_ERROR(exchange_->WaitCommitted(BlockOf(ticket), virtual_worker_));
  memory_->AwaitUnread(ticket);
  absl::MutexLock lock(&mutex_);
  return end_.value_or(absl::OkStatus());
}

absl::Status ExternalWorker::WaitPulled(Ticket ticket) {
  const uint32_t block = BlockOf(ticket);
  const uint64_t version = ClockOf(ticket);
  // Later weights may wait for a straggler; the first ones are there from the start.
  const absl::Duration patience =
      version > start_version_
          ? absl::InfiniteDuration()
          : 3 * absl::Milliseconds(member_->registered().config().comm().resend_ms());
  const absl::Time begin = time_.Now();
  ASSIGN_OR_RETURN(const bool pulled, exchange_->WaitPulled(block, version, patience));
  if (!pulled) {
    return absl::UnavailableError(absl::StrCat(
        "no server has answered a pull of ", Named(block), " for ", absl::FormatDuration(patience),
        ": start servers on an address that this host reaches (tug server --listen ADDRESS)"));
  }
  absl::MutexLock lock(&mutex_);
  if (step_.has_value()) step_->waiting += time_.Now() - begin;
  BlockState& state = states_[block];
  if (state.pulled == version) state.pulling = false;
  return absl::OkStatus();
}

absl::StatusOr<void*> ExternalWorker::NewBuffer(uint64_t size_bytes) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
  }
  if (size_bytes == 0 || size_bytes > kMaxDeclaredElements * sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a buffer of ", size_bytes, " bytes cannot be: ask for 1 or more"));
  }
  return memory_->Keep(transport_->NewBuffer(size_bytes));
}

// ---- the end ----

absl::Status ExternalWorker::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
  }
  return member_->client().Stop().status();
}

absl::Status ExternalWorker::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    if (!started_) return end_.value_or(absl::OkStatus());
    if (end_.has_value() && !end_->ok()) return *end_;
    if (!all_steps_done_) {
      const absl::Status early = absl::FailedPreconditionError(
          "the program left before the job's last step: begin steps until none is left, or ask "
          "for an orderly end first");
      member_->Leave(early);
      return early;
    }
  }
  return member_->Finish();
}

}  // namespace tug
