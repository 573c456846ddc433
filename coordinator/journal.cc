// SPDX-License-Identifier: Apache-2.0
#include "coordinator/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/mapped_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

struct FileHeader {
  char magic[8] = {'T', 'U', 'G', 'J', 'O', 'U', 'R', 'N'};
  uint32_t format = 2;
  uint32_t zero = 0;
  uint64_t salt = 0;
  uint64_t xxh3 = 0;  // of the fields before it
};
static_assert(sizeof(FileHeader) == 32);

struct BatchHeader {
  uint32_t size_bytes = 0;
  uint32_t records = 0;
  uint64_t xxh3 = 0;
};
static_assert(sizeof(BatchHeader) == 16);

uint64_t ChecksumOf(const FileHeader& header) {
  return XXH3_64bits(&header, offsetof(FileHeader, xxh3));
}

uint64_t ChecksumOf(const BatchHeader& header, std::span<const std::byte> records, uint64_t salt) {
  const uint64_t seed = XXH3_64bits_withSeed(&header, offsetof(BatchHeader, xxh3), salt);
  return XXH3_64bits_withSeed(records.data(), records.size(), seed);
}

template <typename T>
std::optional<T> Take(std::span<const std::byte>& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

// Removes and returns the batch that `bytes` begin with; none if it is incomplete or damaged.
struct Batch {
  uint32_t count = 0;
  std::span<const std::byte> records;
};
std::optional<Batch> TakeBatch(std::span<const std::byte>& bytes, uint64_t salt) {
  std::span<const std::byte> rest = bytes;
  const std::optional<BatchHeader> header = Take<BatchHeader>(rest);
  if (!header.has_value() || header->records == 0 || header->size_bytes > rest.size()) {
    return std::nullopt;
  }
  const std::span<const std::byte> records = rest.first(header->size_bytes);
  if (header->xxh3 != ChecksumOf(*header, records, salt)) return std::nullopt;
  bytes = rest.subspan(header->size_bytes);
  return Batch{header->records, records};
}

bool HasWholeBatch(std::span<const std::byte> bytes, uint64_t salt) {
  for (; bytes.size() >= sizeof(BatchHeader); bytes = bytes.subspan(1)) {
    std::span<const std::byte> from = bytes;
    if (TakeBatch(from, salt).has_value()) return true;
  }
  return false;
}

absl::Status Damaged(const std::string& path, const std::string& what) {
  const std::string run = path.substr(0, path.rfind('/'));
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: ", what,
                   "; continue from the last checkpoint: tug train --resume ", run));
}

absl::StatusOr<FileDescriptor> OpenToAppend(const std::string& path, int flags) {
  FileDescriptor fd = OpenFile(path, O_RDWR | O_APPEND | flags);
  if (!fd.valid()) return FileError(errno, "open", path);
  return fd;
}

absl::Status TakeRecords(const std::string& path, const Batch& batch,
                         const std::function<absl::Status(const JournalRecord&)>& take) {
  std::span<const std::byte> rest = batch.records;
  JournalRecord record;
  for (uint32_t i = 0; i < batch.count; ++i) {
    const std::optional<uint32_t> size = Take<uint32_t>(rest);
    if (!size.has_value() || *size > rest.size() ||
        !record.ParseFromArray(rest.data(), static_cast<int>(*size))) {
      return Damaged(path, "a record cannot be read");
    }
    rest = rest.subspan(*size);
    RETURN_IF_ERROR(take(record));
  }
  return rest.empty() ? absl::OkStatus() : Damaged(path, "a batch has bytes after its last record");
}

}  // namespace

