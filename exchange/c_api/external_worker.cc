// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/external_worker.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "blocks/declared_blocks.h"
#include "blocks/view_lanes.h"
#include "blocks/worker_place.h"
#include "transport/open_transport.h"

namespace tug {

absl::StatusOr<std::unique_ptr<ExternalWorker>> ExternalWorker::Connect(
    const std::string& coordinator, absl::Duration timeout, const JobKeys& keys) {
  ASSIGN_OR_RETURN(std::unique_ptr<ControlClient> client,
                   ControlClient::Connect(coordinator, timeout, keys));
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
    return absl::FailedPreconditionError(absl::StrCat(
        "block '", name, "' is declared too late: declare all blocks before tug_start"));
  }
  for (const BlockSpec& other : blocks_.blocks()) {
    if (other.name() != name) continue;
    return absl::InvalidArgumentError(absl::StrCat("block '", name, "' is already declared"));
  }
  *blocks_.add_blocks() = std::move(block);
  return static_cast<uint32_t>(blocks_.blocks_size() - 1);
}

absl::Status ExternalWorker::Start() {
  std::unique_ptr<ControlClient> client;
  {
    absl::MutexLock lock(&mutex_);
    if (starting_)
      return absl::FailedPreconditionError("already started: call tug_start only once");
    if (blocks_.blocks().empty()) {
      return absl::FailedPreconditionError(
          "no block is declared: call tug_declare before tug_start");
    }
    starting_ = true;
    client = std::move(client_);
  }
  RETURN_IF_ERROR(Join(std::move(client)));
  ASSIGN_OR_RETURN(const View view, member_->WaitForView());
  RETURN_IF_ERROR(AdoptAssignment(view));
  RETURN_IF_ERROR(BuildExchange(view));
  // Safe: the member, whose heartbeats call these, is destroyed before the exchange.
  member_->SetReady(
      [exchange = exchange_.get()] { return exchange->SharedBytes(); },
      [exchange = exchange_.get()](NodeCounters& counters) {
        const TransportCounters sent = exchange->transport_counters();
        counters.set_most_outstanding_bytes(exchange->counters().most_outstanding_bytes);
        counters.set_socket_bytes(sent.socket_bytes);
        counters.set_shared_memory_bytes(sent.shared_memory_bytes());
      });
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

absl::Status ExternalWorker::AdoptAssignment(const View& view) {
  const RegisterReply& registered = member_->registered();
  ASSIGN_OR_RETURN(table_,
                   SegmentTable::Create(blocks_, registered.config().comm().segment_elements()));
  count_ = static_cast<uint32_t>(view.workers_size());
  for (uint32_t i = 0; i < count_; ++i) {
    const WorkerAssignment& worker = view.workers(static_cast<int>(i));
    if (worker.node_id() != registered.node_id() || worker.virtual_workers_size() != 1) continue;
    index_ = i;
    virtual_worker_ = worker.virtual_workers(0);
    start_clock_ = PlaceOf(view, registered.node_id()).start_clocks[0];
    absl::MutexLock lock(&mutex_);
    clocks_ = BlockClocks(BlockNames(blocks_), start_clock_);
    copies_.resize(table_.num_blocks());
    return absl::OkStatus();
  }
  return absl::InternalError("the view from the coordinator has no slot for this worker");
}

absl::Status ExternalWorker::BuildExchange(const View& view) {
  const RegisterReply& registered = member_->registered();
  const PeerId self = WorkerPeer(registered.node_id());
  ASSIGN_OR_RETURN(OpenedTransport opened,
                   OpenTransport(self, registered.job(), registered.config().comm(), "",
                                 member_->client().keys()));
  RETURN_IF_ERROR(ConnectToLanes(view, self, *opened.transport));
  ExchangeOptions options = ExchangeOptionsOf(registered.config(), registered.job(), view, self);
  auto exchange =
      std::make_unique<ExchangeClient>(std::move(options), table_, std::move(opened.transport));
  absl::MutexLock lock(&mutex_);
  exchange_ = std::move(exchange);
  // The job may have ended before there was an exchange to cancel.
  return end_.value_or(absl::OkStatus());
}

absl::Status ExternalWorker::CheckStarted() const {
  if (started_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "not started: call tug_declare for each block, then tug_start");
}

absl::Status ExternalWorker::CheckNotFailed() const {
  return end_.has_value() ? *end_ : absl::OkStatus();
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
  uint64_t clock = 0;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
    RETURN_IF_ERROR(clocks_.CheckStepComplete());
    if (all_steps_done_) return std::optional<uint64_t>();
    if (beginning_) {
      return absl::FailedPreconditionError(
          "another thread is in tug_begin_step: call it from one thread at a time");
    }
    beginning_ = true;
    if (clocks_.step().has_value()) ReportStep();
    clocks_.EndStep();
    clock = clocks_.next_step();
  }
  const absl::StatusOr<bool> begins = member_->BeginStep(clock);
  absl::MutexLock lock(&mutex_);
  beginning_ = false;
  RETURN_IF_ERROR(begins.status());
  all_steps_done_ = !*begins;
  if (all_steps_done_) {
    if (member_->pulls_once_more()) clocks_.AllowLastPulls();
    return std::optional<uint64_t>();
  }
  clocks_.BeginStep();
  ApplySchedule(member_->schedule());
  share_ = StepShare{.begin = exchange_->OpenTime()};
  return clocks_.step();
}

