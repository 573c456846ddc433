// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/trace_file.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file_writer.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "blocks/view_lanes.h"
#include "coordinator/trace/blame.h"
#include "coordinator/trace/trace_layout.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

// Process id of the critical path; no node has this id.
constexpr uint32_t kPathProcess = uint32_t{1} << 31;

class TraceWriter {
 public:
  TraceWriter(FileWriter& file, const JobTrace& trace, const TraceLayout& layout)
      : file_(file), trace_(trace), layout_(layout), origin_ns_(Origin(trace)) {
    for (const TracedNode& node : trace.nodes) nodes_[node.node_id] = &node;
  }

  absl::Status Write(const std::vector<StepFigures>& figures, const std::vector<StepPath>& paths) {
    RETURN_IF_ERROR(file_.Append("{\"displayTimeUnit\":\"ms\",\n"));
    RETURN_IF_ERROR(file_.Append(absl::StrCat("\"otherData\":", About(), ",\n\"steps\":[")));
    for (const StepFigures& step : figures) RETURN_IF_ERROR(Item(Figures(step)));
    RETURN_IF_ERROR(file_.Append("],\n\"critical_path\":["));
    first_ = true;
    for (const StepPath& path : paths) RETURN_IF_ERROR(Item(Path(path)));
    RETURN_IF_ERROR(file_.Append("],\n\"traceEvents\":["));
    first_ = true;
    RETURN_IF_ERROR(DrawPaths(paths));
    for (const TracedNode& node : trace_.nodes) RETURN_IF_ERROR(NameNode(node));
    for (const DrawnTrack& track : layout_.tracks) RETURN_IF_ERROR(NameTrack(track));
    for (const DrawnSpan& span : layout_.spans) RETURN_IF_ERROR(Item(Span(span)));
    for (const ArrowPoint& point : layout_.arrows) RETURN_IF_ERROR(Item(Arrow(point)));
    return file_.Append("]}\n");
  }

 private:
  static int64_t Origin(const JobTrace& trace) {
    int64_t first_ns = std::numeric_limits<int64_t>::max();
    for (const TracedNode& node : trace.nodes) {
      for (const TracedTrack& track : node.tracks) {
        for (const TraceEvent& event : track.events) {
          first_ns = std::min(first_ns, event.begin_ns);
        }
      }
    }
    return first_ns == std::numeric_limits<int64_t>::max() ? 0 : first_ns;
  }

  static std::string Micros(int64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }
  std::string At(int64_t ns) const { return Micros(ns - origin_ns_); }

  bool IsServer(uint32_t node_id) const {
    const auto found = nodes_.find(node_id);
    return found != nodes_.end() && found->second->kind == SERVER;
  }
  // ",\"worker\":\"worker-0\""
  std::string NodeArgument(const char* key, uint32_t node_id) const {
    const auto found = nodes_.find(node_id);
    const std::string name =
        found == nodes_.end() ? absl::StrCat("lost node ", node_id) : found->second->name;
    return absl::StrCat(",\"", key, "\":", JsonString(name));
  }
  std::string LaneArguments(uint32_t lane_number) const {
    return absl::StrCat(NodeArgument(kServerRole, lane_number / kMaxLanesPerServer),
                        ",\"lane\":", lane_number % kMaxLanesPerServer);
  }

  std::string BlockName(uint32_t block) const {
    return block < trace_.block_names.size() ? trace_.block_names[block] : absl::StrCat(block);
  }

  absl::Status Item(const std::string& json) {
    RETURN_IF_ERROR(file_.Append(first_ ? "\n" : ",\n"));
    first_ = false;
    return file_.Append(json);
  }