absl::StatusOr<JournalExtent> ReadJournal(
    const std::string& path, std::span<const std::byte> bytes,
    const std::function<absl::Status(const JournalRecord&)>& take) {
  std::span<const std::byte> rest = bytes;
  JournalExtent extent;
  const std::optional<FileHeader> header = Take<FileHeader>(rest);
  if (!header.has_value()) return extent;
  const FileHeader expected;
  if (std::memcmp(header->magic, expected.magic, sizeof(expected.magic)) != 0) {
    return Damaged(path, "it is not a journal");
  }
  if (header->xxh3 != ChecksumOf(*header)) return Damaged(path, "the header's checksum differs");
  if (header->format != expected.format) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format ", header->format, ", this version of tug reads format ",
                     expected.format, ": recover the job with the version that started it"));
  }
  extent.salt = header->salt;
  extent.bytes = sizeof(FileHeader);
  while (const std::optional<Batch> batch = TakeBatch(rest, extent.salt)) {
    RETURN_IF_ERROR(TakeRecords(path, *batch, take));
    extent.records += batch->count;
    extent.bytes = bytes.size() - rest.size();
  }
  if (!rest.empty() && HasWholeBatch(rest.subspan(1), extent.salt)) {
    return Damaged(path, absl::StrCat("the data after record ", extent.records, " cannot be read"));
  }
  return extent;
}

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Create(const std::string& path,
                                                                 const JournalRecord& begin) {
  ASSIGN_OR_RETURN(FileDescriptor fd, OpenToAppend(path, O_CREAT));
  if (::ftruncate(fd.get(), 0) != 0) return FileError(errno, "empty", path);
  std::random_device random;
  FileHeader header{.salt = uint64_t{random()} << 32 | random()};
  header.xxh3 = ChecksumOf(header);
  RETURN_IF_ERROR(WriteAll(fd.get(), path, std::as_bytes(std::span(&header, 1))));
  std::unique_ptr<FileJournal> journal(new FileJournal(path, std::move(fd), header.salt, 0));
  journal->Append(begin);
  RETURN_IF_ERROR(journal->Sync(1));
  RETURN_IF_ERROR(SyncFolder(path.substr(0, path.rfind('/'))));
  return journal;
}

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::RecoverState(
    const std::string& path, const std::function<absl::Status(const JournalRecord&)>& take) {
  ASSIGN_OR_RETURN(FileDescriptor fd, OpenToAppend(path, 0));
  JournalExtent extent;
  uint64_t size_bytes = 0;
  {
    ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    size_bytes = file.bytes().size();
    ASSIGN_OR_RETURN(extent, ReadJournal(path, file.bytes(), take));
  }
  if (extent.records == 0) return Damaged(path, "it ends before its first record");
  if (size_bytes > extent.bytes) {
    if (::ftruncate(fd.get(), static_cast<off_t>(extent.bytes)) != 0 || ::fsync(fd.get()) != 0) {
      return FileError(errno, "truncate", path);
    }
  }
  return std::unique_ptr<FileJournal>(
      new FileJournal(path, std::move(fd), extent.salt, extent.records));
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
    const absl::Status written = WriteBatch(records, static_cast<uint32_t>(count));
    mutex_.Lock();
    writing_ = false;
    ++syncs_;
    if (written.ok()) durable_ += count;
    error_.Update(written);
  }
  return absl::OkStatus();
}

absl::Status FileJournal::WriteBatch(const std::string& records, uint32_t count) {
  TUG_CHECK_LE(records.size(), std::numeric_limits<uint32_t>::max());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(records));
  BatchHeader header{.size_bytes = static_cast<uint32_t>(records.size()), .records = count};
  header.xxh3 = ChecksumOf(header, bytes, salt_);
  std::string batch(reinterpret_cast<const char*>(&header), sizeof(header));
  batch += records;
  RETURN_IF_ERROR(WriteAll(fd_.get(), path_, std::as_bytes(std::span(batch))));
  if (::fdatasync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  return absl::OkStatus();
}

absl::Status FileJournal::Remove() {
  if (::unlink(path_.c_str()) != 0) return FileError(errno, "delete", path_);
  return absl::OkStatus();
}

}  // namespace tug
