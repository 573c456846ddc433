// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "coordinator/trace/trace_limit.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;
using Row = TimelineSpan::Row;

// Row of a trace event in the cycle of a step; none: not part of it.
std::optional<Row> RowOf(const std::string& category, uint64_t event_step, uint64_t step) {
  if (category == "forward" && event_step == step + 1) return Row::kForward;
  if (event_step != step) return std::nullopt;
  if (category == "backward") return Row::kBackward;
  if (category == "push") return Row::kPush;
  if (category == "pull") return Row::kPull;
  return std::nullopt;
}

// Spans of the cycle by node, in seconds of the trace.
std::map<uint32_t, std::vector<TimelineSpan>> SpansByNode(
    const Json& trace, uint64_t step, const std::map<std::string, uint32_t>& blocks) {
  std::map<uint32_t, std::vector<TimelineSpan>> nodes;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string category = event.at("cat").get<std::string>();
    const std::optional<Row> row =
        RowOf(category, event.at("args").at("step").get<uint64_t>(), step);
    if (!row.has_value()) continue;
    const std::string name = event.at("name").get<std::string>();
    const auto block = blocks.find(std::string(absl::StripPrefix(name, category + " ")));
    if (block == blocks.end()) continue;
    const double begin = event.at("ts").get<double>() * 1e-6;
    nodes[event.at("pid").get<uint32_t>()].push_back(
        {*row, block->second, begin, begin + event.at("dur").get<double>() * 1e-6});
  }
  return nodes;
}

bool Has(const std::vector<TimelineSpan>& spans, Row row) {
  return std::any_of(spans.begin(), spans.end(),
                     [&](const TimelineSpan& span) { return span.row == row; });
}

}  // namespace

absl::StatusOr<Timeline> ReadTimeline(const std::string& trace_path, uint64_t step,
                                      const std::vector<std::string>& block_names) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(trace_path, kTraceLimitBytes));
  std::map<std::string, uint32_t> blocks;
  for (uint32_t b = 0; b < block_names.size(); ++b) blocks[block_names[b]] = b;
  std::map<uint32_t, std::vector<TimelineSpan>> nodes;
  try {
    nodes = SpansByNode(Json::parse(text), step, blocks);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(trace_path, " is not a trace of tug: ", error.what()));
  }
  for (auto& [node, spans] : nodes) {  // servers compute nothing
    if (!Has(spans, Row::kForward) || !Has(spans, Row::kBackward)) continue;
    Timeline timeline;
    double origin = std::numeric_limits<double>::infinity();
    for (const TimelineSpan& span : spans) {
      if (span.row == Row::kBackward) origin = std::min(origin, span.begin_seconds);
    }
    for (TimelineSpan& span : spans) {
      span.begin_seconds -= origin;
      span.end_seconds -= origin;
      if (span.row == Row::kForward) {
        timeline.seconds = std::max(timeline.seconds, span.end_seconds);
      }
    }
    timeline.spans = std::move(spans);
    return timeline;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(trace_path, " has no worker with both step ", step, " and the step after it"));
}

std::vector<TimelineSpan> InSequence(const Timeline& timeline, TimelineSpan::Row row) {
  std::vector<TimelineSpan> spans;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.row == row) spans.push_back(span);
  }
  std::stable_sort(spans.begin(), spans.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
    return a.end_seconds < b.end_seconds;
  });
  std::vector<TimelineSpan> sequence;
  for (TimelineSpan span : spans) {
    if (!sequence.empty()) {
      TimelineSpan& before = sequence.back();
      const bool touches = span.begin_seconds <= before.end_seconds;
      if (touches && span.block == before.block) {
        before.end_seconds = span.end_seconds;
        continue;
      }
      span.begin_seconds = std::max(span.begin_seconds, before.end_seconds);
    }
    sequence.push_back(span);
  }
  return sequence;
}

}  // namespace tug
