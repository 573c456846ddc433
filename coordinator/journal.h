#ifndef TUG_COORDINATOR_JOURNAL_H_
#define TUG_COORDINATOR_JOURNAL_H_

// What a coordinator was told, kept so that another process can take its job up.
//
// The coordinator (coordinator.h) is a function of its inputs: fed with the same ones it ends in
// the same state. So the journal holds inputs, not states (event sourcing), and of them only those
// that say something new. Rules that make it safe:
//   1. An input is appended in the same critical section in which it is obeyed.
//   2. Nothing that depends on it leaves the process, neither a reply nor an action, before it is
//      durable: Sync(position) with a position taken after it was appended. All who wait at a time
//      share one fsync (group commit; Gray and Reuter 1993, 9.4.7).
//
// RUN/journal, little-endian:
//
//   header   32 bytes: "TUGJOURN", u32 format 1, u32 zero, u64 salt (random), u64 XXH3-64 of the 24
//            bytes before it
//   batches  u32 size of the records, u32 number of them, u64 XXH3-64 of the records, whose seed is
//            that of these 8 bytes, whose seed is the salt; then each record: u32 size, and as many
//            bytes of a JournalRecord (proto/journal.proto)
//
// A batch is written when the one before it is durable. So a last one that is not whole was being
// written when the process or the machine died: nobody was told of what is in it, and it is cut
// off. One that is not whole, but has a whole one after it, is damage. The size: about 100 bytes
// for each step of a virtual worker.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "proto/journal.pb.h"

namespace tug {

// Where a coordinator's inputs are kept.
class Journal {
 public:
  virtual ~Journal() = default;

  // Adds a record at the end. Never waits for a disk.
  virtual void Append(const JournalRecord& record) = 0;
  // Number of records appended.
  virtual uint64_t position() const = 0;
  // Waits until as many records are durable. Errors: they may never be; all later calls fail too.
  virtual absl::Status Sync(uint64_t position) = 0;
};

// In memory, durable at once: for tests and simulate/. Not thread-safe.
class MemoryJournal final : public Journal {
 public:
  void Append(const JournalRecord& record) override { records_.push_back(record); }
  uint64_t position() const override { return records_.size(); }
  absl::Status Sync(uint64_t) override { return absl::OkStatus(); }

  const std::vector<JournalRecord>& records() const { return records_; }

 private:
  std::vector<JournalRecord> records_;
};

// RUN/journal, of the process that has the folder's lock (run_folder.h). Thread-safe.
class FileJournal final : public Journal {
 public:
  // Makes the file, or replaces one; `begin` is durable when this returns. Errors: those of the
  // file system.
  static absl::StatusOr<std::unique_ptr<FileJournal>> Create(const std::string& path,
                                                             const JournalRecord& begin);
  // Opens one that a dead process has left: cuts off a last batch that is not whole, and goes on
  // after it. `take` gets each record, in order; its first error ends this. Errors: NOT_FOUND,
  // DATA_LOSS (damaged), all with the file's name; those of the file system.
  static absl::StatusOr<std::unique_ptr<FileJournal>> TakeUp(
      const std::string& path, const std::function<absl::Status(const JournalRecord&)>& take);

  void Append(const JournalRecord& record) override;
  uint64_t position() const override;
  absl::Status Sync(uint64_t position) override;

  // Deletes the file: there is nothing left to take up.
  absl::Status Remove();

  // Fsyncs so far.
  uint64_t syncs() const;

 private:
  FileJournal(std::string path, FileDescriptor fd, uint64_t salt, uint64_t records)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        salt_(salt),
        appended_(records),
        durable_(records) {}

  absl::Status WriteBatch(const std::string& records, uint32_t count);

  const std::string path_;
  const FileDescriptor fd_;  // whoever has set writing_
  const uint64_t salt_;

  mutable absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);  // of the next batch
  uint64_t appended_ ABSL_GUARDED_BY(mutex_);    // records
  uint64_t durable_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  uint64_t syncs_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The part that is pure: reads a journal's bytes. Returns how many of them are whole: the rest is a
// batch that was being written. Errors: DATA_LOSS, naming `path`; the first of `take`.
struct JournalExtent {
  uint64_t bytes = 0;  // 0: not even the header is whole
  uint64_t records = 0;
  uint64_t salt = 0;
};
absl::StatusOr<JournalExtent> ReadJournal(
    const std::string& path, std::span<const std::byte> bytes,
    const std::function<absl::Status(const JournalRecord&)>& take);

}  // namespace tug

#endif  // TUG_COORDINATOR_JOURNAL_H_
