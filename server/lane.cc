// SPDX-License-Identifier: Apache-2.0
#include "server/lane.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/cpu_affinity.h"
#include "base/status_macros.h"
#include "blocks/view_lanes.h"
#include "config/placement_mode.h"
#include "huggingface/weights_source.h"
#include "server/restore.h"
#include "server/segments/memory.h"

namespace tug {
namespace {

// Time limit for sending the messages that report a failure to other nodes.
constexpr absl::Duration kLeaving = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<LaneThread>> LaneThread::Bind(const LaneJob& job,
                                                             uint32_t index_on_server,
                                                             const std::string& listen_host) {
  const StartThreadsOn io_cores(CoresOf(job, index_on_server).io);
  const PeerId self = LanePeer(LaneNumber(job.server_node_id, index_on_server));
  ASSIGN_OR_RETURN(OpenedTransport opened,
                   OpenTransport(self, job.job, job.config.comm(), listen_host, job.keys));
  return std::unique_ptr<LaneThread>(new LaneThread(job, index_on_server, std::move(opened)));
}

LaneThread::LaneThread(const LaneJob& job, uint32_t index_on_server, OpenedTransport opened)
    : job_(job),
      index_on_server_(index_on_server),
      number_(LaneNumber(job.server_node_id, index_on_server)),
      endpoint_(std::move(opened.endpoint)),
      transport_(std::move(opened.transport)),
      sender_(*transport_),
      memory_(LaneMemory::Create([transport = transport_.get()](size_t size_bytes) {
        return transport->NewBuffer(size_bytes);
      })),
      core_({job.job, number_, job.config}, job.table, MakeSinks()),
      orders_(job.config, job.server_node_id) {}

LaneThread::~LaneThread() { Stop(); }

void LaneThread::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->Wake();
  thread_.join();
}

LaneCore::Sinks LaneThread::MakeSinks() {
  LaneCore::Sinks sinks;
  sinks.send = [this](Outgoing m) { sender_.Send(std::move(m)); };
  sinks.connect = [this](const View& view) {
    return ConnectToLanes(view, LanePeer(number_), *transport_);
  };
  sinks.shares_memory = [this](PeerId peer) { return transport_->SharesMemoryWith(peer); };
  sinks.equip = [this](ShardOptions& options) {
    options.new_buffer = [transport = transport_.get()](size_t size_bytes) {
      return transport->NewBuffer(size_bytes);
    };
    options.memory = memory_;
    options.leave_out_update = job_.leave_out_update;
    options.trace = trace_;
    options.time = &time_;
    if (job_.config.watch().metrics()) options.work_time = &time_;
  };
  sinks.fill = [this](const View& view, Shard& shard) { return Fill(view, shard); };
  sinks.place = [this](const LanePlace& place) { snapshots_->SetPlace(place); };
  sinks.snapshot = [this](const SegmentSnapshot& snapshot) {
    // The log must be complete before the last checkpoint.
    if (core_.shard().finished()) FinishOrderLog();
    snapshots_->Add(snapshot);
  };
  sinks.notice = [this](ShardNotice notice) { AddNotice(std::move(notice)); };
  if (job_.config.sync().record() == SyncConfig::ORDER) {
    sinks.record = [this](const OrderRecord& record) {
      if (order_ != nullptr) order_->Append(record);
    };
  }
  sinks.wake = [transport = transport_.get()] { transport->Wake(); };
  return sinks;
}

// ---- orders of the control thread ----

void LaneThread::SetView(const View& view) {
  mutex_.Lock();
  const bool begins = orders_.Begins(view);
  mutex_.Unlock();
  if (begins) Stop();
  {
    absl::MutexLock lock(&mutex_);
    if (begins) report_ = {};
    orders_.OnView(view);
  }
  ordered_ = true;
  begins ? Start(view, /*joins=*/false) : transport_->Wake();
}

void LaneThread::OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) {
  if (snapshots_ != nullptr) snapshots_->OnHeard(sent);
  mutex_.Lock();
  const bool joins = orders_.Joins(reply.next_view());
  mutex_.Unlock();
  if (joins) Stop();
  {
    absl::MutexLock lock(&mutex_);
    if (joins) report_ = {};
    if (!orders_.OnReply(reply)) return;
  }
  ordered_ = true;
  joins ? Start(reply.next_view(), /*joins=*/true) : transport_->Wake();
}

void LaneThread::RefreshOrders(absl::Time now) {
  LaneOrders::Wanted wanted;
  {
    absl::MutexLock lock(&mutex_);
    wanted = orders_.wanted();
  }
  if (const absl::Status obeyed = core_.Obey(wanted, now); !obeyed.ok()) return Fail(obeyed);
  absl::MutexLock lock(&mutex_);
  report_.progress = core_.progress();
}

// ---- beginning ----

void LaneThread::Start(const View& view, bool joins) {
  SnapshotWriter::Options options;
  options.run_dir = job_.run_dir;
  options.block_names = BlockNames(view.blocks());
  if (AllReduces(job_.config)) options.while_waiting = [this] { StayInReduction(); };
  options.memory = memory_;
  if (job_.trace != nullptr && trace_ == nullptr) {
    trace_ = job_.trace->AddTrack(absl::StrCat("lane ", index_on_server_));
  }
  snapshots_ = std::make_unique<SnapshotWriter>(std::move(options), job_.table);
  thread_ = std::jthread([this, view, joins](std::stop_token stop) { Run(view, joins, stop); });
}

