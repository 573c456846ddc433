// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/offload_results.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/median.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;
using Kind = DeviceSpan::Kind;

constexpr uint64_t kFileLimitBytes = uint64_t{1} << 30;

constexpr std::array<OffloadKindRow, 3> kKinds = {{
    {OffloadKind::kPlain, "plain", "weights and AdamW's state on the device, no servers"},
    {OffloadKind::kOffload, "offload",
     "servers in the host's memory; updates wait for the whole backward pass, weights return in "
     "the order in which gradients were sent"},
    {OffloadKind::kOverlapped, "overlapped",
     "servers in the host's memory; a segment is updated as soon as its gradient arrives, weights "
     "return in the order in which they are needed"},
}};

double MedianOf(const std::vector<DeviceStep>& steps, double DeviceStep::*member) {
  std::vector<double> values;
  for (const DeviceStep& step : steps) values.push_back(step.*member);
  return Median(std::move(values));
}

DeviceSpan SpanOf(const Json& json) {
  const std::string kind = json.at("kind").get<std::string>();
  return {.kind = kind == "forward"    ? Kind::kForward
                  : kind == "backward" ? Kind::kBackward
                                       : Kind::kUpdate,
          .step = json.at("step").get<uint64_t>(),
          .begin_seconds = json.at("begin_seconds").get<double>(),
          .end_seconds = json.at("end_seconds").get<double>()};
}

OffloadRun PlainRunOf(const Json& json) {
  OffloadRun run{.kind = OffloadKind::kPlain,
                 .device = json.at("device").get<std::string>(),
                 .state_bytes = json.at("state_bytes").get<double>(),
                 .loss = json.at("loss").get<double>()};
  run.timeline.on_gpu = json.at("on_gpu").get<bool>();
  for (const Json& span : json.at("spans")) run.timeline.spans.push_back(SpanOf(span));
  run.steps = DeviceSteps(run.timeline);
  return run;
}

}  // namespace

const std::array<OffloadKindRow, 3>& OffloadKinds() { return kKinds; }

absl::StatusOr<OffloadKind> ParseOffloadKind(const std::string& text) {
  for (const OffloadKindRow& row : kKinds) {
    if (text == row.name) return row.kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--cases ", text, " is unknown: use plain, offload or overlapped"));
}

double OffloadRun::StepSeconds() const {
  std::vector<double> values;
  for (const DeviceStep& step : steps) values.push_back(step.seconds());
  return Median(std::move(values));
}

double OffloadRun::BpBubbleSeconds() const {
  return MedianOf(steps, &DeviceStep::bp_bubble_seconds);
}

double OffloadRun::FpBubbleSeconds() const {
  return MedianOf(steps, &DeviceStep::fp_bubble_seconds);
}

double OffloadRun::OtherSeconds() const { return MedianOf(steps, &DeviceStep::other_seconds); }

std::pair<double, double> OffloadRun::StepRange() const {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (steps.empty()) return {kNaN, kNaN};
  const auto [least, most] = std::minmax_element(
      steps.begin(), steps.end(),
      [](const DeviceStep& a, const DeviceStep& b) { return a.seconds() < b.seconds(); });
  return {least->seconds(), most->seconds()};
}

const OffloadRun* OffloadResults::Find(OffloadKind kind) const {
  for (const OffloadRun& run : runs) {
    if (run.kind == kind && run.error.empty()) return &run;
  }
  return nullptr;
}

std::optional<double> OffloadResults::OfPlain(const OffloadRun& run) const {
  const OffloadRun* plain = Find(OffloadKind::kPlain);
  if (plain == nullptr) return std::nullopt;
  return run.StepSeconds() / plain->StepSeconds();
}

absl::Status CheckSameDevice(const OffloadResults& results, const OffloadRun& run) {
  for (const OffloadKind kind :
       {OffloadKind::kPlain, OffloadKind::kOffload, OffloadKind::kOverlapped}) {
    const OffloadRun* const other = results.Find(kind);
    if (other == nullptr) continue;
    if (other->timeline.on_gpu == run.timeline.on_gpu) return absl::OkStatus();
    const auto of = [](const OffloadRun& r) { return r.timeline.on_gpu ? "a GPU" : "the CPU"; };
    return absl::FailedPreconditionError(absl::StrCat("it ran on ", of(run), ", but ",
                                                      other->row().name, " ran on ", of(*other),
                                                      ": set device to CUDA or CPU"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OffloadRun> ReadPlainRun(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kFileLimitBytes));
  try {
    return PlainRunOf(Json::parse(text));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " was not written by tug bench training: ", error.what()));
  }
}

}  // namespace tug
