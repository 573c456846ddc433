#include "server/lane.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu_affinity.h"
#include "base/status_macros.h"
#include "exchange/view_lanes.h"
#include "huggingface/weights_source.h"
#include "proto/placement_mode.h"
#include "server/initial_weights.h"
#include "server/memory.h"
#include "server/restore.h"
#include "server/view_live_set.h"

namespace tug {
namespace {

// How often a lane looks for norms that do not come, and for orders of the control thread.
constexpr absl::Duration kTick = absl::Milliseconds(50);
// For the notices of a failure to leave.
constexpr absl::Duration kLeaving = absl::Milliseconds(100);
// Lines for people that a lane remembers; a job with more has told its story.
constexpr size_t kMaxNotices = 100;

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
      })) {}

LaneThread::~LaneThread() { Stop(); }

void LaneThread::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->Wake();
  thread_.join();
}

// ---- orders of the control thread ----

void LaneThread::SetView(const View& view) {
  const LiveSet live = LiveSetOf(view, job_.config, job_.server_node_id);
  const bool restart = !thread_.joinable() || view.timeline() != timeline_;
  if (restart) Stop();
  {
    absl::MutexLock lock(&mutex_);
    if (restart) {
      report_ = {};
      orders_ = {};
    }
    report_.ready = false;
    orders_.view = view.number();
    orders_.live = live;
    // It comes with SetNextView, before: unless this server was not heard then.
    if (!restart && view.placement() > ordered_placement_) orders_.placement = view;
  }
  timeline_ = view.timeline();
  ordered_placement_ = view.placement();
  if (restart) return Start(view, /*joins=*/false);
  ordered_ = true;
  transport_->Wake();
}

void LaneThread::SetNextView(const View& next) {
  const bool placed = next.lanes_size() > 0 && next.placement() > ordered_placement_;
  const bool starts = placed && (!thread_.joinable() || next.timeline() != timeline_);
  if (!thread_.joinable() && !starts) return;
  if (starts) Stop();
  {
    absl::MutexLock lock(&mutex_);
    if (starts) {
      report_ = {};
      orders_ = {};
    }
    if (next.number() <= std::max(orders_.fence, orders_.view)) return;
    orders_.fence = next.number();
    orders_.live = LiveSet(job_.config.cluster().virtual_workers());  // until the view itself comes
    if (placed && !starts) orders_.placement = next;
  }
  if (placed) {  // else it is a number, of the same timeline and placement
    ordered_placement_ = next.placement();
    timeline_ = next.timeline();
  }
  ordered_ = true;
  if (starts) return Start(next, /*joins=*/true);
  transport_->Wake();
}

void LaneThread::SetFinal(uint64_t version, std::vector<uint64_t> clocks) {
  absl::MutexLock lock(&mutex_);
  if (version == orders_.final_version && clocks == orders_.final_clocks) return;
  orders_.final_version = version;
  orders_.final_clocks = std::move(clocks);
  ordered_ = true;
}

void LaneThread::SetSchedule(const Schedule& schedule) {
  absl::MutexLock lock(&mutex_);
  if (schedule.number() <= orders_.schedule.number()) return;
  orders_.schedule = schedule;
  ordered_ = true;
}

// ---- beginning ----

SnapshotWriter::Place LaneThread::PlaceOf(const View& view, bool first) const {
  const std::vector<uint32_t> owners = LaneNumberOfSegment(view);
  return {.timeline = view.timeline(),
          .placement = view.placement(),
          .first = first,
          .lane_index = LaneIndex(view),
          .segments = static_cast<size_t>(std::count(owners.begin(), owners.end(), number_))};
}

void LaneThread::Start(const View& view, bool joins) {
  SnapshotWriter::Options options;
  options.run_dir = job_.run_dir;
  options.place = PlaceOf(view, !joins);
  if (AllReduces(job_.config)) options.while_waiting = [this] { StayInReduction(); };
  for (const BlockSpec& block : job_.blocks.blocks()) options.block_names.push_back(block.name());
  if (job_.trace != nullptr && trace_ == nullptr) {
    trace_ = job_.trace->AddTrack(absl::StrCat("lane ", index_on_server_));
  }
  options.memory = memory_;
  snapshots_ = std::make_unique<SnapshotWriter>(std::move(options), job_.table);
  thread_ = std::jthread([this, view, joins](std::stop_token stop) { Run(view, joins, stop); });
}

