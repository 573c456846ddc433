// SPDX-License-Identifier: Apache-2.0
#include "model/replay/replay_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "config/text_proto.h"
#include "model/replay/replay_profiles_text.h"

namespace tug {
namespace {

constexpr uint64_t kProfileLimitBytes = 1 << 20;
constexpr uint32_t kMaxBatch = 65536;
constexpr size_t kMaxNameBytes = 128;

bool IsName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-/", c);
  });
}

absl::Status CheckTime(const std::string& field, double ms) {
  if (std::isfinite(ms) && ms >= 0 && ms <= kMaxReplayBlockMs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " = ", ms, " is out of range: 0..",
                                                 kMaxReplayBlockMs, " ms; correct the profile"));
}

absl::StatusOr<ReplayProfile> ParseChecked(const std::string& text, const std::string& source) {
  ReplayProfile profile;
  RETURN_IF_ERROR(ParseTextProto(text, source, profile));
  const absl::Status checked = CheckReplayProfile(profile);
  if (checked.ok()) return profile;
  return absl::Status(checked.code(), absl::StrCat(source, ": ", checked.message()));
}

}  // namespace

std::vector<std::string> ShippedReplayProfiles() {
  std::vector<std::string> names;
  for (const ShippedProfile& shipped : kShippedProfiles) names.emplace_back(shipped.name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<ReplayProfile> LoadReplayProfile(const std::string& name_or_path) {
  for (const ShippedProfile& shipped : kShippedProfiles) {
    if (name_or_path == shipped.name) return ParseChecked(shipped.text, shipped.name);
  }
  const absl::StatusOr<std::string> text = ReadTextFile(name_or_path, kProfileLimitBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        "replay.profile = \"", name_or_path, "\" is neither a file nor one of ",
        absl::StrJoin(ShippedReplayProfiles(), ", "), "; set replay.profile to one of these"));
  }
  RETURN_IF_ERROR(text.status());
  return ParseChecked(*text, name_or_path);
}

absl::Status CheckReplayProfile(const ReplayProfile& profile) {
  if (!IsName(profile.name())) {
    return absl::InvalidArgumentError(
        absl::StrCat("name = \"", absl::CHexEscape(profile.name()), "\" is not a model's name: 1..",
                     kMaxNameBytes, " letters, digits, '.', '_', '-' or '/'; set name"));
  }
  if (profile.blocks().empty()) {
    return absl::InvalidArgumentError(
        "the profile has no blocks: give at least one, blocks { name: ... parameters: ... }");
  }
  if (profile.batch() == 0 || profile.batch() > kMaxBatch) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch = ", profile.batch(), " is out of range: 1..", kMaxBatch,
        " samples; set it to the samples per worker that the times were measured with"));
  }
  for (const ReplayBlock& block : profile.blocks()) {
    const std::string name = absl::StrCat("block '", absl::CHexEscape(block.name()), "': ");
    if (block.parameters() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "parameters = 0 leaves nothing to exchange: give at least 1"));
    }
    RETURN_IF_ERROR(CheckTime(absl::StrCat(name, "forward_ms"), block.forward_ms()));
    RETURN_IF_ERROR(CheckTime(absl::StrCat(name, "backward_ms"), block.backward_ms()));
  }
  return absl::OkStatus();
}

ReplayProfile ScaledReplayProfile(ReplayProfile profile, double time_scale, double size_scale) {
  TUG_CHECK(std::isfinite(time_scale) && time_scale >= 0);
  TUG_CHECK(std::isfinite(size_scale) && size_scale > 0);
  constexpr double kMost = static_cast<double>(std::numeric_limits<int64_t>::max() / 2);
  for (ReplayBlock& block : *profile.mutable_blocks()) {
    block.set_forward_ms(block.forward_ms() * time_scale);
    block.set_backward_ms(block.backward_ms() * time_scale);
    const double parameters = std::round(static_cast<double>(block.parameters()) * size_scale);
    block.set_parameters(static_cast<uint64_t>(std::clamp(parameters, 1.0, kMost)));
  }
  return profile;
}

BlockTable ReplayLayout(const ReplayProfile& profile) {
  BlockTable table;
  for (const ReplayBlock& block : profile.blocks()) {
    BlockSpec& spec = *table.add_blocks();
    spec.set_name(block.name());
    TensorSpec& tensor = *spec.add_tensors();
    tensor.set_name("parameters");
    tensor.add_shape(block.parameters());
    tensor.set_weight_decay(true);  // most parameters are matrices
  }
  return table;
}

uint64_t ReplayParameters(const ReplayProfile& profile) {
  uint64_t parameters = 0;
  for (const ReplayBlock& block : profile.blocks()) parameters += block.parameters();
  return parameters;
}

double ReplayForwardMs(const ReplayProfile& profile) {
  double ms = 0;
  for (const ReplayBlock& block : profile.blocks()) ms += block.forward_ms();
  return ms;
}

double ReplayBackwardMs(const ReplayProfile& profile) {
  double ms = 0;
  for (const ReplayBlock& block : profile.blocks()) ms += block.backward_ms();
  return ms;
}

std::string ReplayText(const ReplayConfig& replay) {
  const ReplayProfile& profile = replay.resolved_profile();
  std::string scales;
  if (replay.time_scale() != 1) absl::StrAppend(&scales, ", times x ", replay.time_scale());
  if (replay.size_scale() != 1) absl::StrAppend(&scales, ", sizes x ", replay.size_scale());
  return absl::StrFormat(
      "replay of %s%s: %d parameters in %d blocks, %.1f ms forward and %.1f ms backward per step; "
      "workers sleep, no model is trained",
      profile.name(), scales, ReplayParameters(profile), profile.blocks_size(),
      ReplayForwardMs(profile), ReplayBackwardMs(profile));
}

}  // namespace tug
