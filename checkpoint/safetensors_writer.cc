// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "checkpoint/safetensors.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

bool IsValidName(const std::string& name) {
  if (name.empty() || name == "__metadata__") return false;
  for (const char c : name) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return true;
}

uint64_t SizeBytes(const TensorDecl& tensor) {
  uint64_t size_bytes = tensor.integers ? sizeof(int64_t) : sizeof(float);
  for (const uint64_t extent : tensor.shape) {
    TUG_CHECK(extent == 0 || size_bytes <= std::numeric_limits<uint64_t>::max() / extent)
        << tensor.name;
    size_bytes *= extent;
  }
  return size_bytes;
}

struct Header {
  std::string json;  // padded
  uint64_t data_bytes = 0;
};

absl::StatusOr<Header> MakeHeader(const std::string& path, const std::vector<TensorDecl>& tensors,
                                  const std::map<std::string, std::string>& metadata) {
  Header header{.json = "{"};
  if (!metadata.empty()) {
    header.json += R"("__metadata__":{)";
    const char* comma = "";
    for (const auto& [key, value] : metadata) {
      TUG_CHECK(IsValidName(key) && IsValidName(value)) << key;
      absl::StrAppend(&header.json, comma, "\"", key, "\":\"", value, "\"");
      comma = ",";
    }
    absl::StrAppend(&header.json, "}", tensors.empty() ? "" : ",");
  }
  std::set<std::string> names;
  for (const TensorDecl& tensor : tensors) {
    if (!IsValidName(tensor.name) || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": tensor name \"", tensor.name,
                       "\" is used twice or not plain ASCII; rename it"));
    }
    const uint64_t begin = header.data_bytes;
    header.data_bytes += SizeBytes(tensor);
    absl::StrAppend(
        &header.json, names.size() > 1 ? "," : "", "\"", tensor.name,
        tensor.integers ? R"(":{"dtype":"I64","shape":[)" : R"(":{"dtype":"F32","shape":[)",
        absl::StrJoin(tensor.shape, ","), R"(],"data_offsets":[)", begin, ",", header.data_bytes,
        "]}");
  }
  header.json += '}';
  while (header.json.size() % 8 != 0) header.json += ' ';
  if (header.json.size() > kSafetensorsMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": ", tensors.size(),
                     " tensors are too many for one file; use larger segments or more lanes"));
  }
  return header;
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, const std::vector<TensorDecl>& tensors,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const Header header, MakeHeader(path, tensors, metadata));
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  const std::array<uint64_t, 1> header_bytes = {header.json.size()};
  RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header_bytes))));
  RETURN_IF_ERROR(file.Append(header.json));
  return SafetensorsWriter(std::move(file), header.data_bytes);
}

absl::Status SafetensorsWriter::Append(std::span<const float> values) {
  TUG_CHECK_LE(values.size_bytes(), missing_bytes_) << file_.path();
  missing_bytes_ -= values.size_bytes();
  return file_.Append(std::as_bytes(values));
}

absl::Status SafetensorsWriter::Append(std::span<const uint64_t> values) {
  TUG_CHECK_LE(values.size_bytes(), missing_bytes_) << file_.path();
  missing_bytes_ -= values.size_bytes();
  return file_.Append(std::as_bytes(values));
}

absl::Status SafetensorsWriter::Finish() {
  TUG_CHECK_EQ(missing_bytes_, 0u) << file_.path();
  return file_.Finish();
}

}  // namespace tug
