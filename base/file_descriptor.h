// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILE_DESCRIPTOR_H_
#define TUG_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace tug {

// Owns a file descriptor: closes it. Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace tug

#endif  // TUG_BASE_FILE_DESCRIPTOR_H_
