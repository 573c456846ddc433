// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/metrics_log.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "config/sync_mode.h"
#include "coordinator/observe/step_columns.h"
#include "coordinator/observe/sync_figures.h"
#include "coordinator/torn_line.h"
#include "coordinator/trace/blame.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

// Keys in the order written.
using Json = nlohmann::ordered_json;

constexpr char kPathKind[] = "critical_path";
constexpr char kSettingsKind[] = "settings";

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A recovered coordinator does not log critical paths again.
bool IsOfCriticalPath(const std::string& line) {
  static const std::string begin = absl::StrCat("{\"kind\":\"", kPathKind, "\",");
  return absl::StartsWith(line, begin);
}

// A line with a loss.
struct Loss {
  std::string kind;
  uint64_t step = 0;
  double loss = 0;  // NaN: not finite
  bool final = false;
};

std::optional<Loss> ParseLoss(const Json& json) {
  const auto kind = json.find("kind"), step = json.find("step"), loss = json.find("loss");
  if (kind == json.end() || step == json.end() || loss == json.end() || !kind->is_string() ||
      !step->is_number_unsigned() || !(loss->is_number() || loss->is_null())) {
    return std::nullopt;
  }
  const auto final = json.find("final");
  return Loss{
      .kind = kind->get<std::string>(),
      .step = step->get<uint64_t>(),
      .loss = loss->is_null() ? std::numeric_limits<double>::quiet_NaN() : loss->get<double>(),
      .final = final != json.end() && *final == true};
}

std::optional<SettingsChange> ParseSettings(const Json& json) {
  const auto kind = json.find("kind"), step = json.find("step"), changed = json.find("changed");
  if (kind == json.end() || *kind != kSettingsKind || step == json.end() ||
      !step->is_number_unsigned() || changed == json.end() || !changed->is_array()) {
    return std::nullopt;
  }
  SettingsChange change = {.step = step->get<uint64_t>()};
  for (const Json& text : *changed) {
    if (text.is_string()) change.changed.push_back(text.get<std::string>());
  }
  return change;
}

// Network traffic and encoding time of a job's nodes.
struct TrafficFigures {
  uint64_t worker_socket_bytes = 0;  // mostly pushes
  uint64_t server_socket_bytes = 0;  // mostly weights
  double encode_seconds = 0;
  double decode_seconds = 0;
};

TrafficFigures TrafficFiguresOf(const StatusReply& status) {
  TrafficFigures figures;
  for (const NodeStatus& node : status.nodes()) {
    const NodeCounters& counters = node.counters();
    (node.kind() == SERVER ? figures.server_socket_bytes : figures.worker_socket_bytes) +=
        counters.socket_bytes();
    figures.encode_seconds += counters.encode_seconds();
    figures.decode_seconds += counters.decode_seconds();
  }
  return figures;
}

absl::Status ForEachObject(const std::string& path, absl::FunctionRef<void(const Json&)> take) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) take(json);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MetricsLog> MetricsLog::Open(const std::string& path, uint32_t timeline) {
  RETURN_IF_ERROR(CutTornLine(path));
  FileStream file = OpenStream(path);
  if (file == nullptr) return FileError(errno, "write", path);
  return MetricsLog(path, timeline, std::move(file));
}

absl::StatusOr<MetricsLog> MetricsLog::Continue(const std::string& path, uint32_t timeline,
                                                uint64_t from_bytes) {
  ASSIGN_OR_RETURN(MetricsLog log, Open(path, timeline));
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(from_bytes));
  for (std::string line; std::getline(file, line);) {
    if (!IsOfCriticalPath(line)) ++log.lines_there_;
  }
  return log;
}

