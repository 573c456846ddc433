// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_LANE_H_
#define TUG_SERVER_LANE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/cpu/cpu_budget.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "blocks/segment_table.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"
#include "server/lane_core.h"
#include "server/lane_orders.h"
#include "server/lane_report.h"
#include "server/segments/lane_memory.h"
#include "server/shard/shard.h"
#include "server/snapshot_writer.h"
#include "server/sync/order_log.h"
#include "transport/open_transport.h"
#include "transport/patient_sender.h"

namespace tug {

// A job as its lanes use it. Shared by a server's lanes; outlives them. `table` and `trace` come
// with the first view: set them before LaneThread::SetView and OnReply give the lane a view.
struct LaneJob {
  uint64_t job = 0;
  uint32_t server_node_id = 0;
  JobConfig config;
  std::string run_dir;
  SegmentTable table;
  std::vector<LaneCores> cores = {};  // by lane of this server; none: threads run anywhere
  bool leave_out_update = false;      // see ShardOptions
  Trace* trace = nullptr;             // may be null
  JobKeys keys = {};
};

// Runs a LaneCore in real time: one thread, one socket, the lane's memory, its checkpoint files and
// its log of updates. Pushes and pulls take no lock; the server's control thread exchanges orders
// and reports with the lane under a mutex, between two polls.
class LaneThread {
 public:
  // Binds to a free port of `listen_host`. Errors: as OpenTransport.
  static absl::StatusOr<std::unique_ptr<LaneThread>> Bind(const LaneJob& job,
                                                          uint32_t index_on_server,
                                                          const std::string& listen_host);
  // Stops the thread; finishes a checkpoint file being written.
  ~LaneThread();
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  std::string endpoint() const { return endpoint_; }

  // For one control thread; see LaneOrders. Orders take effect between two polls.
  void SetView(const View& view);
  // `sent`: the heartbeat, with report(), that the coordinator answered.
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent);
  LaneReport report() const;

 private:
  LaneThread(const LaneJob& job, uint32_t index_on_server, OpenedTransport opened);

  // Cores of this thread and of the transport's threads.
  static LaneCores CoresOf(const LaneJob& job, uint32_t index_on_server);
  LaneCore::Sinks MakeSinks();
  // `joins`: in the middle of a timeline.
  void Start(const View& view, bool joins);
  void Stop();
  void Run(const View& view, bool joins, std::stop_token stop);
  absl::Status Prepare(const View& view, bool joins);
  // With placement.offload_dir: gives the lane's memory its file, once.
  absl::Status Offload(const View& view);
  absl::Status StartOrderLog(const View& view);
  void FinishOrderLog();
  void AddNotice(ShardNotice notice);
  absl::Status Fill(const View& view, Shard& shard);
  void Serve(std::stop_token stop);
  // Keeps the reduction alive while the lane waits for a checkpoint file; postpones pushes and
  // pulls.
  void StayInReduction();
  // Stops serving once the messages about the failure have been sent.
  void Fail(const absl::Status& failure);
  void RefreshOrders(absl::Time now);
  // lane_figures.cc
  void Publish();
  LaneFigures Figures() const;

  const LaneJob& job_;
  const uint32_t index_on_server_;
  const uint32_t number_;
  const std::string endpoint_;
  const RealTime time_;
  // Owner: thread_ (before it, the starting thread), except Wake and SharedBytes.
  const std::unique_ptr<Transport> transport_;
  PatientSender sender_;                       // owner: thread_
  const std::shared_ptr<LaneMemory> memory_;   // shared with buffers that are still read
  LaneCore core_;                              // owner: thread_
  TraceTrack* trace_ = nullptr;                // set by Start, before thread_
  std::unique_ptr<SnapshotWriter> snapshots_;  // set by Start, before thread_; synchronises itself
  std::unique_ptr<OrderLogWriter> order_;      // owner: thread_; null: nothing is recorded
  std::vector<Message> postponed_;             // owner: thread_; filled by StayInReduction
  bool failed_ = false;                        // owner: thread_
  std::atomic<bool> ordered_ = false;          // orders_ may be new
  mutable absl::Mutex mutex_;
  LaneReport report_ ABSL_GUARDED_BY(mutex_);
  LaneOrders orders_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_H_
