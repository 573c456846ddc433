#ifndef TUG_SERVER_LANE_H_
#define TUG_SERVER_LANE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/cpu_budget.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "exchange/segment_table.h"
#include "metrics/server_metrics.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "server/lane_memory.h"
#include "server/order_log.h"
#include "server/shard.h"
#include "server/snapshot_writer.h"
#include "transport/open_transport.h"
#include "transport/patient_sender.h"

namespace tug {

// A job as a lane needs it. Shared by a server's lanes; outlives them. `blocks` and `table` come
// with the view: set before LaneThread::Start, and not after.
struct LaneJob {
  uint64_t job = 0;
  uint32_t server_node_id = 0;
  JobConfig config;
  BlockTable blocks;
  std::string run_dir;
  SegmentTable table;
  std::vector<LaneCores> cores = {};  // by lane of this server; none: they run anywhere
  bool leave_out_update = false;      // see ShardOptions
  Trace* trace = nullptr;             // set with the view; may be null
  JobKeys keys = {};
};

// One thread, one socket, one set of segments: binds a Shard to ZeroMQ and real time. No lock on
// the way of a push or pull; what the server's control thread wants to know is left under a mutex
// between two polls.
class LaneThread {
 public:
  // What is there to be reported, new or not: reports are keyed.
  struct Report {
    bool ready = false;  // serves the newest view it was given
    absl::Status failure;
    std::vector<CheckpointPart> parts;
    std::vector<ShardNotice> notices;
    uint32_t schedule = 0;  // number of the one in effect
    // Shard::Clocks, with all views before `clocks_of_view` fenced off; empty: not asked for.
    std::vector<uint64_t> clocks;
    uint32_t clocks_of_view = 0;
    // The newest placement (View.placement) in which all copies of the lane's segments were in
    // sync.
    uint32_t copied_placement = 0;
    // As of its last tick. With watch.metrics only: its CPU time, and the seconds of optimizer and
    // answers.
    LaneFigures figures;
    ShardActivity activity = {};
    absl::Time active_since = absl::InfiniteFuture();  // that it has been at
  };

  // Binds to a free port of `listen_host`. Errors: as OpenTransport.
  static absl::StatusOr<std::unique_ptr<LaneThread>> Bind(const LaneJob& job,
                                                          uint32_t index_on_server,
                                                          const std::string& listen_host);
  // Stops the thread; finishes a checkpoint file in hand.
  ~LaneThread();
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  std::string endpoint() const { return endpoint_; }

  // For one control thread:
  // Of the first view, and of one of a new timeline: takes up its segments (again) and fills them
  // in (initial weights or checkpoint), then serves. Of another: fences and goes on with what it
  // has.
  void SetView(const View& view);
  // HeartbeatReply.next_view: takes up its placement, if there is one and it is new, with what the
  // lane has; nothing, if the lane is new to the job: then its copies are filled by their owners.
  // Fences off all views before its number; then report() has the clocks.
  void SetNextView(const View& next);
  // The step at which the job ends; by virtual worker, where every push is an update (Shard).
  void SetFinal(uint64_t version, std::vector<uint64_t> clocks);
  // Takes effect within a tick; then report() has its number.
  void SetSchedule(const Schedule& schedule);
  // The heartbeat, with report(), was answered.
  void OnHeard(const HeartbeatRequest& sent);
  Report report() const;

 private:
  // What the control thread wants, until the lane's thread takes it.
  struct Orders {
    uint32_t view = 0;
    LiveSet live{0};
    uint32_t fence = 0;
    std::optional<View> placement;  // to be taken up
    uint64_t final_version = 0;
    std::vector<uint64_t> final_clocks;
    Schedule schedule;
  };

  LaneThread(const LaneJob& job, uint32_t index_on_server, OpenedTransport opened);

  // Where its thread and its transport's stay.
  static LaneCores CoresOf(const LaneJob& job, uint32_t index_on_server);
  // `joins`: in the middle of a timeline.
  void Start(const View& view, bool joins);
  void Stop();
  void Run(const View& view, bool joins, std::stop_token stop);
  absl::Status Prepare(const View& view, bool joins);
  SnapshotWriter::Place PlaceOf(const View& view, bool first) const;
  // Of this lane in the view.
  uint32_t LaneIndex(const View& view) const;
  // With placement.offload_dir: gives the lane's memory its file, once.
  absl::Status Offload(const View& view);
  ShardSinks MakeSinks();
  absl::Status StartOrderLog(const View& view);
  void AddSnapshot(const SegmentSnapshot& snapshot);
  void FinishOrderLog();
  void AddNotice(ShardNotice notice);
  ShardOptions MakeShardOptions(const View& view) const;
  LaneReduction::Options ReductionOptions(const View& view) const;
  absl::Status FillSegments(const View& view);
  void Serve(std::stop_token stop);
  // Tells the reduction among lanes which of them share no memory with this one.
  void SetOverNetwork(const View& view);
  // Drives the reduction among lanes; false: there is nothing to do at once.
  bool Reduce();
  // The same while the lane waits for a checkpoint's file: it is heard of, and keeps what comes.
  void StayInReduction();
  // Serves no more; what others are to know of it leaves.
  void Fail(const absl::Status& failure);
  void TakeOrders(absl::Time now);
  absl::Status TakePlacement(const View& view, absl::Time now);
  void PublishCounters();
  LaneFigures Figures() const;
  // Before shard_ goes.
  void NoteShardMemory();

  const LaneJob& job_;
  const uint32_t index_on_server_;
  const uint32_t number_;
  const std::string endpoint_;
  const RealTime time_;
  // Owner: thread_ (before it, the starting thread), but for Wake and SharedBytes.
  const std::unique_ptr<Transport> transport_;
  PatientSender sender_;                       // owner: thread_
  const std::shared_ptr<LaneMemory> memory_;   // shared with buffers that are still read
  std::unique_ptr<Shard> shard_;               // owner: thread_
  uint64_t most_sum_bytes_ = 0;                // owner: thread_; of all shards so far
  uint64_t most_cached_bytes_ = 0;             // the same
  TraceTrack* trace_ = nullptr;                // set by Start, before thread_
  std::unique_ptr<SnapshotWriter> snapshots_;  // set by Start, before thread_; synchronises itself
  std::unique_ptr<OrderLogWriter> order_;      // owner: thread_; null: nothing is recorded
  std::vector<uint32_t> writers_;   // owner: thread_; lane that writes a segment into checkpoints
  std::vector<Message> postponed_;  // owner: thread_; by StayInReduction
  absl::Time next_reduction_tick_ = absl::InfinitePast();  // owner: thread_
  uint32_t view_ = 0;                                      // owner: thread_
  LiveSet live_{0};                                        // owner: thread_
  uint32_t placement_ = 0;                                 // owner: thread_; that of shard_
  bool failed_ = false;                                    // owner: thread_; serves no more
  uint32_t timeline_ = 0;                                  // owner: the control thread
  uint32_t ordered_placement_ = 0;     // owner: the control thread; the newest it was given
  std::atomic<bool> ordered_ = false;  // orders_ may be new
  mutable absl::Mutex mutex_;
  Report report_ ABSL_GUARDED_BY(mutex_);
  Orders orders_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_H_