void ExternalWorker::ApplySchedule(const ExchangeSchedule& schedule) {
  if (schedule == schedule_) return;
  schedule_ = schedule;
  exchange_->SetSchedule(schedule);
}

void ExternalWorker::ReportStep() {
  const ExchangeClient::OpenTimeReading end = exchange_->OpenTime();
  const ExchangeCounters counters = exchange_->counters();
  StepReport report;
  report.set_virtual_worker(virtual_worker_);
  report.set_clock(*clocks_.step());
  report.set_loss_sum(share_.loss_sum);
  report.set_tokens(share_.count);
  report.set_targets(share_.count);
  report.set_step_seconds(absl::ToDoubleSeconds(end.at - share_.begin.at));
  report.set_wait_seconds(absl::ToDoubleSeconds(share_.waiting));
  report.set_communication_seconds(absl::ToDoubleSeconds(end.open - share_.begin.open));
  report.set_pushed_bytes(counters.pushed_bytes - reported_.pushed_bytes);
  report.set_pulled_bytes(counters.pulled_bytes - reported_.pulled_bytes);
  report.set_schedule(schedule_.number);
  if (share_.terms > 0) {
    const auto terms = static_cast<double>(share_.terms);
    report.set_residual_squares(exchange_->ResidualSquares(virtual_worker_) / (terms * terms));
  }
  reported_ = counters;
  member_->ReportStep(std::move(report));
}

absl::Status ExternalWorker::ReportLoss(double loss_sum, uint64_t count) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckStarted());
  if (!clocks_.step().has_value()) {
    return absl::FailedPreconditionError(
        "a loss can only be reported during a step: call tug_begin_step first");
  }
  share_.loss_sum += loss_sum;
  share_.count += count;
  return absl::OkStatus();
}

// ---- push and pull ----

std::span<const std::byte> ExternalWorker::Sendable(uint32_t block, const float* gradient) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(gradient),
                                         table_.block_elements(block) * sizeof(float));
  if (memory_->Holds(bytes)) return bytes;
  std::span<std::byte>& own = copies_[block];
  if (own.empty()) {
    void* begin = memory_->Keep(exchange_->NewBuffer(bytes.size()));
    own = {static_cast<std::byte*>(begin), bytes.size()};
  }
  std::memcpy(own.data(), bytes.data(), bytes.size());
  return own;
}

