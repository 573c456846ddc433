// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "server/sync/order_log.h"

namespace tug {
namespace {

absl::Status Damaged(const std::string& path, const std::string& what) {
  return DamagedRecordFile(OrderLogKind(), path, what);
}

// Adds a chunk's records.
absl::Status TakeChunk(const std::string& path, std::span<const std::byte> chunk, OrderLog& log) {
  if (chunk.empty() || chunk.size() % sizeof(OrderRecord) != 0) {
    return Damaged(path, absl::StrCat("a chunk has ", chunk.size(), " bytes"));
  }
  const size_t before = log.records.size();
  log.records.resize(before + chunk.size() / sizeof(OrderRecord));
  std::memcpy(log.records.data() + before, chunk.data(), chunk.size());
  return absl::OkStatus();
}

absl::Status TakeTrailer(const std::string& path, std::span<const std::byte> trailer,
                         OrderLog& log) {
  const uint64_t records = *TakeValue<uint64_t>(trailer);
  if (records != log.records.size()) {
    return Damaged(path, absl::StrCat("it has ", log.records.size(), " of ", records, " records"));
  }
  log.complete = true;
  return absl::OkStatus();
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
  OrderLog log;
  std::optional<OrderLogHeader> header;
  const auto take = [&](std::span<const std::byte> record) {
    if (!header.has_value()) {
      header = TakeValue<OrderLogHeader>(record);
      return header.has_value() ? absl::OkStatus() : Damaged(path, "its header is too short");
    }
    if (log.complete) return Damaged(path, "a record follows its trailer");
    return record.size() == sizeof(uint64_t) ? TakeTrailer(path, record, log)
                                             : TakeChunk(path, record, log);
  };
  ASSIGN_OR_RETURN(const RecordFileExtent extent, ReadRecordFile(OrderLogKind(), path, take));
  if (!header.has_value()) return Damaged(path, "it ends before its header");
  if (log.complete && extent.torn_bytes > 0) return Damaged(path, "data follows its trailer");
  log.header = *header;
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