uint32_t LaneThread::LaneIndex(const View& view) const {
  for (int i = 0; i < view.lanes_size(); ++i) {
    if (LaneNumber(view.lanes(i)) == number_) return static_cast<uint32_t>(i);
  }
  return 0;
}

LaneCores LaneThread::CoresOf(const LaneJob& job, uint32_t index_on_server) {
  return index_on_server < job.cores.size() ? job.cores[index_on_server] : LaneCores();
}

void LaneThread::Run(const View& view, bool joins, std::stop_token stop) {
  // Before it touches its segments, whose memory is near from then on.
  StayOn(CoresOf(job_, index_on_server_).lane);
  const absl::Status prepared = Prepare(view, joins);
  {
    absl::MutexLock lock(&mutex_);
    report_.ready = prepared.ok() && orders_.view > 0;
    report_.failure = prepared;
  }
  if (prepared.ok()) Serve(stop);
}

absl::Status LaneThread::Prepare(const View& view, bool joins) {
  failed_ = false;
  RETURN_IF_ERROR(Offload(view));
  placement_ = view.placement();
  writers_ = LaneNumberOfSegment(view);
  postponed_.clear();
  order_.reset();
  NoteShardMemory();
  shard_.reset();  // before what it is made anew of
  view_ = view.number();
  if (joins) {
    live_ = LiveSet(job_.config.cluster().virtual_workers());  // they come with the view itself
    shard_ = std::make_unique<Shard>(MakeShardOptions(view), job_.table, MakeSinks());
    RETURN_IF_ERROR(ConnectToLanes(view, LanePeer(number_), *transport_));
    return shard_->TakeFrom(nullptr, time_.Now());
  }
  live_ = LiveSetOf(view, job_.config, job_.server_node_id);
  if (job_.config.sync().record() == SyncConfig::ORDER) RETURN_IF_ERROR(StartOrderLog(view));
  shard_ = std::make_unique<Shard>(MakeShardOptions(view), job_.table, MakeSinks());
  RETURN_IF_ERROR(FillSegments(view));
  if (!live_.all()) shard_->SetView(view_, live_, time_.Now());
  if (view.restore_path().empty() && job_.config.checkpoint().initial()) shard_->SnapshotStart();
  RETURN_IF_ERROR(ConnectToLanes(view, LanePeer(number_), *transport_));
  if (shard_->reduction() != nullptr) SetOverNetwork(view);
  return absl::OkStatus();
}

absl::Status LaneThread::Offload(const View& view) {
  const std::string& folder = job_.config.placement().offload_dir();
  if (folder.empty() || memory_->offloads()) return absl::OkStatus();
  const HeldMemory held = PredictLaneHeld(job_.config, job_.table, view, LaneIndex(view));
  const absl::Status offloaded = memory_->Offload(folder, held.weights + held.optimizer);
  if (offloaded.ok()) return offloaded;
  return absl::Status(offloaded.code(),
                      absl::StrCat("placement.offload_dir: ", offloaded.message()));
}

ShardSinks LaneThread::MakeSinks() {
  ShardSinks sinks;
  sinks.send = [this](Outgoing m) { sender_.Send(std::move(m)); };
  sinks.snapshot = [this](const SegmentSnapshot& s) { AddSnapshot(s); };
  sinks.notice = [this](ShardNotice notice) { AddNotice(std::move(notice)); };
  sinks.wake = [transport = transport_.get()] { transport->Wake(); };
  sinks.shares_memory = [this](PeerId peer) {
    // A rate that is asked for holds bytes back wherever they lie; and what lies in a file is
    // copied to be sent, as little at a time as the worker's credit allows.
    const bool held_back = job_.config.comm().impair().rate_mbit() > 0 || memory_->offloads();
    return !held_back && transport_->SharesMemoryWith(peer);
  };
  if (order_ != nullptr) {
    sinks.record = [this](const OrderRecord& record) {
      if (order_ != nullptr) order_->Append(record);
    };
  }
  return sinks;
}

