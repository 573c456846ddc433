// SPDX-License-Identifier: Apache-2.0
#include "base/memory/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"

#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tug {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status NoMemory(size_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot share ", size_bytes, " bytes of memory: ", std::strerror(errno),
                   "; raise the limits of open files (ulimit -n), address space (ulimit -v) and "
                   "file size (ulimit -f), or set comm.shared_memory to false"));
}

absl::StatusOr<std::span<std::byte>> MapWhole(int fd, size_t size_bytes, int protection) {
  void* const at = mmap(nullptr, size_bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) return NoMemory(size_bytes);
  madvise(at, size_bytes, MADV_HUGEPAGE);  // if enabled for shared memory; otherwise no effect
  return std::span(static_cast<std::byte*>(at), size_bytes);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Create(size_t size_bytes,
                                                                   Sharing sharing) {
  FileDescriptor fd(memfd_create("tugboat", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return NoMemory(size_bytes);
  }
  ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                   MapWhole(fd.get(), size_bytes, PROT_READ | PROT_WRITE));
  std::shared_ptr<SharedRegion> region(new SharedRegion(std::move(fd), bytes));
  const int seals = kSizeSeals | (sharing == Sharing::kReadOnly ? F_SEAL_FUTURE_WRITE : 0);
  if (fcntl(region->fd(), F_ADD_SEALS, seals) != 0) return NoMemory(size_bytes);
  return region;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::CreateInFile(const std::string& folder,
                                                                         size_t size_bytes) {
  std::string path = folder + "/tugboat-XXXXXX";
  FileDescriptor fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "create a file in", folder);
  unlink(path.c_str());
  // In a sparse file, touching a page without disk space would kill the process (SIGBUS).
  const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(size_bytes));
  if (error != 0) {
    return FileError(error, absl::StrCat("reserve ", size_bytes, " bytes in"), folder);
  }
  void* const at = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return FileError(errno, "map a file in", folder);
  // Updates read weights, m and v front to back.
  madvise(at, size_bytes, MADV_SEQUENTIAL);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), size_bytes);
  return std::shared_ptr<SharedRegion>(new SharedRegion(std::move(fd), bytes));
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Map(FileDescriptor fd,
                                                                Sharing sharing) {
  struct stat status;
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || fstat(fd.get(), &status) != 0 ||
      status.st_size <= 0) {
    return absl::InvalidArgumentError("the memory shared by a peer has no sealed size");
  }
  const int protection = sharing == Sharing::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                   MapWhole(fd.get(), static_cast<size_t>(status.st_size), protection));
  return std::shared_ptr<SharedRegion>(new SharedRegion(FileDescriptor(), bytes));
}

uint64_t SharedRegion::touched_bytes() const {
  struct stat status;
  if (fstat(fd_.get(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_blocks) * 512;  // unit of st_blocks, see stat(2)
}

SharedRegion::~SharedRegion() { munmap(bytes_.data(), bytes_.size()); }

}  // namespace tug
