// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/mapped_file.h"
#include "base/status_macros.h"
#include "server/sync/order_log.h"
#include "server/sync/order_log_format.h"

namespace tug {
namespace {

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(
      path, " is not a complete log of the order of updates: ", what,
      "; it is damaged or another kind of file, so the run cannot be recomputed from it"));
}

// Reads the next value; none if fewer bytes are left.
template <typename T>
std::optional<T> Take(std::span<const std::byte>& rest) {
  if (rest.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, rest.data(), sizeof(T));
  rest = rest.subspan(sizeof(T));
  return value;
}

absl::StatusOr<OrderLogHeader> TakeHeader(const std::string& path,
                                          std::span<const std::byte>& rest) {
  const std::optional<OrderFileHeader> header = Take<OrderFileHeader>(rest);
  const OrderFileHeader expected;
  if (!header.has_value() ||
      std::memcmp(header->magic, expected.magic, sizeof(expected.magic)) != 0) {
    return Damaged(path, "it has no header of such a log");
  }
  if (header->format != expected.format) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format ", header->format, ", this version of tug reads format ",
                     expected.format, "; use the version that wrote it"));
  }
  if (header->xxh3 != OrderChecksum(*header)) return Damaged(path, "its header's checksum differs");
  return OrderLogHeader{.timeline = header->timeline,
                        .job = header->job,
                        .lane = header->lane,
                        .lanes = header->lanes,
                        .virtual_workers = header->virtual_workers,
                        .segments = header->segments,
                        .start_version = header->start_version};
}

// Checks that records name valid segments and virtual workers, and that versions are consecutive.
std::optional<std::string> WhatIsWrong(const OrderLog& log) {
  std::unordered_map<uint32_t, uint64_t> newest;
  for (const OrderRecord& record : log.records) {
    if (record.segment >= log.header.segments ||
        record.virtual_worker >= log.header.virtual_workers ||
        record.weights_version >= record.version) {
      return absl::StrCat("a record of segment ", record.segment, ", virtual worker ",
                          record.virtual_worker, " and version ", record.version, " is invalid");
    }
    const auto [segment, first] = newest.try_emplace(record.segment, record.version);
    if (first) continue;
    if (record.version != segment->second + 1) {
      return absl::StrCat("version ", segment->second + 1, " of segment ", record.segment,
                          " is missing");
    }
    segment->second = record.version;
  }
  return std::nullopt;
}

// The number in "timeline-001"; none for other names.
std::optional<uint32_t> TimelineOf(const std::string& name) {
  absl::string_view text = name;
  uint32_t number = 0;
  if (!absl::ConsumePrefix(&text, "timeline-") || !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

absl::StatusOr<OrderLog> ReadOrderLog(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::span<const std::byte> rest = file.bytes();
  OrderLog log;
  ASSIGN_OR_RETURN(log.header, TakeHeader(path, rest));
  while (const std::optional<OrderChunkHeader> chunk = Take<OrderChunkHeader>(rest)) {
    const bool trailer = chunk->records == OrderChunkHeader::kTrailer;
    const uint64_t size_bytes =
        trailer ? sizeof(uint64_t) : uint64_t{chunk->records} * sizeof(OrderRecord);
    if (rest.size() < size_bytes) break;  // truncated while being written
    const std::span<const std::byte> bytes = rest.first(size_bytes);
    if (chunk->xxh3 != OrderChecksum(bytes)) {
      return Damaged(path, absl::StrCat("the checksum of the chunk after record ",
                                        log.records.size(), " differs"));
    }
    if (trailer) {
      const uint64_t records = *Take<uint64_t>(rest);
      if (records != log.records.size() || !rest.empty()) {
        return Damaged(
            path, absl::StrCat("it ends after ", log.records.size(), " of ", records, " records"));
      }
      log.complete = true;
      break;
    }
    const size_t before = log.records.size();
    log.records.resize(before + chunk->records);
    if (size_bytes > 0) std::memcpy(log.records.data() + before, bytes.data(), size_bytes);
    rest = rest.subspan(size_bytes);
  }
  if (const std::optional<std::string> wrong = WhatIsWrong(log)) return Damaged(path, *wrong);
  return log;
}

absl::StatusOr<std::vector<OrderLog>> ReadOrderLogs(const std::string& run_dir) {
  const std::string folder = absl::StrCat(run_dir, "/order");
  std::optional<uint32_t> newest;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<uint32_t> timeline = TimelineOf(entry->path().filename().string());
    if (timeline.has_value() && (!newest.has_value() || *timeline > *newest)) newest = timeline;
  }
  if (!newest.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(folder,
                     " has no log of the order of updates: train with sync.policy SSP or ASP and "
                     "sync.record=ORDER to record it"));
  }
  std::vector<OrderLog> logs;
  for (uint32_t lane = 0; logs.empty() || lane < logs[0].header.lanes; ++lane) {
    const std::string path = OrderLogPath(run_dir, *newest, lane);
    ASSIGN_OR_RETURN(OrderLog log, ReadOrderLog(path));
    OrderLogHeader expected = logs.empty() ? log.header : logs[0].header;
    expected.timeline = *newest;
    expected.lane = lane;
    if (log.header != expected) return Damaged(path, "its header belongs to another run or lane");
    logs.push_back(std::move(log));
  }
  return logs;
}

}  // namespace tug
