// SPDX-License-Identifier: Apache-2.0
#include "blocks/job_blocks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "blocks/codec_choice.h"
#include "blocks/declared_blocks.h"
#include "blocks/segment_table.h"

namespace tug {
namespace {

// A misspelt pattern would silently leave its blocks unencoded.
absl::Status CheckCodecBlocks(const BlockTable& blocks, const PushCodecConfig& codec) {
  if (codec.codec_case() == PushCodecConfig::CODEC_NOT_SET) return absl::OkStatus();
  const std::vector<std::string> names = BlockNames(blocks);
  const std::vector<std::string> patterns = absl::StrSplit(codec.blocks(), ',');
  for (const std::string& pattern : patterns) {
    const auto matches = [&](const std::string& name) { return MatchesNames(pattern, name); };
    if (std::ranges::any_of(names, matches)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("comm.push_codec.blocks: '", pattern, "' matches none of the ", names.size(),
                     " blocks, ", names.front(), " to ", names.back(), ": correct or remove it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BlockLayout> LayOut(const BlockTable& blocks, const JobConfig& config) {
  ASSIGN_OR_RETURN(const SegmentTable table,
                   SegmentTable::Create(blocks, config.comm().segment_elements()));
  const uint32_t lanes = config.cluster().servers() * config.cluster().lanes_per_server();
  if (lanes > table.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.servers x cluster.lanes_per_server makes ", lanes,
                     " lanes, but comm.segment_elements = ", config.comm().segment_elements(),
                     " divides this model into only ", table.size(),
                     " segments: use fewer lanes or smaller segments"));
  }
  RETURN_IF_ERROR(CheckCodecBlocks(blocks, config.comm().push_codec()));
  BlockLayout layout{blocks, {}};
  for (uint32_t i = 0; i < table.size(); ++i) {
    layout.segment_bytes.push_back(table.segment(i).bytes());
  }
  return layout;
}

JobBlocks::JobBlocks(const JobConfig& config, BlockLayout initial)
    : config_(config),
      layout_(std::move(initial)),
      known_(!config.model().external() || !layout_.blocks.blocks().empty()) {}

absl::Status JobBlocks::Admit(const RegisterRequest& request) {
  if (request.kind() != WORKER) return absl::OkStatus();
  const bool declares = !request.blocks().blocks().empty();
  if (!config_.model().external()) {
    if (!declares) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "this job trains tug's own model: set model.external = true in its job file to use "
        "external workers, which declare blocks");
  }
  if (!declares) {
    return absl::FailedPreconditionError(
        "this job has model.external = true: its workers are external programs that declare their "
        "blocks (exchange/c_api/tug.h); start yours instead of `tug worker` or `tug train`");
  }
  if (known_) {
    const std::string difference = FirstBlockDifference(request.blocks(), layout_.blocks);
    if (difference.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("this worker declares different blocks than ",
                     declared_ ? "the first worker" : "the checkpoint", ": ", difference,
                     "; declare the same blocks, in the same order, in every worker"));
  }
  RETURN_IF_ERROR(CheckDeclaredBlocks(request.blocks(), config_.comm().segment_elements()));
  ASSIGN_OR_RETURN(layout_, LayOut(request.blocks(), config_));
  known_ = declared_ = true;
  return absl::OkStatus();
}

void JobBlocks::ForgetDeclared() {
  if (!declared_) return;
  layout_ = {};
  known_ = declared_ = false;
}

}  // namespace tug
