// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_SAFETENSORS_H_
#define TUG_CHECKPOINT_SAFETENSORS_H_

// The safetensors file format (github.com/huggingface/safetensors):
//
//   8 bytes   n, little-endian
//   n bytes   JSON, padded with spaces so that data begins at a multiple of 8:
//             {"NAME":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, and under
//             "__metadata__" an object from strings to strings
//   the rest  data, row-major, little-endian; offsets count from here; no holes, no overlaps
//
// Writes FP32 tensors, and integer ones of 64 bits; reads FP32 only, or all types, as requested.
//
// Not thread-safe, except the const methods of the reader.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"

namespace tug {

// Largest JSON header written or read (the bound of the reference implementation).
inline constexpr uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;

// A tensor to write. `name`: printable ASCII without quote and backslash, not "__metadata__".
struct TensorDecl {
  std::string name;
  std::vector<uint64_t> shape;  // {} = a scalar
  bool integers = false;        // I64 instead of F32
};

// Writes tensors front to back:
//
//   ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create(path, {{"a", {2, 3}}, {"b", {4}}}));
//   RETURN_IF_ERROR(writer.Append(a));   // elements of a, then of b, in any portions
//   RETURN_IF_ERROR(writer.Append(b));
//   RETURN_IF_ERROR(writer.Finish());
//
// Errors: INVALID_ARGUMENT (names; header too large), those of FileWriter; then the caller must
// delete the file.
class SafetensorsWriter {
 public:
  // `metadata`: keys and values follow the rules of tensor names.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, const std::vector<TensorDecl>& tensors,
      const std::map<std::string, std::string>& metadata = {});

  // REQUIRES: no more elements than declared.
  absl::Status Append(std::span<const float> values);
  // Append for a tensor of integers. REQUIRES: values below 2^63.
  absl::Status Append(std::span<const uint64_t> values);

  // Syncs and closes. REQUIRES: all declared elements have been appended.
  absl::Status Finish();

  // Size and checksum of the whole file, header included.
  uint64_t size_bytes() const { return file_.size_bytes(); }
  uint64_t xxh3() const { return file_.xxh3(); }

 private:
  SafetensorsWriter(FileWriter file, uint64_t data_bytes)
      : file_(std::move(file)), missing_bytes_(data_bytes) {}

  FileWriter file_;
  uint64_t missing_bytes_;
};

// A tensor in a mapped file.
struct TensorView {
  std::string name;
  std::vector<uint64_t> shape;
  std::string dtype;                 // "F32", "BF16", ...
  std::span<const std::byte> bytes;  // aligned only if the file's writer aligned it
};

// Types that a file may contain. kAny: also types that this program does not know, such as those of
// later versions of the format, whose size is not checked against their shape.
enum class TensorTypes { kFp32, kAny };

// A mapped and checked file: header, types, shapes, offsets. Values are not checked. Errors: those
// of MappedFile; DATA_LOSS "FILE ...": what is wrong and what to do.
class SafetensorsReader {
 public:
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path,
                                                TensorTypes types = TensorTypes::kFp32);
  // Open for a file that is already mapped.
  static absl::StatusOr<SafetensorsReader> FromMapped(MappedFile file,
                                                      TensorTypes types = TensorTypes::kFp32);

  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> file_bytes() const { return file_.bytes(); }
  // In the order of their data. Valid while the reader lives, also after it is moved.
  const std::vector<TensorView>& tensors() const { return tensors_; }

 private:
  MappedFile file_;
  std::vector<TensorView> tensors_;
};

}  // namespace tug

#endif  // TUG_CHECKPOINT_SAFETENSORS_H_
