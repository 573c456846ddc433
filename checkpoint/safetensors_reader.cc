// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/safetensors.h"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = sizeof(uint64_t);

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, " is not a complete safetensors file: ", what,
                                          "; it is truncated, damaged or another kind of file: "
                                          "copy it again or use another checkpoint"));
}

// Parses without exceptions, with limited depth; refuses repeated keys, of which JSON libraries
// silently keep one.
std::optional<Json> ParseHeader(std::span<const std::byte> bytes) {
  std::set<std::string> tensors;
  std::set<std::string> fields;
  bool valid = true;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) {
      valid &= tensors.insert(value.get<std::string>()).second;
      fields.clear();
    } else if (event == Json::parse_event_t::key && depth == 2) {
      valid &= fields.insert(value.get<std::string>()).second;
    } else if (depth > 3) {
      valid = false;
    }
    return valid;
  };
  const char* text = reinterpret_cast<const char*>(bytes.data());
  Json json = Json::parse(text, text + bytes.size(), on_event, /*allow_exceptions=*/false);
  if (!valid || !json.is_object()) return std::nullopt;
  return json;
}

// Reads an array of unsigned integers under `key`.
std::optional<std::vector<uint64_t>> Numbers(const Json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end() || !field->is_array()) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const Json& number : *field) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// Bytes of an element; 0: unknown type.
uint64_t ElementBytes(const std::string& dtype) {
  constexpr std::pair<const char*, uint64_t> kTypes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size_bytes] : kTypes) {
    if (dtype == name) return size_bytes;
  }
  return 0;
}

// Bytes of a tensor; nothing if they exceed 64 bits.
std::optional<uint64_t> SizeBytes(const std::vector<uint64_t>& shape, uint64_t element_bytes) {
  uint64_t size_bytes = element_bytes;
  for (const uint64_t extent : shape) {
    if (extent != 0 && size_bytes > std::numeric_limits<uint64_t>::max() / extent) {
      return std::nullopt;
    }
    size_bytes *= extent;
  }
  return size_bytes;
}

// Returns the error in a tensor's entry, if any; otherwise fills in `view`.
std::optional<std::string> ParseTensor(const Json& entry, std::span<const std::byte> data,
                                       TensorTypes types, TensorView& view) {
  if (!entry.is_object() || entry.size() != 3)
    return "must have exactly the fields dtype, shape and data_offsets";
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) return "has no type";
  view.dtype = dtype->get<std::string>();
  const uint64_t element_bytes = ElementBytes(view.dtype);
  if (types == TensorTypes::kFp32 && view.dtype != "F32") return "is not of type F32";
  std::optional<std::vector<uint64_t>> shape = Numbers(entry, "shape");
  const std::optional<std::vector<uint64_t>> offsets = Numbers(entry, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2) return "has no valid shape and data_offsets";
  const uint64_t begin = (*offsets)[0];
  const uint64_t end = (*offsets)[1];
  if (begin > end || end > data.size()) return "lies outside the file";
  if (element_bytes != 0 && SizeBytes(*shape, element_bytes) != end - begin)
    return "has a size that does not match its shape";
  view.shape = *std::move(shape);
  view.bytes = data.subspan(begin, end - begin);
  return std::nullopt;
}

// Whether the tensors, in the order of their data, cover `data` without holes and overlaps.
bool Covers(const std::vector<TensorView>& tensors, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.data() != next) return false;
    next += tensor.bytes.size();
  }
  return next == data.data() + data.size();
}

}  // namespace

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string& path,
                                                          TensorTypes types) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  return FromMapped(std::move(file), types);
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::FromMapped(MappedFile file,
                                                                TensorTypes types) {
  SafetensorsReader reader;
  reader.file_ = std::move(file);
  const std::string& path = reader.path();
  const std::span<const std::byte> bytes = reader.file_.bytes();
  if (bytes.size() < kLengthBytes) return Damaged(path, "it has no header");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > kSafetensorsMaxHeaderBytes || header_bytes > bytes.size() - kLengthBytes) {
    return Damaged(path, "its header is longer than the file or the limit");
  }
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);
  const std::optional<Json> header = ParseHeader(bytes.subspan(kLengthBytes, header_bytes));
  if (!header) return Damaged(path, "its header is not a JSON object of tensors");

  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    TensorView view;
    view.name = name;
    if (const auto wrong = ParseTensor(entry, data, types, view)) {
      return Damaged(path, absl::StrCat("tensor \"", absl::CEscape(name), "\" ", *wrong));
    }
    reader.tensors_.push_back(std::move(view));
  }
  // An empty tensor comes before another one at the same offset.
  std::sort(reader.tensors_.begin(), reader.tensors_.end(),
            [](const TensorView& a, const TensorView& b) {
              if (a.bytes.data() != b.bytes.data()) return a.bytes.data() < b.bytes.data();
              return a.bytes.size() < b.bytes.size();
            });
  if (!Covers(reader.tensors_, data)) return Damaged(path, "its tensors overlap or leave gaps");
  return reader;
}

}  // namespace tug
