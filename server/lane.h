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
#include "base/trace.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"
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
};

// One thread, one socket, one set of segments: binds a Shard to ZeroMQ and real time. No lock on
// the way of a push or pull; what the server's control thread wants to know is left under a mutex
// between two polls.
class LaneThread {
 public:
  // What is there to be reported, new or not: reports are keyed.
  struct Report {
    bool ready = false;
    absl::Status failure;
    std::vector<CheckpointPart> parts;
    std::vector<ShardNotice> notices;
    uint64_t dropped = 0;
    uint64_t refused = 0;
    uint32_t schedule = 0;           // number of the one in effect
    uint64_t most_answer_bytes = 0;  // ShardCounters
    uint64_t shared_bytes = 0;       // Transport::SharedBytes
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
  // Takes up its segments of the view: fills them in (initial weights or checkpoint), then serves.
  // Once.
  void Start(const View& view);
  void SetFinalVersion(uint64_t version);
  // Takes effect within a tick; then report() has its number.
  void SetSchedule(const Schedule& schedule);
  Report report() const;

 private:
  LaneThread(const LaneJob& job, uint32_t index_on_server, OpenedTransport opened);

  // Where its thread and its transport's stay.
  static LaneCores CoresOf(const LaneJob& job, uint32_t index_on_server);
  void Run(const View& view, std::stop_token stop);
  absl::Status Prepare(const View& view);
  ShardOptions MakeShardOptions(const View& view) const;
  absl::Status FillSegments(const View& view);
  void Serve(std::stop_token stop);
  void TakeSchedule(absl::Time now);
  void PublishCounters();

  const LaneJob& job_;
  const uint32_t index_on_server_;
  const uint32_t number_;
  const std::string endpoint_;
  // Owner: thread_ (before it, the starting thread), but for Wake and SharedBytes.
  const std::unique_ptr<Transport> transport_;
  PatientSender sender_;                       // owner: thread_
  std::unique_ptr<Shard> shard_;               // owner: thread_
  TraceTrack* trace_ = nullptr;                // set by Start, before thread_
  std::unique_ptr<SnapshotWriter> snapshots_;  // set by Start, before thread_; synchronises itself
  std::atomic<uint64_t> final_version_ = 0;
  mutable absl::Mutex mutex_;
  Report report_ ABSL_GUARDED_BY(mutex_);
  Schedule schedule_ ABSL_GUARDED_BY(mutex_);  // newest that was asked for
  std::jthread thread_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_H_
