// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/experiment_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "lab/experiment/measures/figure_text.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kRowsLimitBytes = uint64_t{1} << 30;

std::string TextOf(const OrderedJson& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

uint64_t NumberOf(const OrderedJson& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

}  // namespace

std::optional<double> ExperimentRow::Find(const std::string& measure) const {
  const auto found = measures.find(measure);
  return found == measures.end() ? std::nullopt : found->second;
}

std::string RowLine(const ExperimentRow& row) {
  OrderedJson json = {{"case", row.case_name},
                      {"repeat", row.repeat},
                      {"seed", row.seed},
                      {"error", row.error},
                      {"measures", OrderedJson::object()},
                      {"links", OrderedJson::array()},
                      {"folder", row.folder},
                      {"set", row.settings},
                      {"started", row.origin.started},
                      {"command", row.origin.command},
                      {"version", row.origin.version},
                      {"build", row.origin.build},
                      {"commit", row.origin.commit},
                      {"machine", row.origin.machine}};
  for (const auto& [name, value] : row.measures) json["measures"][name] = OrNull(value);
  for (const LinkTraffic& link : row.links) {
    json["links"].push_back(
        {{"sent_bytes", link.sent_bytes}, {"received_bytes", link.received_bytes}});
  }
  return json.dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace);
}

absl::StatusOr<ExperimentRow> ParseRow(const std::string& line) {
  const OrderedJson json = OrderedJson::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || TextOf(json, "case").empty()) {
    return absl::InvalidArgumentError("not a row of an experiment");
  }
  ExperimentRow row{.case_name = TextOf(json, "case"),
                    .repeat = static_cast<uint32_t>(NumberOf(json, "repeat")),
                    .seed = NumberOf(json, "seed"),
                    .error = TextOf(json, "error"),
                    .folder = TextOf(json, "folder")};
  row.origin = {.started = TextOf(json, "started"),
                .command = TextOf(json, "command"),
                .version = TextOf(json, "version"),
                .build = TextOf(json, "build"),
                .commit = TextOf(json, "commit"),
                .machine = TextOf(json, "machine")};
  const auto settings = json.find("set");
  if (settings != json.end() && settings->is_array()) {
    for (const OrderedJson& setting : *settings) {
      if (setting.is_string()) row.settings.push_back(setting.get<std::string>());
    }
  }
  const auto links = json.find("links");
  if (links != json.end() && links->is_array()) {
    for (const OrderedJson& link : *links) {
      row.links.push_back({NumberOf(link, "sent_bytes"), NumberOf(link, "received_bytes")});
    }
  }
  const auto measures = json.find("measures");
  if (measures == json.end() || !measures->is_object()) return row;
  for (const auto& [name, value] : measures->items()) {
    row.measures[name] =
        value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
  }
  return row;
}

absl::StatusOr<ExperimentRows> ReadRows(const std::string& path) {
  ExperimentRows read;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return read;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kRowsLimitBytes));
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    absl::StatusOr<ExperimentRow> row = ParseRow(text.substr(begin, end - begin));
    if (!row.ok()) {
      return absl::DataLossError(absl::StrCat(path, ":", number, ": ", row.status().message(),
                                              "; delete the line to repeat its run"));
    }
    read.rows.push_back(*std::move(row));
    begin = end + 1;
    read.whole_bytes = begin;
  }
  return read;
}

absl::StatusOr<uint64_t> AppendRow(const std::string& path, uint64_t whole_bytes,
                                   const ExperimentRow& row) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return FileError(errno, "open", path);
  if (ftruncate(file.get(), static_cast<off_t>(whole_bytes)) != 0) {
    return FileError(errno, "truncate", path);
  }
  const std::string line = RowLine(row) + "\n";
  RETURN_IF_ERROR(WriteAllAt(file.get(), path, whole_bytes, std::as_bytes(std::span(line))));
  if (fsync(file.get()) != 0) return FileError(errno, "sync", path);
  if (whole_bytes == 0) {
    RETURN_IF_ERROR(SyncFolder(FolderOf(path)));
  }
  return whole_bytes + line.size();
}

}  // namespace tug