absl::StatusOr<Ticket> ExternalWorker::Push(uint32_t block, const float* gradient, uint64_t count) {
  Ticket before = 0;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
    RETURN_IF_ERROR(clocks_.CheckMayPush(block));
    if (gradient == nullptr || count == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a push of ", clocks_.Named(block), " needs a gradient, and a count of at least 1"));
    }
    before = clocks_.newest_push(block);
  }
  // At most one push of a block is open. This does not block if the block was pulled since.
  if (before != 0) RETURN_IF_ERROR(WaitPushed(before));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(clocks_.CheckMayPush(block));  // another thread may have pushed meanwhile
  RETURN_IF_ERROR(CheckNotFailed());
  const std::span<const std::byte> bytes = Sendable(block, gradient);
  const Ticket ticket = clocks_.Push(block);
  share_.terms = count;
  PushRequest request = member_->PushAt(block, MeaningOf(ticket).clock);
  request.token_count = count;
  request.gradient = memory_->LeaseOut(bytes, ticket);
  exchange_->Push(std::move(request));
  return ticket;
}

absl::StatusOr<Ticket> ExternalWorker::Pull(uint32_t block, float* weights) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckStarted());
  RETURN_IF_ERROR(clocks_.CheckMayPull(block));
  if (weights == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", clocks_.Named(block), " needs memory to write to"));
  }
  RETURN_IF_ERROR(CheckNotFailed());
  const Ticket ticket = clocks_.Pull(block);
  PullRequest request = member_->PullAt(block, MeaningOf(ticket).clock);
  request.destination = std::span<float>(weights, table_.block_elements(block));
  exchange_->Pull(std::move(request));
  return ticket;
}

absl::Status ExternalWorker::Wait(Ticket ticket) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
    RETURN_IF_ERROR(clocks_.CheckTicket(ticket));
  }
  return MeaningOf(ticket).push ? WaitPushed(ticket) : WaitPulled(ticket);
}

absl::Status ExternalWorker::WaitPushed(Ticket ticket) {
  const uint32_t block = MeaningOf(ticket).block;
  {
    // A newer push of the block waited for this one.
    absl::MutexLock lock(&mutex_);
    if (clocks_.newest_push(block) != ticket) return absl::OkStatus();
  }
  RETURN_IF_ERROR(exchange_->WaitCommitted(block, virtual_worker_));
  memory_->AwaitUnread(ticket);
  absl::MutexLock lock(&mutex_);
  return CheckNotFailed();
}

absl::Status ExternalWorker::WaitPulled(Ticket ticket) {
  const auto [push, block, version] = MeaningOf(ticket);
  // Later weights may wait for a straggler; the first ones exist from the start.
  const absl::Duration patience =
      version > start_clock_
          ? absl::InfiniteDuration()
          : 3 * absl::Milliseconds(member_->registered().config().comm().resend_ms());
  const absl::Time begin = time_.Now();
  ASSIGN_OR_RETURN(const bool pulled, exchange_->WaitPulled(block, version, patience));
  absl::MutexLock lock(&mutex_);
  if (!pulled) {
    return absl::UnavailableError(absl::StrCat(
        "no server has answered a pull of ", clocks_.Named(block), " for ",
        absl::FormatDuration(patience),
        ": start servers on an address that this host reaches (tug server --listen ADDRESS)"));
  }
  share_.waiting += time_.Now() - begin;
  clocks_.OnPulled(ticket);
  return absl::OkStatus();
}

absl::StatusOr<void*> ExternalWorker::NewBuffer(uint64_t size_bytes) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckStarted());
  }
  if (size_bytes == 0 || size_bytes > kMaxDeclaredElements * sizeof(float)) {
    return absl::InvalidArgumentError(absl::StrCat("size_bytes = ", size_bytes,
                                                   " is out of range: pass 1 to ",
                                                   kMaxDeclaredElements * sizeof(float)));
  }
  return memory_->Keep(exchange_->NewBuffer(size_bytes));
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
          "the program called tug_shutdown before the last step: call tug_begin_step until it "
          "returns TUG_FINISHED, or call tug_stop first");
      member_->Leave(early);
      return early;
    }
  }
  return member_->Finish();
}

}  // namespace tug