void MetricsLog::Step(const StepMetrics& metrics, double at_seconds) {
  Json json = {{"kind", "step"}, {"timeline", timeline_}, {"step", metrics.step}};
  const StepRow row = {.metrics = metrics, .at_seconds = at_seconds};
  for (const StepColumn& column : StepColumns()) {
    if (!column.in_log) continue;
    const auto add = [&](auto number) {
      if (number > 0 || column.omitted != StepColumn::kUnlessPositive) json[column.name] = number;
    };
    std::visit(add, column.value(row));
  }
  Write(Dump(json));
}

void MetricsLog::Eval(const EvalMetrics& metrics, double at_seconds) {
  Json json = {{"kind", "eval"},
               {"timeline", timeline_},
               {"step", metrics.version},
               {"at_seconds", at_seconds},
               {"loss", metrics.loss},
               {"perplexity", std::exp(metrics.loss)},
               {"accuracy", metrics.accuracy},
               {"targets", metrics.targets}};
  if (metrics.final) json["final"] = true;
  Write(Dump(json));
}

void MetricsLog::Checkpoint(uint64_t step, const std::string& folder, double pause_seconds,
                            double write_seconds) {
  Write(Dump({{"kind", "checkpoint"},
              {"timeline", timeline_},
              {"step", step},
              {"folder", folder},
              {"pause_seconds", pause_seconds},
              {"write_seconds", write_seconds}}));
}

void MetricsLog::Trial(const TrialMetrics& metrics) {
  const Tuner::Trial& trial = metrics.trial;
  Json json = {{"kind", "trial"},
               {"timeline", timeline_},
               {"step", metrics.step},
               {"trial", trial.number},
               {"partition_bytes", trial.point.partition_bytes},
               {"credit_bytes", trial.point.credit_bytes},
               {"seconds", trial.seconds},
               {"predicted_seconds", nullptr}};
  if (trial.predicted > 0) json["predicted_seconds"] = trial.predicted;
  Write(Dump(json));
}

void MetricsLog::Settled(const SettledMetrics& metrics) {
  const Tuner::Settled& settled = metrics.settled;
  Write(Dump({{"kind", "settled"},
              {"timeline", timeline_},
              {"step", metrics.step},
              {"trials", settled.trials},
              {"partition_bytes", settled.point.partition_bytes},
              {"credit_bytes", settled.point.credit_bytes},
              {"seconds", settled.seconds},
              {"first_seconds", settled.first_seconds}}));
}

void MetricsLog::Notice(const std::string& text) {
  Write(Dump({{"kind", "notice"}, {"timeline", timeline_}, {"text", text}}));
}

void MetricsLog::Settings(const SettingsChange& change) {
  Write(Dump({{"kind", kSettingsKind},
              {"timeline", timeline_},
              {"step", change.step},
              {"changed", change.changed}}));
}

void MetricsLog::CriticalPaths(const std::vector<StepPath>& paths) {
  if (is_behind()) return;  // the process that wrote the next line has written these
  for (const StepPath& path : paths) {
    Json parts = Json::array();
    for (const PathShare& share : SharesOf(path)) {
      parts.push_back({{"what", kPathWorkNames[static_cast<size_t>(share.what)]},
                       {"who", share.who},
                       {"seconds", share.seconds}});
    }
    Write(Dump({{"kind", kPathKind},
                {"timeline", timeline_},
                {"step", path.clock + 1},
                {"seconds", static_cast<double>(path.end_ns - path.begin_ns) * 1e-9},
                {"parts", std::move(parts)}}));
  }
}

void MetricsLog::Workers(const WorkerTotals& workers) {
  for (const auto& [virtual_worker, total] : workers.totals()) {
    Write(Dump({{"kind", "worker"},
                {"timeline", timeline_},
                {"virtual_worker", virtual_worker},
                {"steps", total.steps},
                {"skipped", total.skipped},
                {"seconds", total.seconds},
                {"compute_seconds", total.compute_seconds},
                {"wait_seconds", total.wait_seconds},
                {"straggle_seconds", total.straggle_seconds}}));
  }
}