  std::string About() const {
    std::string errors;
    uint64_t dropped = 0;
    for (const TracedNode& node : trace_.nodes) {
      absl::StrAppend(&errors, errors.empty() ? "" : ",", JsonString(node.name), ":",
                      Micros(static_cast<int64_t>(node.clock_error_ns)));
      for (const TracedTrack& track : node.tracks) dropped += track.dropped;
    }
    const std::string missing = absl::StrJoin(
        trace_.silent, ",",
        [](std::string* out, const std::string& name) { out->append(JsonString(name)); });
    const std::string blocks = absl::StrJoin(
        trace_.block_names, ",",
        [](std::string* out, const std::string& name) { out->append(JsonString(name)); });
    return absl::StrCat(
        "{\"first_step\":", trace_.range.first + 1, ",\"last_step\":", trace_.range.end,
        ",\"blocks\":[", blocks, "],\"clock_error_us\":{", errors, "},\"events_dropped\":", dropped,
        ",\"spans_left_out\":", layout_.left_out, ",\"nodes_missing\":[", missing, "]}");
  }

  std::string Figures(const StepFigures& step) const {
    std::string queues;
    for (const auto& [block, seconds] : step.queue_seconds) {
      absl::StrAppend(&queues, queues.empty() ? "" : ",", JsonString(BlockName(block)), ":",
                      absl::StrFormat("%.9f", seconds));
    }
    return absl::StrFormat(
        "{\"node\":%s,\"step\":%d,\"seconds\":%.9f,\"compute_seconds\":%.9f,"
        "\"exposed_seconds\":%.9f,\"communication_seconds\":%.9f,\"overlap\":%.4f,"
        "\"pushed_bytes\":%d,\"pulled_bytes\":%d,\"queue_seconds\":{%s}}",
        JsonString(nodes_.at(step.node_id)->name), step.clock + 1, step.seconds,
        step.compute_seconds, step.exposed_seconds, step.communication_seconds, step.overlap(),
        step.pushed_bytes, step.pulled_bytes, queues);
  }

  std::string Path(const StepPath& path) const {
    std::string parts;
    for (const PathPart& part : path.parts) {
      absl::StrAppend(&parts, parts.empty() ? "" : ",", "{\"what\":\"",
                      kPathWorkNames[static_cast<size_t>(part.what)],
                      "\",\"who\":", JsonString(part.who), ",\"block\":", JsonString(part.block),
                      ",\"begin_us\":", At(part.begin_ns),
                      ",\"us\":", Micros(part.end_ns - part.begin_ns), "}");
    }
    return absl::StrCat(
        "{\"step\":", path.clock + 1, ",\"begin_us\":", At(path.begin_ns), ",\"seconds\":",
        absl::StrFormat("%.9f", static_cast<double>(path.end_ns - path.begin_ns) * 1e-9),
        ",\"parts\":[", parts, "]}");
  }

