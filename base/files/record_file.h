// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_RECORD_FILE_H_
#define TUG_BASE_FILES_RECORD_FILE_H_

// A file of checksummed records, to which one process appends. It can be read if that process, or
// its machine, died at any point.
//
// Format, little-endian:
//
//   header   32 bytes: 8 characters that name the kind of file, u32 version, u32 zero, u64 salt
//            (random), u64 XXH3-64 of the 24 bytes before it
//   records  u32 size of the payload, u32 low half of the XXH3-64 of the size, u64 XXH3-64 of the
//            payload; then the payload
//
// Checksums of records are seeded with the salt, so what a disk's blocks held before is no record
// of this file. The size has its own checksum, so that reading tells a torn record from a damaged
// one in linear time: bytes that are no record are the torn end of the file if no record follows
// them, and damage if one does.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

struct RecordFileKind {
  std::string magic;  // 8 characters
  uint32_t version = 0;
  // Remedies that end an error's message.
  std::string damage_remedy;
  std::string version_remedy;
};

// DATA_LOSS: "`path` is damaged: `what`; remedy".
absl::Status DamagedRecordFile(const RecordFileKind& kind, const std::string& path,
                               const std::string& what);

struct RecordFileExtent {
  uint64_t whole_bytes = 0;  // header and complete records; 0: the header is incomplete
  uint64_t torn_bytes = 0;   // after them
  uint64_t salt = 0;
};

using OnRecord = absl::FunctionRef<absl::Status(std::span<const std::byte> payload)>;

// Calls `take` with each record of a file, in order, and returns its first error. Errors: DATA_LOSS
// (damaged, or another kind of file), FAILED_PRECONDITION (another version), both naming `path` and
// the remedy. Pure.
absl::StatusOr<RecordFileExtent> ReadRecords(const RecordFileKind& kind, const std::string& path,
                                             std::span<const std::byte> bytes, OnRecord take);
// The same for the contents of `path`. Errors: also those of MappedFile::Open.
absl::StatusOr<RecordFileExtent> ReadRecordFile(const RecordFileKind& kind, const std::string& path,
                                                OnRecord take);

// Removes the value that `bytes` begin with and returns it; none if fewer bytes are left.
template <typename T>
std::optional<T> TakeValue(std::span<const std::byte>& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

// Writes records without copying or buffering them. Not thread-safe. Errors: those of FileError;
// after one, append nothing.
class RecordFileWriter {
 public:
  // Creates or replaces the file.
  static absl::StatusOr<RecordFileWriter> Create(const RecordFileKind& kind,
                                                 const std::string& path);
  // Opens a file that was read, cuts off its torn end and appends.
  static absl::StatusOr<RecordFileWriter> Continue(const std::string& path,
                                                   const RecordFileExtent& extent);

  absl::Status Append(std::span<const std::byte> payload) const;
  // Makes the records durable; a new file's name needs SyncFolder too.
  absl::Status Sync() const;

  const std::string& path() const { return path_; }

 private:
  RecordFileWriter(std::string path, FileDescriptor fd, uint64_t salt)
      : path_(std::move(path)), fd_(std::move(fd)), salt_(salt) {}

  std::string path_;
  FileDescriptor fd_;
  uint64_t salt_;
};

}  // namespace tug

#endif  // TUG_BASE_FILES_RECORD_FILE_H_