void MetricsLog::Nodes(const StatusReply& status) {
  for (const NodeStatus& node : status.nodes()) {
    const NodeCounters& counters = node.counters();
    Json json = {{"kind", "node"},
                 {"timeline", timeline_},
                 {"node", node.name()},
                 {"role", KindName(node.kind())},
                 {"socket_bytes", counters.socket_bytes()}};
    const std::pair<const char*, uint64_t> held[] = {
        {"weight_bytes", counters.weight_bytes()},
        {"gradient_bytes", counters.gradient_bytes()},
        {"optimizer_bytes", counters.optimizer_bytes()},
        {"sum_bytes", counters.sum_bytes()},
        {"cached_bytes", counters.cached_bytes()},
        {"predicted_held_bytes", counters.predicted_held_bytes()}};
    for (const auto& [name, bytes] : held) {
      if (bytes > 0) json[name] = bytes;
    }
    Write(Dump(json));
  }
}

void MetricsLog::End(const StatusReply& status, const SyncConfig& sync, const std::string& reason) {
  Json json = {
      {"kind", "end"}, {"timeline", timeline_}, {"step", status.step()}, {"reason", reason}};
  if (status.has_best()) {
    json["best_step"] = status.best().version();
    json["best_loss"] = status.best().loss();
  }
  const SyncFigures figures = SyncFiguresOf(status);
  json["sync"] = SyncName(sync);
  json["updates"] = figures.updates;
  json["staleness"] = figures.staleness;
  json["mean_staleness"] = figures.MeanStaleness();
  json["dropped_pushes"] = figures.dropped_pushes;
  const TrafficFigures traffic = TrafficFiguresOf(status);
  json["worker_socket_bytes"] = traffic.worker_socket_bytes;
  json["server_socket_bytes"] = traffic.server_socket_bytes;
  if (traffic.encode_seconds > 0) json["encode_seconds"] = traffic.encode_seconds;
  if (traffic.decode_seconds > 0) json["decode_seconds"] = traffic.decode_seconds;
  Write(Dump(json));
}

void MetricsLog::Write(const std::string& line) {
  if (lines_there_ > 0) {
    --lines_there_;
    return;
  }
  if (error_ != 0) return;
  if (std::fputs((line + "\n").c_str(), file_.get()) < 0) error_ = errno;
}

absl::Status MetricsLog::Flush() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return FileError(error_, "write", path_);
}

absl::StatusOr<LossCurve> ReadLossCurve(const std::string& path) {
  std::map<uint64_t, double> training, validation;
  LossCurve curve;
  RETURN_IF_ERROR(ForEachObject(path, [&](const Json& json) {
    if (std::optional<SettingsChange> change = ParseSettings(json)) {
      std::erase_if(curve.settings, [&](const auto& past) { return past.step >= change->step; });
      if (!change->changed.empty()) curve.settings.push_back(*std::move(change));
    }
    const std::optional<Loss> found = ParseLoss(json);
    if (!found.has_value() || !std::isfinite(found->loss)) return;
    if (found->kind == "step") training[found->step] = found->loss;
    if (found->kind == "eval") validation[found->step] = found->loss;
  }));
  for (const auto& [step, loss] : training) curve.training.push_back({step, loss});
  for (const auto& [step, loss] : validation) curve.validation.push_back({step, loss});
  return curve;
}

absl::StatusOr<std::vector<EvalMetrics>> ReadEvaluations(const std::string& path) {
  std::map<std::pair<uint64_t, bool>, double> losses;
  RETURN_IF_ERROR(ForEachObject(path, [&](const Json& json) {
    const std::optional<Loss> found = ParseLoss(json);
    if (found.has_value() && found->kind == "eval") {
      losses[{found->step, found->final}] = found->loss;
    }
  }));
  std::vector<EvalMetrics> evals;
  for (const auto& [key, loss] : losses) {
    evals.push_back({.version = key.first, .loss = loss, .final = key.second});
  }
  return evals;
}

}  // namespace tug
