// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_probe.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "launch/route.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr char kFilePrefix[] = ".tug-doctor-";

class Prober {
 public:
  Prober(const std::function<GpuFacts()>& gpus, const FactsPlaces& places)
      : gpus_(gpus), places_(places) {}

  // Throws Json's exceptions.
  absl::StatusOr<Json> Answer(const Json& request) {
    const std::string wanted = request.at("do");
    if (wanted == "facts") {
      return ToJson(ReadHostFacts({.run_dir = request.at("run_dir"), .text = request.at("text")},
                                  gpus_(), places_));
    }
    if (wanted == "listen") return Listen(request);
    if (wanted == "answer") {
      if (!listener_.has_value()) return absl::FailedPreconditionError("not listening");
      const absl::Status answered = AnswerLink(*listener_, kLinkPatience);
      listener_.reset();
      if (!answered.ok()) return answered;
      return Json::object();
    }
    if (wanted == "ask") {
      ASSIGN_OR_RETURN(const LinkReport report,
                       AskLink(request.at("address"), request.at("port"),
                               absl::Seconds(request.at("seconds").get<double>()), kLinkPatience));
      return ToJson(report);
    }
    return AnswerFile(wanted, request);
  }

 private:
  absl::StatusOr<Json> Listen(const Json& request) {
    ASSIGN_OR_RETURN(const std::string address,
                     AddressToward(request.at("peers").get<std::vector<std::string>>(),
                                   request.at("interfaces").get<std::vector<std::string>>()));
    ASSIGN_OR_RETURN(listener_, ListenAt(address));
    return Json{{"address", address}, {"port", listener_->port}};
  }

  static absl::StatusOr<Json> AnswerFile(const std::string& wanted, const Json& request) {
    std::error_code error;
    if (wanted == "write") {
      std::string path = (fs::path(request.at("folder")) / kFilePrefix).string() + "XXXXXX";
      const FileDescriptor file(mkstemp(path.data()));
      if (!file.valid()) return FileError(errno, "write", path);
      return Json{{"path", path}};
    }
    const std::string path = request.at("path");
    if (wanted == "sees") {
      // A network file system sees new entries at the latest when the folder is read.
      for (fs::directory_iterator entry(fs::path(path).parent_path(), error), end;
           !error && entry != end; entry.increment(error)) {
        if (entry->path() == path) return Json{{"sees", true}};
      }
      return Json{{"sees", false}};
    }
    if (wanted == "remove" && absl::StartsWith(fs::path(path).filename().string(), kFilePrefix)) {
      fs::remove(path, error);
      return Json::object();
    }
    return absl::InvalidArgumentError(absl::StrCat("unknown request: ", wanted));
  }

  const std::function<GpuFacts()>& gpus_;
  const FactsPlaces& places_;
  std::optional<ListeningSocket> listener_;
};

// Handles one request line; returns the reply line.
std::string AnswerLine(Prober& prober, const std::string& line) {
  Json answer;
  try {
    const absl::StatusOr<Json> answered = prober.Answer(Json::parse(line));
    answer = answered.ok() ? *answered : Json{{"error", std::string(answered.status().message())}};
  } catch (const Json::exception& error) {
    answer = {{"error", absl::StrCat("invalid request: ", error.what())}};
  }
  return absl::StrCat(kProbePrefix,
                      answer.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
                      "\n");
}

}  // namespace

absl::Status Probe(int in, int out, const std::function<GpuFacts()>& gpus,
                   const FactsPlaces& places) {
  Prober prober(gpus, places);
  std::string line;
  char bytes[4096];
  while (true) {
    const ssize_t n = read(in, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "read", "stdin");
    if (n == 0) return absl::OkStatus();
    for (const char c : std::string_view(bytes, static_cast<size_t>(n))) {
      if (c != '\n') {
        line += c;
        continue;
      }
      const std::string answer = AnswerLine(prober, line);
      line.clear();
      for (size_t at = 0; at < answer.size();) {
        const ssize_t written = write(out, answer.data() + at, answer.size() - at);
        if (written < 0) return FileError(errno, "write", "stdout");
        at += static_cast<size_t>(written);
      }
    }
  }
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkReport, round_trip_us, there_bytes_per_second,
                                   back_bytes_per_second, clock_ahead_ns, clock_error_ns)

nlohmann::json ToJson(const LinkReport& report) { return report; }

absl::StatusOr<LinkReport> LinkReportOf(const nlohmann::json& json) {
  try {
    return json.get<LinkReport>();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("invalid link report: ", error.what()));
  }
}

}  // namespace tug
