#ifndef TUG_SERVER_SNAPSHOT_WRITER_H_
#define TUG_SERVER_SNAPSHOT_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "base/time_source.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"
#include "server/lane_memory.h"
#include "server/lane_parts.h"
#include "server/shard.h"

namespace tug {

// Turns a lane's snapshots into files of checkpoints, while training goes on. The lane's thread
// only copies (m and v; the weights are leased); a thread of the writer's own formats, writes and
// syncs. One checkpoint at a time is written: a lane that reaches the next one meanwhile waits, and
// the report says for how long it stood.
//
// When segments move, what is not written yet is void: lanes take their snapshots again, of those
// that they own now (lane_parts.h).
class SnapshotWriter {
 public:
  struct Options {
    std::string run_dir;
    std::vector<std::string> block_names;
    // Called on the lane's thread about every kWaitStep while Add waits; may be empty.
    std::function<void()> while_waiting = {};
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();  // that copies lie in
  };
  static constexpr absl::Duration kWaitStep = absl::Milliseconds(10);
  // REQUIRES: `table` outlives the writer.
  SnapshotWriter(Options options, const SegmentTable& table);
  // Finishes the file in hand.
  ~SnapshotWriter();

  // Lane thread: copies. The first of a checkpoint blocks while another one is being written, so
  // that beside those that fill there is one copy of the state. A segment that the checkpoint has
  // is left out.
  void Add(const SegmentSnapshot& snapshot);
  // Lane thread: another placement. Does not wait.
  void SetPlace(const LanePlace& place);
  // What is to be reported of this placement, failed parts with their error. Thread-safe.
  std::vector<CheckpointPart> parts() const;
  // The heartbeat was answered. Thread-safe.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  struct Copy {
    uint32_t segment = 0;
    Lease weights;
    AlignedBuffer m;
    AlignedBuffer v;
    std::vector<uint64_t> clocks;  // as SegmentSnapshot's
  };
  using Checkpoint = FillingParts<Copy>::Part;

  void AwaitIdle();
  void Loop();
  CheckpointPart Write(Checkpoint& checkpoint) const;

  const Options options_;
  const SegmentTable& table_;
  const RealTime time_;
  FillingParts<Copy> filling_;  // owner: the lane's thread
  mutable absl::Mutex mutex_;
  std::optional<Checkpoint> full_ ABSL_GUARDED_BY(mutex_);   // handed to the thread
  std::optional<uint32_t> writing_ ABSL_GUARDED_BY(mutex_);  // placement of what it writes
  LanePartReports reports_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_SERVER_SNAPSHOT_WRITER_H_
