#ifndef TUG_WORKER_RESIDUAL_WRITER_H_
#define TUG_WORKER_RESIDUAL_WRITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "checkpoint/part_report.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"

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

  // Others go on with the virtual worker from this clock: its parts of versions after that are
  // void, written or not, until Expect. Thread-safe, both.
  void Forget(uint32_t virtual_worker, uint64_t clock);
  void Expect(uint32_t virtual_worker);

  struct Copy {
    uint64_t version = 0;
    uint32_t virtual_worker = 0;
    uint32_t view = 0;  // as ResidualPlace
    absl::Duration pause = {};
    std::vector<SegmentResidual> residuals = {};  // empty: there is no file
  };
  // REQUIRES: after AwaitIdle, by the same thread.
  void Add(Copy copy);

  struct Report {
    std::vector<CheckpointPart> parts = {};  // PartReports, failed ones with their error
    bool writing = false;                    // another one is to come
  };
  // Thread-safe.
  Report report() const;
  // The heartbeat with a report was answered. Thread-safe.
  void OnHeard(const HeartbeatRequest& sent);

 private:
  void Loop();
  CheckpointPart Write(const Copy& copy) const;
  void Keep(CheckpointPart part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const SegmentTable& table_;
  mutable absl::Mutex mutex_;
  std::optional<Copy> next_ ABSL_GUARDED_BY(mutex_);  // handed to the thread
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint32_t, PartReports> parts_ ABSL_GUARDED_BY(mutex_);  // by virtual worker
  // By virtual worker that others have: the newest version of which a part is kept.
  std::map<uint32_t, uint64_t> newest_kept_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_WORKER_RESIDUAL_WRITER_H_
