// SPDX-License-Identifier: Apache-2.0
#include "explain/path_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "coordinator/trace/trace_limit.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

int64_t Ns(const Json& us) { return std::llround(us.get<double>() * 1e3); }

absl::StatusOr<PathWork> WorkNamed(const std::string& name) {
  const auto found = std::find(kPathWorkNames.begin(), kPathWorkNames.end(), name);
  if (found != kPathWorkNames.end()) {
    return static_cast<PathWork>(found - kPathWorkNames.begin());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name,
      "' is an unknown part of a critical path: use the version of tug that wrote the trace"));
}

absl::StatusOr<StepPath> PathOf(const Json& step) {
  StepPath path{.clock = step.at("step").get<uint64_t>() - 1, .begin_ns = Ns(step.at("begin_us"))};
  path.end_ns = path.begin_ns;
  for (const Json& part : step.at("parts")) {
    ASSIGN_OR_RETURN(const PathWork what, WorkNamed(part.at("what").get<std::string>()));
    const int64_t begin_ns = path.end_ns;
    path.end_ns = Ns(part.at("begin_us")) + Ns(part.at("us"));
    path.parts.push_back({what, part.at("who").get<std::string>(),
                          part.at("block").get<std::string>(), begin_ns, path.end_ns});
  }
  return path;
}

}  // namespace

absl::StatusOr<Json> ReadTraceJson(const std::string& trace_path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(trace_path, kTraceLimitBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(trace_path, " does not exist"));
  }
  RETURN_IF_ERROR(text.status());
  Json trace = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (trace.is_object() && trace.contains("traceEvents")) return trace;
  return absl::InvalidArgumentError(absl::StrCat(trace_path, " is not a trace of tug"));
}

absl::StatusOr<std::vector<StepPath>> PathsIn(const Json& trace, const std::string& trace_path) {
  const auto found = trace.find("critical_path");
  if (found == trace.end() || found->empty()) {
    return absl::NotFoundError(
        absl::StrCat(trace_path,
                     " has no critical path: no worker recorded a complete step, or an older "
                     "version wrote the trace"));
  }
  std::vector<StepPath> paths;
  try {
    for (const Json& step : *found) {
      ASSIGN_OR_RETURN(StepPath path, PathOf(step));
      paths.push_back(std::move(path));
    }
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(trace_path, " is not a trace of tug: ", error.what()));
  }
  return paths;
}

}  // namespace tug
