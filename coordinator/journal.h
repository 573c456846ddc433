// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_JOURNAL_H_
#define TUG_COORDINATOR_JOURNAL_H_

// Journal of a coordinator's inputs, from which another process can recover its job.
//
// The coordinator (coordinator.h) is a function of its inputs: the same inputs lead to the same
// state. So the journal holds inputs, not states (event sourcing), and only those that change
// something. Safety rules:
//   1. An input is appended in the same critical section in which it is applied.
//   2. Nothing that depends on it, neither a reply nor an action, leaves the process before it is
//      durable: Sync(position) with a position read after the append. All concurrent callers share
//      one fsync (group commit; Gray and Reuter 1993, 9.4.7).
//
// RUN/journal is a record file (base/files/record_file.h), "TUGJOURN" 2. Each record is a batch: a
// sequence of u32 size, and as many bytes of a JournalRecord (proto/journal.proto). A batch is
// written once the previous one is durable. So a torn last batch was being written when the process
// or the machine died: nothing depends on it yet, and it is cut off. Size: about 100 bytes per step
// of a virtual worker.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/files/record_file.h"
#include "proto/journal.pb.h"

namespace tug {

// Log of a coordinator's inputs.
class Journal {
 public:
  virtual ~Journal() = default;

  // Adds a record at the end. Never waits for a disk.
  virtual void Append(const JournalRecord& record) = 0;
  // Number of records appended.
  virtual uint64_t position() const = 0;
  // Waits until the first `position` records are durable. Errors: they may never be; all later
  // calls fail too.
  virtual absl::Status Sync(uint64_t position) = 0;
};

// In memory, durable at once: for tests and lab/simulate/. Not thread-safe.
class MemoryJournal final : public Journal {
 public:
  void Append(const JournalRecord& record) override { records_.push_back(record); }
  uint64_t position() const override { return records_.size(); }
  absl::Status Sync(uint64_t) override { return absl::OkStatus(); }

  const std::vector<JournalRecord>& records() const { return records_; }

 private:
  std::vector<JournalRecord> records_;
};

// RUN/journal, written by the process that holds the folder's lock (run_folder.h). Thread-safe.
class FileJournal final : public Journal {
 public:
  // Creates or replaces the file; `begin` is durable on return. Errors: those of the file system.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Create(const std::string& path,
                                                             const JournalRecord& begin);
  // Opens the journal of a dead process to append to it; cuts off an incomplete last batch. Calls
  // `take` with each record, in order, and returns its first error. Errors: NOT_FOUND, DATA_LOSS
  // (damaged), FAILED_PRECONDITION (written in another format), all with the file's name; those of
  // the file system.
  static absl::StatusOr<std::unique_ptr<FileJournal>> RecoverState(
      const std::string& path, const std::function<absl::Status(const JournalRecord&)>& take);

  void Append(const JournalRecord& record) override;
  uint64_t position() const override;
  absl::Status Sync(uint64_t position) override;

  // Deletes the file: the job has ended and needs no recovery.
  absl::Status Remove();

  // Number of fsyncs so far.
  uint64_t syncs() const;

 private:
  FileJournal(RecordFileWriter file, uint64_t records)
      : file_(std::move(file)), appended_(records), durable_(records) {}

  absl::Status WriteBatch(const std::string& records) const;

  const RecordFileWriter file_;  // used only by the thread that set writing_

  mutable absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);  // records of the next batch
  uint64_t appended_ ABSL_GUARDED_BY(mutex_);    // number of records
  uint64_t durable_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  uint64_t syncs_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOURNAL_H_