absl::Status LaneThread::StartOrderLog(const View& view) {
  ASSIGN_OR_RETURN(
      order_, OrderLogWriter::Create(job_.run_dir,
                                     {.timeline = view.timeline(),
                                      .job = job_.job,
                                      .lane = LaneIndex(view),
                                      .lanes = static_cast<uint32_t>(view.lanes_size()),
                                      .virtual_workers = job_.config.cluster().virtual_workers(),
                                      .segments = job_.table.size(),
                                      .start_version = view.start_version()}));
  return absl::OkStatus();
}

// The log is whole before the last checkpoint is.
void LaneThread::AddSnapshot(const SegmentSnapshot& snapshot) {
  if (shard_->finished()) FinishOrderLog();
  if (writers_[snapshot.segment] == number_) snapshots_->Add(snapshot);
}

void LaneThread::FinishOrderLog() {
  if (order_ == nullptr) return;
  const absl::Status finished = order_->Finish();
  order_.reset();
  if (finished.ok()) return;
  AddNotice({"order/file", absl::StrCat("the order of updates is not recorded to its end: ",
                                        std::string(finished.message()))});
}

void LaneThread::AddNotice(ShardNotice notice) {
  absl::MutexLock lock(&mutex_);
  for (const ShardNotice& other : report_.notices) {
    if (other.key == notice.key) return;
  }
  if (report_.notices.size() < kMaxNotices) report_.notices.push_back(std::move(notice));
}

ShardOptions LaneThread::MakeShardOptions(const View& view) const {
  ShardOptions options;
  options.lane = number_;
  options.job = job_.job;
  options.timeline = view.timeline();
  options.view = view.number();
  options.placement = view.placement();
  options.start_version = view.start_version();
  options.virtual_workers = job_.config.cluster().virtual_workers();
  options.optimizer = job_.config.optimizer();
  options.sync = job_.config.sync();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.copies = LaneNumbersOfCopies(view);
  for (const BlockSpec& block : job_.blocks.blocks()) options.block_names.push_back(block.name());
  options.checkpoint_interval = job_.config.checkpoint().interval();
  options.last_step = job_.config.train().steps();
  options.resend_after = absl::Milliseconds(job_.config.comm().resend_ms());
  options.parking_bytes = kServerParkingBytes / job_.config.cluster().lanes_per_server();
  options.pull_format = job_.config.comm().pull_format();
  options.pull_density = job_.config.comm().pull_density();
  options.seed = job_.config.seed();
  options.scheduler = job_.config.comm().scheduler();
  options.pull_credit_bytes = job_.config.comm().pull_credit_bytes();
  options.sums_of_some = job_.config.fault().on_worker_loss() == FaultConfig::SHRINK;
  options.senders_let_go = PlacementModeOf(job_.config).frees_gradients;
  options.new_buffer = [transport = transport_.get()](size_t size_bytes) {
    return transport->NewBuffer(size_bytes);
  };
  options.memory = memory_;
  if (job_.config.placement().host_weight_cache()) {
    options.cached_lanes = CachedLanes(view, number_);
  }
  options.leave_out_update = job_.leave_out_update;
  options.trace = trace_;
  options.time = &time_;
  if (job_.config.watch().metrics()) options.work_time = &time_;
  if (AllReduces(job_.config)) {
    options.lane_of_segment.assign(options.lane_of_segment.size(), number_);
    options.reduction = ReductionOptions(view);
  }
  return options;
}