  absl::Status DrawPaths(const std::vector<StepPath>& paths) {
    if (paths.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(Name("process_name", kPathProcess, 0, "\"name\":\"critical path\""));
    RETURN_IF_ERROR(Name("process_sort_index", kPathProcess, 0, "\"sort_index\":-1"));
    RETURN_IF_ERROR(Name("thread_name", kPathProcess, 1, "\"name\":\"critical path\""));
    for (const StepPath& path : paths) {
      for (const PathPart& part : path.parts) {
        RETURN_IF_ERROR(Item(absl::StrCat(
            "{\"ph\":\"X\",\"name\":",
            JsonString(absl::StrCat(BlameText(part.what, part.who), " ", part.block)),
            ",\"cat\":\"critical\",\"pid\":", kPathProcess, ",\"tid\":1,\"ts\":", At(part.begin_ns),
            ",\"dur\":", Micros(part.end_ns - part.begin_ns),
            ",\"args\":{\"step\":", path.clock + 1, "}}")));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Name(const char* what, uint32_t pid, uint32_t tid, const std::string& arguments) {
    return Item(absl::StrCat("{\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", pid,
                             ",\"tid\":", tid, ",\"args\":{", arguments, "}}"));
  }
  absl::Status NameNode(const TracedNode& node) {
    const std::string name = absl::StrCat(node.name, " (", node.place, ")");
    RETURN_IF_ERROR(
        Name("process_name", node.node_id, 0, absl::StrCat("\"name\":", JsonString(name))));
    // Workers above servers.
    const bool works = node.kind == WORKER;
    const uint32_t place =
        ProcessIndexOf(works ? kWorkerRole : kServerRole, node.name).value_or(0) +
        (works ? 0 : kProcessIndexLimit);
    return Name("process_sort_index", node.node_id, 0, absl::StrCat("\"sort_index\":", place));
  }
  absl::Status NameTrack(const DrawnTrack& track) {
    RETURN_IF_ERROR(Name("thread_name", track.node_id, track.row,
                         absl::StrCat("\"name\":", JsonString(track.name))));
    return Name("thread_sort_index", track.node_id, track.row,
                absl::StrCat("\"sort_index\":", track.row));
  }

  std::string Span(const DrawnSpan& span) const {
    const TraceEvent& event = span.event;
    const std::string kind = kTraceKindNames[static_cast<size_t>(event.kind)];
    const bool step = event.kind == TraceKind::kStep;
    std::string arguments = absl::StrCat("\"step\":", event.clock + 1);
    if (event.segment_count > 0) {
      absl::StrAppend(&arguments, ",\"first_segment\":", event.first_segment,
                      ",\"segments\":", event.segment_count);
    }
    if (event.bytes > 0) absl::StrAppend(&arguments, ",\"bytes\":", event.bytes);
    switch (event.kind) {
      case TraceKind::kForward:
      case TraceKind::kBackward:
      case TraceKind::kEvaluate:
        absl::StrAppend(&arguments, ",\"virtual_worker\":", event.virtual_worker);
        break;
      case TraceKind::kQueue:
        absl::StrAppend(&arguments, ",\"virtual_worker\":", event.virtual_worker,
                        ",\"partitions\":", span.partitions);
        break;
      case TraceKind::kPush:
        absl::StrAppend(&arguments, ",\"virtual_worker\":", event.virtual_worker,
                        LaneArguments(event.peer));
        break;
      case TraceKind::kPull:
        absl::StrAppend(&arguments, LaneArguments(event.peer),
                        ",\"waited_us\":", Micros(span.waited_ns));
        break;
      case TraceKind::kSum:
        absl::StrAppend(&arguments, ",\"virtual_worker\":", event.virtual_worker,
                        NodeArgument(kWorkerRole, event.peer));
        break;
      case TraceKind::kServe:
        // A lane may pull for the workers on its host.
        absl::StrAppend(&arguments,
                        NodeArgument(IsServer(event.peer) ? kServerRole : kWorkerRole, event.peer));
        break;
      default:
        break;
    }
    const std::string name = step ? absl::StrCat("step ", event.clock + 1)
                                  : absl::StrCat(kind, " ", BlockName(event.block));
    return absl::StrCat(
        "{\"ph\":\"X\",\"name\":", JsonString(name), ",\"cat\":\"", kind,
        "\",\"pid\":", span.node_id, ",\"tid\":", span.row, ",\"ts\":", At(event.begin_ns),
        ",\"dur\":", Micros(event.end_ns - event.begin_ns), ",\"args\":{", arguments, "}}");
  }

  std::string Arrow(const ArrowPoint& point) const {
    const char* phase = point.place == ArrowPoint::Place::kStart  ? "s"
                        : point.place == ArrowPoint::Place::kStep ? "t"
                                                                  : "f";
    return absl::StrCat("{\"ph\":\"", phase, "\",\"bp\":\"e\",\"name\":\"push to pull\"",
                        ",\"cat\":\"arrow\",\"id\":", point.arrow, ",\"pid\":", point.node_id,
                        ",\"tid\":", point.row, ",\"ts\":", At(point.at_ns), "}");
  }

  FileWriter& file_;
  const JobTrace& trace_;
  const TraceLayout& layout_;
  const int64_t origin_ns_;
  std::map<uint32_t, const TracedNode*> nodes_;  // by id
  bool first_ = true;
};

}  // namespace

std::string JsonString(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::Status WriteTraceFile(const std::string& path, const JobTrace& trace,
                            const std::vector<StepFigures>& figures,
                            const std::vector<StepPath>& paths) {
  const TraceLayout layout = LayOut(trace);
  return ReplaceFile(path, [&](FileWriter& file) {
    return TraceWriter(file, trace, layout).Write(figures, paths);
  });
}

}  // namespace tug
