#ifndef TUG_BASE_SHARED_REGION_H_
#define TUG_BASE_SHARED_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tug {

// Memory that other processes can map, without a name in any file system: it is gone with the last
// process that has it open or mapped, however that process ends. Its size is sealed, so that no
// process can make another one fault by cutting it. Pages come into being, zero, when first
// touched; until then a region costs nothing. Thread-safe, but for CloseFd.
class SharedRegion {
 public:
  // What another process may do with a region it is handed.
  enum class Sharing {
    kReadOnly,  // nobody but its creator can ever write it
    kReadWrite,
  };

  // Creates and maps. Errors: RESOURCE_EXHAUSTED (files, address space).
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Create(size_t size_bytes, Sharing sharing);

  // Creates and maps one in a file in `folder`, for this process alone: the kernel writes pages out
  // and reads them again as memory gets scarce, and reads ahead. The file has no name any more when
  // this returns, and all of its room on the disk, so that no page lacks it later. Errors: as
  // FileError (base/file.h), naming the folder.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> CreateInFile(const std::string& folder,
                                                                    size_t size_bytes);

  // Maps a region that another process has created with the same `sharing`. INVALID_ARGUMENT: not
  // such a region, or its size can still change.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Map(FileDescriptor fd, Sharing sharing);

  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Writable in the creator, and elsewhere if kReadWrite.
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Memory it takes so far, whoever has touched it.
  uint64_t touched_bytes() const;
  // For handing it to others; -1 once closed, and in a region that was mapped from one.
  int fd() const { return fd_.get(); }
  // Once everybody who needs it has it: a mapping needs no descriptor, and there are few of those.
  void CloseFd() { fd_ = FileDescriptor(); }

 private:
  SharedRegion(FileDescriptor fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  FileDescriptor fd_;
  const std::span<std::byte> bytes_;
};

}  // namespace tug

#endif  // TUG_BASE_SHARED_REGION_H_
