// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_SHARED_REGION_H_
#define TUG_BASE_MEMORY_SHARED_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// Memory that other processes can map, without a name in any file system: it is freed with the last
// process that has it open or mapped, however that process ends. Its size is sealed, so that no
// process can make another fault by shrinking it. Pages are zero and use no memory until first
// touched. Thread-safe, except CloseFd.
class SharedRegion {
 public:
  // Access of other processes to a region.
  enum class Sharing {
    kReadOnly,  // only the creator can ever write it
    kReadWrite,
  };

  // Creates and maps. Errors: RESOURCE_EXHAUSTED (files, address space).
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Create(size_t size_bytes, Sharing sharing);

  // Creates and maps a region in an unnamed file in `folder`, for this process alone: the kernel
  // swaps pages to the file when memory is scarce, and reads ahead. The file's disk space is
  // allocated up front, so no page lacks it later. Errors: those of FileError (base/files/file.h),
  // naming the folder.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> CreateInFile(const std::string& folder,
                                                                    size_t size_bytes);

  // Maps a region that another process created with the same `sharing`. Errors: INVALID_ARGUMENT
  // (not such a region, or its size is not sealed); RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Map(FileDescriptor fd, Sharing sharing);

  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Writable in the creator, and in other processes if kReadWrite.
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Memory in use, touched by any process.
  uint64_t touched_bytes() const;
  // Descriptor to pass to other processes; -1 once closed, and in a region made by Map.
  int fd() const { return fd_.get(); }
  // Call once all other processes have the region: a mapping needs no descriptor, and descriptors
  // are scarce.
  void CloseFd() { fd_ = FileDescriptor(); }

 private:
  SharedRegion(FileDescriptor fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  FileDescriptor fd_;
  const std::span<std::byte> bytes_;
};

}  // namespace tug

#endif  // TUG_BASE_MEMORY_SHARED_REGION_H_
