// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_FILE_WRITER_H_
#define TUG_BASE_FILES_FILE_WRITER_H_

// Writes a new file front to back, hashes its contents and makes it durable.
//
//   ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create("a.tmp"));
//   RETURN_IF_ERROR(writer.Append(bytes));
//   RETURN_IF_ERROR(writer.Finish());     // synced; then rename, then SyncFolder
//
// Small appends are buffered into writes of 1 MiB; large ones are written from the caller's memory.
// Not thread-safe. Errors: those of FileError (base/files/file.h); after one, drop the writer and
// delete the file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file.h"

namespace tug {

class FileWriter {
 public:
  // Creates or truncates the file.
  static absl::StatusOr<FileWriter> Create(const std::string& path);
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();  // closes; does not sync or delete

  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Append(std::string_view text) { return Append(std::as_bytes(std::span(text))); }

  // Overwrites bytes already appended (a header known only at the end). Does not affect xxh3().
  absl::Status Overwrite(uint64_t offset_bytes, std::span<const std::byte> bytes);

  // Writes buffered bytes, syncs and closes; Close does not sync.
  absl::Status Finish();
  absl::Status Close();

  const std::string& path() const { return path_; }
  // Bytes appended so far.
  uint64_t size_bytes() const { return size_bytes_; }
  // XXH3-64 of the bytes appended so far.
  uint64_t xxh3() const;

 private:
  struct Hash;
  FileWriter(std::string path, FileDescriptor fd);
  absl::Status Flush();

  std::string path_;
  FileDescriptor fd_;
  std::vector<std::byte> gathered_;
  uint64_t size_bytes_ = 0;
  std::unique_ptr<Hash> hash_;
};

}  // namespace tug

#endif  // TUG_BASE_FILES_FILE_WRITER_H_
