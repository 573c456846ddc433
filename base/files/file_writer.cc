// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr size_t kGatherBytes = size_t{1} << 20;

}  // namespace

struct FileWriter::Hash {
  Hash() : state(XXH3_createState()) { XXH3_64bits_reset(state); }
  ~Hash() { XXH3_freeState(state); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  XXH3_state_t* state;
};

FileWriter::FileWriter(std::string path, FileDescriptor fd)
    : path_(std::move(path)), fd_(std::move(fd)), hash_(std::make_unique<Hash>()) {
  gathered_.reserve(kGatherBytes);
}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path) {
  FileDescriptor fd = OpenFile(path, O_RDWR | O_CREAT | O_TRUNC);
  if (!fd.valid()) return FileError(errno, "create", path);
  return FileWriter(path, std::move(fd));
}

absl::Status FileWriter::Append(std::span<const std::byte> bytes) {
  TUG_CHECK(fd_.valid()) << "append after Finish: " << path_;
  XXH3_64bits_update(hash_->state, bytes.data(), bytes.size());
  size_bytes_ += bytes.size();
  if (gathered_.size() + bytes.size() > kGatherBytes) RETURN_IF_ERROR(Flush());
  if (bytes.size() >= kGatherBytes) return WriteAll(fd_.get(), path_, bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status FileWriter::Overwrite(uint64_t offset_bytes, std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(Flush());
  TUG_CHECK_LE(offset_bytes + bytes.size(), size_bytes_);
  return WriteAllAt(fd_.get(), path_, offset_bytes, bytes);
}

absl::Status FileWriter::Finish() {
  RETURN_IF_ERROR(Flush());
  if (::fsync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  return Close();
}

absl::Status FileWriter::Close() {
  RETURN_IF_ERROR(Flush());
  FileDescriptor closed;
  std::swap(closed, fd_);
  return absl::OkStatus();
}

uint64_t FileWriter::xxh3() const { return XXH3_64bits_digest(hash_->state); }

absl::Status FileWriter::Flush() {
  RETURN_IF_ERROR(WriteAll(fd_.get(), path_, gathered_));
  gathered_.clear();
  return absl::OkStatus();
}

}  // namespace tug
