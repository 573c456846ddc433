// SPDX-License-Identifier: Apache-2.0
#include "base/files/record_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/file.h"
#include "base/files/mapped_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

struct FileHeader {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t zero = 0;
  uint64_t salt = 0;
  uint64_t xxh3 = 0;  // of the fields before it
};
static_assert(sizeof(FileHeader) == 32);

struct RecordHeader {
  uint32_t size_bytes = 0;
  uint32_t size_xxh3 = 0;
  uint64_t xxh3 = 0;
};
static_assert(sizeof(RecordHeader) == 16);

uint64_t ChecksumOf(const FileHeader& header) {
  return XXH3_64bits(&header, offsetof(FileHeader, xxh3));
}

uint32_t ChecksumOfSize(uint32_t size_bytes, uint64_t salt) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(&size_bytes, sizeof(size_bytes), salt));
}

uint64_t ChecksumOf(std::span<const std::byte> payload, uint64_t salt) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), salt);
}

absl::Status CheckHeader(const RecordFileKind& kind, const std::string& path,
                         const FileHeader& header) {
  if (std::memcmp(header.magic, kind.magic.data(), sizeof(header.magic)) != 0) {
    return DamagedRecordFile(kind, path,
                             absl::StrCat("it does not begin with \"", kind.magic, "\""));
  }
  if (header.xxh3 != ChecksumOf(header)) {
    return DamagedRecordFile(kind, path, "the header's checksum differs");
  }
  if (header.version == kind.version) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " has format ", header.version,
                                                    ", this version of tug reads format ",
                                                    kind.version, ": ", kind.version_remedy));
}

// Removes the record that `bytes` begin with and returns its payload; none if it is incomplete or
// damaged.
std::optional<std::span<const std::byte>> TakePayload(std::span<const std::byte>& bytes,
                                                      uint64_t salt) {
  std::span<const std::byte> rest = bytes;
  const std::optional<RecordHeader> header = TakeValue<RecordHeader>(rest);
  if (!header.has_value() || header->size_bytes > rest.size() ||
      header->size_xxh3 != ChecksumOfSize(header->size_bytes, salt)) {
    return std::nullopt;
  }
  const std::span<const std::byte> payload = rest.first(header->size_bytes);
  if (header->xxh3 != ChecksumOf(payload, salt)) return std::nullopt;
  bytes = rest.subspan(header->size_bytes);
  return payload;
}

bool HasRecord(std::span<const std::byte> bytes, uint64_t salt) {
  for (; bytes.size() >= sizeof(RecordHeader); bytes = bytes.subspan(1)) {
    std::span<const std::byte> from = bytes;
    if (TakePayload(from, salt).has_value()) return true;
  }
  return false;
}

}  // namespace

absl::Status DamagedRecordFile(const RecordFileKind& kind, const std::string& path,
                               const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", what, "; ", kind.damage_remedy));
}

absl::StatusOr<RecordFileExtent> ReadRecords(const RecordFileKind& kind, const std::string& path,
                                             std::span<const std::byte> bytes, OnRecord take) {
  std::span<const std::byte> rest = bytes;
  const std::optional<FileHeader> header = TakeValue<FileHeader>(rest);
  if (!header.has_value()) return RecordFileExtent{.torn_bytes = rest.size()};
  RETURN_IF_ERROR(CheckHeader(kind, path, *header));
  while (const auto payload = TakePayload(rest, header->salt)) RETURN_IF_ERROR(take(*payload));
  const uint64_t whole_bytes = bytes.size() - rest.size();
  if (HasRecord(rest, header->salt)) {
    return DamagedRecordFile(kind, path,
                             absl::StrCat("the record at byte ", whole_bytes, " cannot be read"));
  }
  return RecordFileExtent{
      .whole_bytes = whole_bytes, .torn_bytes = rest.size(), .salt = header->salt};
}

absl::StatusOr<RecordFileExtent> ReadRecordFile(const RecordFileKind& kind, const std::string& path,
                                                OnRecord take) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadRecords(kind, path, file.bytes(), take);
}

absl::StatusOr<RecordFileWriter> RecordFileWriter::Create(const RecordFileKind& kind,
                                                          const std::string& path) {
  FileDescriptor fd = OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC);
  if (!fd.valid()) return FileError(errno, "create", path);
  std::random_device random;
  FileHeader header{.version = kind.version, .salt = uint64_t{random()} << 32 | random()};
  TUG_CHECK_EQ(kind.magic.size(), sizeof(header.magic));
  std::memcpy(header.magic, kind.magic.data(), sizeof(header.magic));
  header.xxh3 = ChecksumOf(header);
  RETURN_IF_ERROR(WriteAll(fd.get(), path, std::as_bytes(std::span(&header, 1))));
  return RecordFileWriter(path, std::move(fd), header.salt);
}

absl::StatusOr<RecordFileWriter> RecordFileWriter::Continue(const std::string& path,
                                                            const RecordFileExtent& extent) {
  FileDescriptor fd = OpenFile(path, O_WRONLY | O_APPEND);
  if (!fd.valid()) return FileError(errno, "open", path);
  if (extent.torn_bytes > 0 &&
      (::ftruncate(fd.get(), static_cast<off_t>(extent.whole_bytes)) != 0 ||
       ::fsync(fd.get()) != 0)) {
    return FileError(errno, "truncate", path);
  }
  return RecordFileWriter(path, std::move(fd), extent.salt);
}

absl::Status RecordFileWriter::Append(std::span<const std::byte> payload) const {
  TUG_CHECK_LE(payload.size(), std::numeric_limits<uint32_t>::max());
  const auto size_bytes = static_cast<uint32_t>(payload.size());
  const RecordHeader header{.size_bytes = size_bytes,
                            .size_xxh3 = ChecksumOfSize(size_bytes, salt_),
                            .xxh3 = ChecksumOf(payload, salt_)};
  RETURN_IF_ERROR(WriteAll(fd_.get(), path_, std::as_bytes(std::span(&header, 1))));
  return WriteAll(fd_.get(), path_, payload);
}

absl::Status RecordFileWriter::Sync() const {
  return ::fdatasync(fd_.get()) == 0 ? absl::OkStatus() : FileError(errno, "sync", path_);
}

}  // namespace tug