LaneCores LaneThread::CoresOf(const LaneJob& job, uint32_t index_on_server) {
  return index_on_server < job.cores.size() ? job.cores[index_on_server] : LaneCores();
}

void LaneThread::Run(const View& view, bool joins, std::stop_token stop) {
  // Before the thread touches its segments: their memory is allocated near its core.
  StayOn(CoresOf(job_, index_on_server_).lane);
  const absl::Status prepared = Prepare(view, joins);
  {
    absl::MutexLock lock(&mutex_);
    report_.progress = core_.progress();
    report_.failure = prepared;
  }
  if (prepared.ok()) Serve(stop);
}

absl::Status LaneThread::Prepare(const View& view, bool joins) {
  failed_ = false;
  RETURN_IF_ERROR(Offload(view));
  postponed_.clear();
  order_.reset();
  if (!joins && job_.config.sync().record() == SyncConfig::ORDER) {
    RETURN_IF_ERROR(StartOrderLog(view));
  }
  return core_.Begin(view, joins, time_.Now());
}

absl::Status LaneThread::Offload(const View& view) {
  const std::string& folder = job_.config.placement().offload_dir();
  if (folder.empty() || memory_->offloads()) return absl::OkStatus();
  const HeldMemory held =
      PredictLaneHeld(job_.config, job_.table, view, LaneIndexOf(view, number_));
  const absl::Status offloaded = memory_->Offload(folder, held.weights + held.optimizer);
  if (offloaded.ok()) return offloaded;
  return absl::Status(offloaded.code(),
                      absl::StrCat("placement.offload_dir: ", offloaded.message()));
}

absl::Status LaneThread::StartOrderLog(const View& view) {
  ASSIGN_OR_RETURN(
      order_, OrderLogWriter::Create(job_.run_dir,
                                     {.timeline = view.timeline(),
                                      .job = job_.job,
                                      .lane = LaneIndexOf(view, number_),
                                      .lanes = static_cast<uint32_t>(view.lanes_size()),
                                      .virtual_workers = job_.config.cluster().virtual_workers(),
                                      .segments = job_.table.size(),
                                      .start_version = view.start_version()}));
  return absl::OkStatus();
}

void LaneThread::FinishOrderLog() {
  if (order_ == nullptr) return;
  const absl::Status finished = order_->Finish();
  order_.reset();
  if (finished.ok()) return;
  AddNotice({"order/file", absl::StrCat("the log of updates is incomplete (sync.record ORDER): ",
                                        std::string(finished.message()))});
}

void LaneThread::AddNotice(ShardNotice notice) {
  absl::MutexLock lock(&mutex_);
  report_.AddNotice(std::move(notice));
}

absl::Status LaneThread::Fill(const View& view, Shard& shard) {
  if (!view.restore_path().empty()) {
    return RestoreSegments(view.restore_path(), job_.config, view.blocks(), job_.table, shard);
  }
  ASSIGN_OR_RETURN(const WeightsSource source,
                   WeightsSource::Open(job_.config.train().init_from()));
  RETURN_IF_ERROR(source.Check(job_.config, view.blocks()));
  for (const uint32_t id : shard.held()) {
    const Segment& segment = job_.table.segment(id);
    const BlockSpec& block = view.blocks().blocks(static_cast<int>(segment.block));
    RETURN_IF_ERROR(source.ReadRange(block, segment.begin, segment.end, shard.weights(id)));
  }
  return absl::OkStatus();
}

// ---- serving ----

void LaneThread::Serve(std::stop_token stop) {
  absl::Time next_tick = time_.Now();
  while (!stop.stop_requested()) {
    if (ordered_.exchange(false)) RefreshOrders(time_.Now());
    if (failed_) return;
    const bool busy = core_.Reduce(time_.Now()) || !postponed_.empty();
    if (const absl::Status status = core_.status(); !status.ok()) return Fail(status);
    if (const absl::Time now = time_.Now(); now >= next_tick) {
      core_.OnTick(now);
      if (order_ != nullptr) order_->Flush();
      if (core_.shard().finished()) FinishOrderLog();
      Publish();
      next_tick = now + LaneCore::kTick;
    }
    sender_.Retry();
    for (Message& message : std::exchange(postponed_, {})) {
      core_.OnMessage(std::move(message), time_.Now());
    }
    const absl::Duration tick = core_.reduces() ? RankGroup::kTick : LaneCore::kTick;
    transport_->Poll(busy ? absl::ZeroDuration() : sender_.PollTime(tick),
                     [&](Message m) { core_.OnMessage(std::move(m), time_.Now()); });
  }
}

void LaneThread::StayInReduction() {
  const absl::Time now = time_.Now();
  core_.shard().reduction()->OnTick(now);
  sender_.Retry();
  transport_->Poll(absl::ZeroDuration(), [&](Message message) {
    if (LaneReduction::IsFor(message.header.kind)) {
      core_.OnMessage(std::move(message), now);
    } else {
      postponed_.push_back(std::move(message));
    }
  });
}

void LaneThread::Fail(const absl::Status& failure) {
  failed_ = true;
  {
    absl::MutexLock lock(&mutex_);
    report_.failure = failure;
  }
  const absl::Time deadline = time_.Now() + kLeaving;
  do {
    sender_.Retry();
    transport_->Poll(sender_.waiting() ? PatientSender::kRetry : absl::ZeroDuration(),
                     [](const Message&) {});
  } while (sender_.waiting() && time_.Now() < deadline);
}

}  // namespace tug
