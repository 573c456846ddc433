// SPDX-License-Identifier: Apache-2.0
#include "data/source/compressed_reader.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/files/file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

absl::Status Damaged(const std::string& path, const std::string& why) {
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: ", why, "; copy or download the file again"));
}

class PlainReader final : public TextReader {
 public:
  PlainReader(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::StatusOr<size_t> Read(std::span<char> out) override {
    size_t held = 0;
    while (held < out.size()) {
      const ssize_t got = ::read(fd_.get(), out.data() + held, out.size() - held);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(errno, "read", path_);
      if (got == 0) break;
      held += static_cast<size_t>(got);
    }
    return held;
  }

 private:
  const std::string path_;
  const FileDescriptor fd_;
};

// zlib begins its messages with a name that it made from the descriptor: "<fd:11>: incorrect ...".
std::string WithoutName(std::string_view why) {
  constexpr std::string_view kEnd = ">: ";
  const size_t end = why.starts_with("<fd:") ? why.find(kEnd) : why.npos;
  return std::string(end == why.npos ? why : why.substr(end + kEnd.size()));
}

class GzipReader final : public TextReader {
 public:
  static absl::StatusOr<std::unique_ptr<TextReader>> Open(const std::string& path,
                                                          const FileDescriptor& fd) {
    const int own = ::dup(fd.get());
    if (own < 0) return FileError(errno, "read", path);
    const gzFile file = gzdopen(own, "rb");
    if (file == nullptr) {
      ::close(own);
      return absl::ResourceExhaustedError(absl::StrCat("no memory to decompress ", path));
    }
    return std::unique_ptr<TextReader>(new GzipReader(path, file));
  }
  ~GzipReader() override { gzclose_r(file_); }

  absl::StatusOr<size_t> Read(std::span<char> out) override {
    size_t held = 0;
    while (held < out.size()) {
      const auto most = static_cast<unsigned>(std::min<size_t>(out.size() - held, INT_MAX));
      const int got = gzread(file_, out.data() + held, most);
      int error = Z_OK;
      const char* const why = gzerror(file_, &error);  // Z_BUF_ERROR: the file ends in a member
      if (error == Z_ERRNO) return FileError(errno, "read", path_);
      if (error != Z_OK && error != Z_STREAM_END) return Damaged(path_, WithoutName(why));
      if (got <= 0) break;
      held += static_cast<size_t>(got);
    }
    return held;
  }

 private:
  GzipReader(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const gzFile file_;
};

class ZstdReader final : public TextReader {
 public:
  ZstdReader(std::string path, std::unique_ptr<TextReader> compressed)
      : path_(std::move(path)),
        compressed_(std::move(compressed)),
        stream_(ZSTD_createDStream()),
        buffer_(ZSTD_DStreamInSize(), '\0') {}
  ~ZstdReader() override { ZSTD_freeDStream(stream_); }

  absl::StatusOr<size_t> Read(std::span<char> out) override {
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    while (to.pos < to.size) {
      if (from_.pos == from_.size && !flushing_) {
        ASSIGN_OR_RETURN(const size_t got, compressed_->Read(buffer_));
        if (got == 0) {
          if (in_frame_) return Damaged(path_, "the compressed data ends early");
          break;
        }
        from_ = {buffer_.data(), got, 0};
      }
      const size_t left = ZSTD_decompressStream(stream_, &to, &from_);
      if (ZSTD_isError(left)) return Damaged(path_, ZSTD_getErrorName(left));
      in_frame_ = left != 0;
      flushing_ = in_frame_ && to.pos == to.size;  // the stream may hold more output
    }
    return to.pos;
  }

 private:
  const std::string path_;
  const std::unique_ptr<TextReader> compressed_;
  ZSTD_DStream* const stream_;
  std::string buffer_;
  ZSTD_inBuffer from_ = {nullptr, 0, 0};
  bool in_frame_ = false;
  bool flushing_ = false;
};

}  // namespace

Compression CompressionOf(std::string_view front) {
  if (front.starts_with("\x1F\x8B")) return Compression::kGzip;
  return front.starts_with("\x28\xB5\x2F\xFD") ? Compression::kZstd : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<TextReader>> OpenBytes(const std::string& path,
                                                      Compression compression) {
  ASSIGN_OR_RETURN(FileDescriptor fd, OpenForReading(path));
  if (compression == Compression::kGzip) return GzipReader::Open(path, fd);
  std::unique_ptr<TextReader> plain = std::make_unique<PlainReader>(path, std::move(fd));
  if (compression == Compression::kNone) return plain;
  return std::make_unique<ZstdReader>(path, std::move(plain));
}

}  // namespace tug
