// SPDX-License-Identifier: Apache-2.0
#include "coordinator/journal.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

RecordFileKind KindOf(const std::string& path) {
  return {.magic = "TUGJOURN",
          .version = 2,
          .damage_remedy = absl::StrCat("continue from the last checkpoint: tug train --resume ",
                                        FolderOf(path)),
          .version_remedy = "recover the job with the version that started it"};
}

// Calls `take` with each record of a batch, and counts them.
absl::Status TakeRecords(const std::string& path, std::span<const std::byte> batch,
                         const std::function<absl::Status(const JournalRecord&)>& take,
                         uint64_t& records) {
  JournalRecord record;
  for (; !batch.empty(); ++records) {
    const std::optional<uint32_t> size = TakeValue<uint32_t>(batch);
    if (!size.has_value() || *size > batch.size() ||
        !record.ParseFromArray(batch.data(), static_cast<int>(*size))) {
      return DamagedRecordFile(KindOf(path), path,
                               absl::StrCat("record ", records, " cannot be read"));
    }
    batch = batch.subspan(*size);
    RETURN_IF_ERROR(take(record));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Create(const std::string& path,
                                                                 const JournalRecord& begin) {
  ASSIGN_OR_RETURN(RecordFileWriter file, RecordFileWriter::Create(KindOf(path), path));
  std::unique_ptr<FileJournal> journal(new FileJournal(std::move(file), 0));
  journal->Append(begin);
  RETURN_IF_ERROR(journal->Sync(1));
  RETURN_IF_ERROR(SyncFolder(FolderOf(path)));
  return journal;
}

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::RecoverState(
    const std::string& path, const std::function<absl::Status(const JournalRecord&)>& take) {
  uint64_t records = 0;
  ASSIGN_OR_RETURN(const RecordFileExtent extent,
                   ReadRecordFile(KindOf(path), path, [&](std::span<const std::byte> batch) {
                     return TakeRecords(path, batch, take, records);
                   }));
  if (records == 0) {
    return DamagedRecordFile(KindOf(path), path, "it ends before its first record");
  }
  ASSIGN_OR_RETURN(RecordFileWriter file, RecordFileWriter::Continue(path, extent));
  return std::unique_ptr<FileJournal>(new FileJournal(std::move(file), records));
}

void FileJournal::Append(const JournalRecord& record) {
  const std::string bytes = record.SerializeAsString();
  const auto size = static_cast<uint32_t>(bytes.size());
  absl::MutexLock lock(&mutex_);
  waiting_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  waiting_.append(bytes);
  ++appended_;
}

uint64_t FileJournal::position() const {
  absl::MutexLock lock(&mutex_);
  return appended_;
}

uint64_t FileJournal::syncs() const {
  absl::MutexLock lock(&mutex_);
  return syncs_;
}

absl::Status FileJournal::Sync(uint64_t position) {
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !writing_; };
  absl::MutexLock lock(&mutex_);
  TUG_CHECK_LE(position, appended_);
  while (durable_ < position) {
    mutex_.Await(absl::Condition(&idle));
    if (!error_.ok()) return error_;
    if (durable_ >= position) break;
    // The first waiting thread writes for all.
    writing_ = true;
    const std::string records = std::exchange(waiting_, {});
    const uint64_t count = appended_ - durable_;
    mutex_.Unlock();
    const absl::Status written = WriteBatch(records);
    mutex_.Lock();
    writing_ = false;
    ++syncs_;
    if (written.ok()) durable_ += count;
    error_.Update(written);
  }
  return absl::OkStatus();
}

absl::Status FileJournal::WriteBatch(const std::string& records) const {
  RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(records))));
  return file_.Sync();
}

absl::Status FileJournal::Remove() {
  if (::unlink(file_.path().c_str()) != 0) return FileError(errno, "delete", file_.path());
  return absl::OkStatus();
}

}  // namespace tug
