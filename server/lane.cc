#include "server/lane.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu_affinity.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "checkpoint/checkpoint.h"
#include "exchange/view_lanes.h"
#include "huggingface/weights_source.h"
#include "server/initial_weights.h"

namespace tug {
namespace {

// How often a lane looks for norms that do not come, and for orders of the control thread.
constexpr absl::Duration kTick = absl::Milliseconds(50);
// Lines for people that a lane remembers; a job with more has told its story.
constexpr size_t kMaxNotices = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<LaneThread>> LaneThread::Bind(const LaneJob& job,
                                                             uint32_t index_on_server,
                                                             const std::string& listen_host) {
  const StartThreadsOn io_cores(CoresOf(job, index_on_server).io);
  const PeerId self = LanePeer(LaneNumber(job.server_node_id, index_on_server));
  ASSIGN_OR_RETURN(OpenedTransport opened,
                   OpenTransport(self, job.job, job.config.comm(), listen_host));
  return std::unique_ptr<LaneThread>(new LaneThread(job, index_on_server, std::move(opened)));
}

LaneThread::LaneThread(const LaneJob& job, uint32_t index_on_server, OpenedTransport opened)
    : job_(job),
      index_on_server_(index_on_server),
      number_(LaneNumber(job.server_node_id, index_on_server)),
      endpoint_(std::move(opened.endpoint)),
      transport_(std::move(opened.transport)),
      sender_(*transport_) {}

LaneThread::~LaneThread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->Wake();
  thread_.join();
}

void LaneThread::Start(const View& view) {
  TUG_CHECK(!thread_.joinable());
  SnapshotWriter::Options options;
  options.run_dir = job_.run_dir;
  for (int i = 0; i < view.lanes_size(); ++i) {
    if (LaneNumber(view.lanes(i)) == number_) options.lane_index = static_cast<uint32_t>(i);
  }
  const std::vector<uint32_t> owners = LaneNumberOfSegment(view);
  options.segments = static_cast<size_t>(std::count(owners.begin(), owners.end(), number_));
  for (const BlockSpec& block : job_.blocks.blocks()) options.block_names.push_back(block.name());
  if (job_.trace != nullptr) {
    trace_ = job_.trace->AddTrack(absl::StrCat("lane ", index_on_server_));
  }
  snapshots_ = std::make_unique<SnapshotWriter>(std::move(options), job_.table);
  thread_ = std::jthread([this, view](std::stop_token stop) { Run(view, stop); });
}

LaneCores LaneThread::CoresOf(const LaneJob& job, uint32_t index_on_server) {
  return index_on_server < job.cores.size() ? job.cores[index_on_server] : LaneCores();
}

void LaneThread::Run(const View& view, std::stop_token stop) {
  // Before it touches its segments, whose memory is near from then on.
  StayOn(CoresOf(job_, index_on_server_).lane);
  const absl::Status prepared = Prepare(view);
  {
    absl::MutexLock lock(&mutex_);
    report_.ready = prepared.ok();
    report_.failure = prepared;
  }
  if (prepared.ok()) Serve(stop);
}

absl::Status LaneThread::Prepare(const View& view) {
  shard_ = std::make_unique<Shard>(
      MakeShardOptions(view), job_.table,
      ShardSinks{.send = [this](Outgoing m) { sender_.Send(std::move(m)); },
                 .snapshot = [this](const SegmentSnapshot& s) { snapshots_->Add(s); },
                 .notice =
                     [this](ShardNotice notice) {
                       absl::MutexLock lock(&mutex_);
                       if (report_.notices.size() < kMaxNotices) {
                         report_.notices.push_back(std::move(notice));
                       }
                     },
                 .shares_memory =
                     [this](PeerId peer) {
                       // A rate that is asked for holds bytes back wherever they lie.
                       const bool slowed = job_.config.comm().impair().rate_mbit() > 0;
                       return !slowed && transport_->SharesMemoryWith(peer);
                     }});
  RETURN_IF_ERROR(FillSegments(view));
  if (view.restore_path().empty() && job_.config.checkpoint().initial()) shard_->SnapshotStart();
  return ConnectToLanes(view, LanePeer(number_), *transport_);
}

ShardOptions LaneThread::MakeShardOptions(const View& view) const {
  ShardOptions options;
  options.lane = number_;
  options.job = job_.job;
  options.timeline = view.timeline();
  options.view = view.number();
  options.start_version = view.start_version();
  options.virtual_workers = job_.config.cluster().virtual_workers();
  options.optimizer = job_.config.optimizer();
  options.lane_of_segment = LaneNumberOfSegment(view);
  for (const BlockSpec& block : job_.blocks.blocks()) options.block_names.push_back(block.name());
  options.checkpoint_interval = job_.config.checkpoint().interval();
  options.resend_after = absl::Milliseconds(job_.config.comm().resend_ms());
  options.parking_bytes = kServerParkingBytes / job_.config.cluster().lanes_per_server();
  options.pull_format = job_.config.comm().pull_format();
  options.scheduler = job_.config.comm().scheduler();
  options.pull_credit_bytes = job_.config.comm().pull_credit_bytes();
  options.new_buffer = [transport = transport_.get()](size_t size_bytes) {
    return transport->NewBuffer(size_bytes);
  };
  options.leave_out_update = job_.leave_out_update;
  options.trace = trace_;
  return options;
}

absl::Status LaneThread::FillSegments(const View& view) {
  std::optional<CheckpointReader> checkpoint;
  if (!view.restore_path().empty()) {
    ASSIGN_OR_RETURN(checkpoint, CheckpointReader::Open(view.restore_path()));
  }
  std::optional<WeightsSource> source;
  if (!checkpoint.has_value() && !job_.config.train().init_from().empty()) {
    ASSIGN_OR_RETURN(source, WeightsSource::Open(job_.config.train().init_from()));
    RETURN_IF_ERROR(source->Check(job_.config, job_.blocks));
  }
  for (uint32_t id : shard_->segments()) {
    const Segment& segment = job_.table.segment(id);
    const BlockSpec& block = job_.blocks.blocks(static_cast<int>(segment.block));
    if (source.has_value()) {
      RETURN_IF_ERROR(source->ReadRange(block, segment.begin, segment.end, shard_->weights(id)));
      continue;
    }
    if (!checkpoint.has_value()) {
      FillInitialWeights(block, segment.block, job_.config.seed(), segment.begin,
                         shard_->weights(id));
      continue;
    }
    RETURN_IF_ERROR(
        checkpoint->ReadRange(block.name(), segment.begin, segment.end, 'w', shard_->weights(id)));
    RETURN_IF_ERROR(
        checkpoint->ReadRange(block.name(), segment.begin, segment.end, 'm', shard_->m(id)));
    RETURN_IF_ERROR(
        checkpoint->ReadRange(block.name(), segment.begin, segment.end, 'v', shard_->v(id)));
  }
  return absl::OkStatus();
}

void LaneThread::Serve(std::stop_token stop) {
  const RealTime time;
  absl::Time next_tick = time.Now();
  while (!stop.stop_requested()) {
    if (const absl::Time now = time.Now(); now >= next_tick) {
      shard_->OnTick(now);
      if (const uint64_t final_version = final_version_; final_version > 0) {
        shard_->SetFinalVersion(final_version);
      }
      TakeSchedule(now);
      PublishCounters();
      next_tick = now + kTick;
    }
    sender_.Retry();
    transport_->Poll(sender_.PollTime(kTick),
                     [&](Message m) { shard_->OnMessage(std::move(m), time.Now()); });
  }
}

void LaneThread::TakeSchedule(absl::Time now) {
  Schedule schedule;
  {
    absl::MutexLock lock(&mutex_);
    if (schedule_.number() == report_.schedule) return;
    schedule = schedule_;
  }
  shard_->SetPullCredit(schedule.pull_credit_bytes(), now);
  absl::MutexLock lock(&mutex_);
  report_.schedule = schedule.number();
}

void LaneThread::PublishCounters() {
  absl::MutexLock lock(&mutex_);
  report_.dropped = transport_->counters().dropped + shard_->counters().malformed;
  report_.refused = shard_->counters().refused;
  report_.most_answer_bytes = shard_->counters().most_answer_bytes;
}

void LaneThread::SetFinalVersion(uint64_t version) { final_version_ = version; }

void LaneThread::SetSchedule(const Schedule& schedule) {
  absl::MutexLock lock(&mutex_);
  if (schedule.number() > schedule_.number()) schedule_ = schedule;
}

LaneThread::Report LaneThread::report() const {
  Report report;
  {
    absl::MutexLock lock(&mutex_);
    report = report_;
  }
  report.shared_bytes = transport_->SharedBytes();
  if (snapshots_ != nullptr) report.parts = snapshots_->parts();
  return report;
}

}  // namespace tug
