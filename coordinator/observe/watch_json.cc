// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/watch_json.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "coordinator/observe/watch_text.h"
#include "nlohmann/json.hpp"
#include "proto/process_name.h"

namespace tug {
namespace {

// Keys in the order written.
using Json = nlohmann::ordered_json;

std::string WatchText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json NodeJson(const NodeStatus& node, const StatusReply& status) {
  Json json;
  json["id"] = node.node_id();
  json["name"] = node.name();
  json["life"] = node.life();
  json["role"] = KindName(node.kind());
  json["host"] = node.host();
  json["pid"] = node.pid();
  json["heard_seconds"] = node.seconds_since_heartbeat();
  json["virtual_workers"] = Json::array();
  for (const uint32_t carried : node.virtual_workers()) json["virtual_workers"].push_back(carried);
  json["rank"] = node.has_all_reduce_rank() ? Json(node.all_reduce_rank()) : Json(nullptr);
  json["step"] = node.kind() == WORKER ? Json(node.clock() + 1) : Json(nullptr);
  json["step_seconds"] = Finite(node.step_seconds());
  json["compute_seconds"] = Finite(node.compute_seconds());
  json["wait_seconds"] = Finite(node.wait_seconds());
  json["activity"] = ActivityText(node, status);
  json["doing"] = absl::AsciiStrToLower(NodeActivity::Doing_Name(node.activity().doing()));
  json["socket_bytes_per_second"] = Finite(node.socket_bytes_per_second());
  json["shared_memory_bytes_per_second"] = Finite(node.shared_memory_bytes_per_second());
  json["memory_bytes"] = node.counters().peak_memory_bytes();
  const bool has_staleness = status.has_staleness() && node.kind() == SERVER;
  json["staleness"] = has_staleness ? Json(MeanStaleness(node.counters())) : Json(nullptr);
  return json;
}

Json PointJson(const ThinnedCurve::Point& point) {
  return {point.step, point.at_seconds, Finite(point.loss), Finite(point.seconds), point.tokens};
}

}  // namespace

std::string StatusJson(const StatusReply& status) {
  Json json;
  json["name"] = status.name();
  json["run_dir"] = status.run_dir();
  json["phase"] = PhaseText(status.phase());
  json["ended"] = status.phase() == DONE || status.phase() == FAILED;
  json["step"] = status.step();
  json["steps"] = status.steps();
  json["loss"] = status.replay().empty() ? Finite(status.loss()) : Json(nullptr);
  json["replay"] = status.replay();
  json["tokens_per_second"] = Finite(status.tokens_per_second());
  json["unit"] = status.replay().empty() ? "tokens" : "samples";
  json["seconds_left"] = Finite(status.seconds_left());
  json["last_checkpoint"] = status.last_checkpoint();
  json["failure"] = status.failure();
  json["stopped_early"] = status.stopped_early();
  json["view"] = status.view();
  json["best"] = nullptr;
  if (status.has_best()) {
    json["best"] = {{"step", status.best().version()}, {"loss", Finite(status.best().loss())}};
  }
  json["waits_for"] = nullptr;
  if (status.has_wait()) {
    json["waits_for"] = {{"what", status.wait().what()},
                         {"seconds", Finite(status.wait().seconds())},
                         {"ends", status.wait().ends()}};
  }
  json["late"] = LateTexts(status);
  json["all_reduce"] = AllReduceText(status);
  json["nodes"] = Json::array();
  for (const NodeStatus& node : status.nodes()) json["nodes"].push_back(NodeJson(node, status));
  return WatchText(json);
}

std::string HistoryJson(const RunHistory::News& news) {
  Json json;
  json["seq"] = news.newest;
  json["reset"] = news.anew;
  json["points"] = Json::array();
  for (const ThinnedCurve::Point& point : news.points) json["points"].push_back(PointJson(point));
  json["open"] = news.open.has_value() ? PointJson(*news.open) : Json(nullptr);
  json["evals"] = Json::array();
  for (const RunHistory::Eval& eval : news.evals) {
    json["evals"].push_back({eval.step, Finite(eval.loss), eval.final});
  }
  json["events"] = Json::array();
  for (const RunHistory::Event& event : news.events) {
    json["events"].push_back({event.at_seconds, event.step, event.text});
  }
  json["steps"] = Json::array();
  for (const RunHistory::StepTimes& step : news.steps) {
    Json workers = Json::array();
    for (const WorkerStepTimes& worker : step.workers) {
      workers.push_back({worker.virtual_worker, Finite(worker.seconds),
                         Finite(worker.compute_seconds), Finite(worker.wait_seconds),
                         Finite(worker.straggle_seconds)});
    }
    json["steps"].push_back(Json::array({step.step, std::move(workers)}));
  }
  json["links"] = Json::array();
  for (const RunHistory::LinkSample& sample : news.links) {
    Json nodes = Json::array();
    for (const RunHistory::NodeRates& rates : sample.nodes) {
      nodes.push_back(
          Json::array({rates.node, Finite(rates.sockets), Finite(rates.shared_memory)}));
    }
    json["links"].push_back(Json::array({sample.at_seconds, std::move(nodes)}));
  }
  json["settings"] = Json::array();
  for (const SettingsChange& change : news.settings) {
    json["settings"].push_back(Json::array({change.step, change.changed}));
  }
  return WatchText(json);
}

}  // namespace tug
