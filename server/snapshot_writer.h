// SPDX-License-Identifier: Apache-2.0
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
#include "base/memory/lease.h"
#include "base/time_source.h"
#include "blocks/segment_table.h"
#include "proto/control.pb.h"
#include "server/lane_parts.h"
#include "server/segments/lane_memory.h"
#include "server/shard/shard.h"

namespace tug {

// Writes a lane's snapshots to checkpoint files while training continues. The lane's thread only
// copies (m and v; the weights are leased); a thread of the writer formats, writes and syncs. It
// writes one checkpoint at a time: a lane that reaches the next one meanwhile waits, and the part's
// pause_seconds includes the wait.
//
// When segments move, unwritten parts are void: lanes snapshot the segments that they own now
// (lane_parts.h).
class SnapshotWriter {
 public:
  struct Options {
    std::string run_dir;
    std::vector<std::string> block_names;
    // Called on the lane's thread about every kWaitStep while Add waits; may be empty.
    std::function<void()> while_waiting = {};
    std::shared_ptr<LaneMemory> memory = LaneMemory::Create();  // allocates the copies
  };
  static constexpr absl::Duration kWaitStep = absl::Milliseconds(10);
  // REQUIRES: `table` outlives the writer.
  SnapshotWriter(Options options, const SegmentTable& table);
  // Finishes the file being written.
  ~SnapshotWriter();

  // Copies the snapshot; call on the lane's thread. The first and the last segment of a checkpoint
  // block while another checkpoint is being written, so there is at most one copy of the state
  // besides the parts being filled. Ignores a segment that the checkpoint already has.
  void Add(const SegmentSnapshot& snapshot);
  // Enters another placement; call on the lane's thread. Does not wait.
  void SetPlace(const LanePlace& place);
  // Parts to report for this placement; failed ones carry their error. Thread-safe.
  std::vector<CheckpointPart> parts() const;
  // The coordinator answered this heartbeat. Thread-safe.
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
  std::optional<Checkpoint> full_ ABSL_GUARDED_BY(mutex_);   // next to be written by thread_
  std::optional<uint32_t> writing_ ABSL_GUARDED_BY(mutex_);  // placement of the part being written
  LanePartReports reports_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_SERVER_SNAPSHOT_WRITER_H_
