// SPDX-License-Identifier: Apache-2.0
#include "process/run_end.h"

#include <algorithm>
#include <fstream>

#include "coordinator/observe/run_folder.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

// Larger than the last line with its table of staleness.
constexpr std::streamoff kTailBytes = 64 << 10;

std::string LastLine(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  file.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(file.tellg()) - kTailBytes));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

}  // namespace

std::optional<RunEnd> ReadRunEnd(const std::string& run_dir) {
  const nlohmann::json line = nlohmann::json::parse(LastLine(run_dir + "/" + kMetricsFile), nullptr,
                                                    /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("kind") || line["kind"] != "end") return std::nullopt;
  const auto reason = line.find("reason"), step = line.find("step");
  if (reason == line.end() || !reason->is_string() || step == line.end() ||
      !step->is_number_unsigned()) {
    return std::nullopt;
  }
  return RunEnd{reason->get<std::string>(), step->get<uint64_t>()};
}

}  // namespace tug
