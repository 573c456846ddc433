// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_RESIDUAL_WRITER_H_
#define TUG_WORKER_GRADIENTS_RESIDUAL_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "config/sync_mode.h"
#include "proto/control.pb.h"
#include "worker/core/worker_core.h"
#include "worker/gradients/residual_parts.h"

namespace tug {

// Writes copies of virtual workers' residuals to checkpoint files during training: the writer's
// thread formats, writes and syncs them. It writes one file at a time, so there is one copy; the
// caller with the next one waits.
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
  // Cancels, and finishes the file in progress.
  ~ResidualWriter();

  // Whether checkpoint files can be written from here: OK, or FAILED_PRECONDITION with the remedy.
  // Looks for the coordinator's config.textproto, which only the job's run folder has: any process
  // may have created a folder of the same name.
  static absl::Status CheckRunFolder(const std::string& run_dir);

  // Blocks until no file is being written; call it before making a copy. False: cancelled.
  bool AwaitIdle();
  // Ends waits, and starts no further file. Thread-safe.
  void Cancel();

  // See ResidualParts. Thread-safe.
  void OnView(const View& view, uint32_t node_id);

  struct Copy {
    ResidualOrder order;
    absl::Duration pause = {};                    // how long copying stopped training
    std::vector<SegmentResidual> residuals = {};  // empty: no file
  };
  // REQUIRES: after AwaitIdle, by the same thread.
  void Add(Copy copy);

  // Adds the parts, failed ones with their error. While a file is being written, the beat reports
  // neither a pause nor the end: no other worker may run the virtual workers before their parts are
  // reported. Thread-safe.
  void AddTo(HeartbeatRequest& beat) const;
  // The heartbeat was acknowledged. Thread-safe.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  void Loop();
  CheckpointPart Write(const Copy& copy) const;

  const Options options_;
  const SegmentTable& table_;
  mutable absl::Mutex mutex_;
  std::optional<Copy> next_ ABSL_GUARDED_BY(mutex_);  // waiting for the thread
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  ResidualParts parts_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_RESIDUAL_WRITER_H_
