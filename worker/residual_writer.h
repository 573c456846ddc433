#ifndef TUG_WORKER_RESIDUAL_WRITER_H_
#define TUG_WORKER_RESIDUAL_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"
#include "proto/sync_mode.h"
#include "worker/residual_parts.h"
#include "worker/worker_core.h"

namespace tug {

// Turns copies of virtual workers' residuals into files of checkpoints, while training goes on: a
// thread of the writer's own formats, writes and syncs. One at a time is written, so that there is
// one copy; whoever has the next waits.
class ResidualWriter {
 public:
  struct Options {
    std::string run_dir;
    std::vector<std::string> block_names;
    uint32_t timeline = 1;
    SyncMode mode = SyncModeOf(SyncConfig::BSP);
  };
  // REQUIRES: `table` outlives the writer.
  ResidualWriter(Options options, const SegmentTable& table);
  // Cancels, and finishes the file in hand.
  ~ResidualWriter();

  // Whether files for checkpoints can be written from here: OK, or FAILED_PRECONDITION with the
  // remedy. Whatever makes folders below a run folder, the coordinator's file is only in the job's.
  static absl::Status CheckRunFolder(const std::string& run_dir);

  // Blocks until nothing is being written: before a copy is made. False: cancelled.
  bool AwaitIdle();
  // Ends waits, and begins no further file. Thread-safe.
  void Cancel();

  // As ResidualParts. Thread-safe.
  void OnView(const View& view, uint32_t node_id);

  struct Copy {
    ResidualOrder order;
    absl::Duration pause = {};                    // that copying held up training
    std::vector<SegmentResidual> residuals = {};  // empty: there is no file
  };
  // REQUIRES: after AwaitIdle, by the same thread.
  void Add(Copy copy);

  // Adds the parts, failed ones with their error. As long as a file is being written the beat says
  // neither that the worker pauses nor that it has finished, since nobody may carry its virtual
  // workers before their parts are reported. Thread-safe.
  void AddTo(HeartbeatRequest& beat) const;
  // The heartbeat was answered. Thread-safe.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  void Loop();
  CheckpointPart Write(const Copy& copy) const;

  const Options options_;
  const SegmentTable& table_;
  mutable absl::Mutex mutex_;
  std::optional<Copy> next_ ABSL_GUARDED_BY(mutex_);  // handed to the thread
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  ResidualParts parts_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_WORKER_RESIDUAL_WRITER_H_