absl::Status LaneThread::FillSegments(const View& view) {
  if (!view.restore_path().empty()) {
    return RestoreSegments(view.restore_path(), job_.config, job_.blocks, job_.table, *shard_);
  }
  std::optional<WeightsSource> source;
  if (!job_.config.train().init_from().empty()) {
    ASSIGN_OR_RETURN(source, WeightsSource::Open(job_.config.train().init_from()));
    RETURN_IF_ERROR(source->Check(job_.config, job_.blocks));
  }
  for (uint32_t id : shard_->held()) {
    const Segment& segment = job_.table.segment(id);
    const BlockSpec& block = job_.blocks.blocks(static_cast<int>(segment.block));
    if (source.has_value()) {
      RETURN_IF_ERROR(source->ReadRange(block, segment.begin, segment.end, shard_->weights(id)));
    } else {
      FillInitialWeights(block, segment.block, job_.config.seed(), segment.begin,
                         shard_->weights(id));
    }
  }
  return absl::OkStatus();
}

// ---- serving ----

void LaneThread::Serve(std::stop_token stop) {
  absl::Time next_tick = time_.Now();
  while (!stop.stop_requested()) {
    if (ordered_.exchange(false)) TakeOrders(time_.Now());
    const bool busy = !failed_ && Reduce();
    if (failed_) return;
    if (const absl::Time now = time_.Now(); now >= next_tick) {
      shard_->OnTick(now);
      if (order_ != nullptr) order_->Flush();
      if (shard_->finished()) FinishOrderLog();
      PublishCounters();
      next_tick = now + kTick;
    }
    sender_.Retry();
    for (Message& message : std::exchange(postponed_, {})) {
      shard_->OnMessage(std::move(message), time_.Now());
    }
    const absl::Duration tick = shard_->reduction() == nullptr ? kTick : RankGroup::kTick;
    transport_->Poll(busy ? absl::ZeroDuration() : sender_.PollTime(tick),
                     [&](Message m) { shard_->OnMessage(std::move(m), time_.Now()); });
  }
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

void LaneThread::TakeOrders(absl::Time now) {
  Orders orders;
  uint32_t schedule = 0;
  {
    absl::MutexLock lock(&mutex_);
    orders = orders_;
    orders_.placement.reset();
    schedule = report_.schedule;
  }
  if (orders.placement.has_value()) {
    if (const absl::Status taken = TakePlacement(*orders.placement, now); !taken.ok()) {
      return Fail(taken);
    }
    schedule = 0;
  }
  const uint32_t view = std::max(orders.view, orders.fence);
  if (view != view_ || orders.live != live_) {
    view_ = view;
    live_ = orders.live;
    shard_->SetView(view_, live_, now);
  }
  if (!orders.final_clocks.empty()) {
    shard_->SetFinalClocks(orders.final_clocks, orders.final_version, now);
  } else if (orders.final_version > 0) {
    shard_->SetFinalVersion(orders.final_version);
  }
  if (orders.schedule.number() != schedule) {
    shard_->SetPullCredit(orders.schedule.pull_credit_bytes(), now);
  }
  absl::MutexLock lock(&mutex_);
  report_.schedule = orders.schedule.number();
  report_.ready = orders_.view > 0 && view_ >= orders_.view;
  if (orders.fence > 0 && report_.clocks_of_view != orders.fence) {
    report_.clocks = shard_->Clocks();
    report_.clocks_of_view = orders.fence;
  }
}

absl::Status LaneThread::TakePlacement(const View& view, absl::Time now) {
  if (order_ != nullptr) {
    return absl::FailedPreconditionError(
        "a log of updates is of lanes that keep their segments: leave sync.record out where "
        "servers "
        "come and go");
  }
  RETURN_IF_ERROR(ConnectToLanes(view, LanePeer(number_), *transport_));
  auto next = std::make_unique<Shard>(MakeShardOptions(view), job_.table, MakeSinks());
  snapshots_->SetPlace(PlaceOf(view, /*first=*/false));
  writers_ = LaneNumberOfSegment(view);
  RETURN_IF_ERROR(next->TakeFrom(shard_.get(), now));
  NoteShardMemory();
  shard_ = std::move(next);
  view_ = view.number();
  placement_ = view.placement();
  return absl::OkStatus();
}

}  // namespace tug
