#include "coordinator/metrics_log.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

// Keys in the order written.
using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<MetricsLog> MetricsLog::Open(const std::string& path, uint32_t timeline) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    return FileError(errno, "write", path);
  }
  return MetricsLog(path, timeline, file);
}

void MetricsLog::Step(const StepMetrics& metrics) {
  const double rate =
      metrics.seconds > 0 ? static_cast<double>(metrics.tokens) / metrics.seconds : 0;
  Write(Dump({{"kind", "step"},
              {"timeline", timeline_},
              {"step", metrics.step},
              {"loss", metrics.loss},
              {"tokens", metrics.tokens},
              {"seconds", metrics.seconds},
              {"tokens_per_second", rate},
              {"wait_seconds", metrics.wait_seconds},
              {"pushed_bytes", metrics.pushed_bytes},
              {"pulled_bytes", metrics.pulled_bytes}}));
}

void MetricsLog::Eval(const EvalMetrics& metrics) {
  Write(Dump({{"kind", "eval"},
              {"timeline", timeline_},
              {"step", metrics.version},
              {"loss", metrics.loss},
              {"perplexity", std::exp(metrics.loss)},
              {"accuracy", metrics.accuracy},
              {"targets", metrics.targets}}));
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

void MetricsLog::Notice(const std::string& text) {
  Write(Dump({{"kind", "notice"}, {"timeline", timeline_}, {"text", text}}));
}

void MetricsLog::End(const StatusReply& status, const std::string& reason) {
  Json json = {
      {"kind", "end"}, {"timeline", timeline_}, {"step", status.step()}, {"reason", reason}};
  if (status.has_best()) {
    json["best_step"] = status.best().version();
    json["best_loss"] = status.best().loss();
  }
  Write(Dump(json));
}

void MetricsLog::Write(const std::string& line) {
  if (error_ != 0) return;
  if (std::fputs((line + "\n").c_str(), file_.get()) < 0) error_ = errno;
}

absl::Status MetricsLog::Flush() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return FileError(error_, "write", path_);
}

absl::StatusOr<LossCurve> ReadLossCurve(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::map<uint64_t, double> training, validation;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto kind = json.find("kind"), step = json.find("step"), loss = json.find("loss");
    if (kind == json.end() || step == json.end() || loss == json.end() ||
        !step->is_number_unsigned() || !loss->is_number()) {
      continue;
    }
    if (*kind == "step") training[step->get<uint64_t>()] = loss->get<double>();
    if (*kind == "eval") validation[step->get<uint64_t>()] = loss->get<double>();
  }
  LossCurve curve;
  for (const auto& [step, loss] : training) curve.training.push_back({step, loss});
  for (const auto& [step, loss] : validation) curve.validation.push_back({step, loss});
  return curve;
}

}  // namespace tug
