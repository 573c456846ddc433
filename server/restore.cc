// SPDX-License-Identifier: Apache-2.0
#include "server/restore.h"

#include <cstdint>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "config/sync_mode.h"
#include "model/transformer/finite_weights.h"

namespace tug {
namespace {

// Clocks belong to segments and virtual workers, so both must equal the job's.
absl::Status CheckClocksFit(const std::string& folder, const JobConfig& of, const JobConfig& job) {
  const auto check = [&](const char* field, uint64_t written, uint64_t configured) {
    if (written == configured) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " was written with ", field, " = ", written, " but this job has ", configured,
        ", and SSP and ASP need the same value: resume with ", field, "=", written));
  };
  RETURN_IF_ERROR(
      check("comm.segment_elements", of.comm().segment_elements(), job.comm().segment_elements()));
  return check("cluster.virtual_workers", of.cluster().virtual_workers(),
               job.cluster().virtual_workers());
}

absl::Status CheckWeights(const std::string& folder, const BlockSpec& block, uint64_t begin,
                          std::span<const float> weights) {
  const absl::Status finite = CheckFinite(folder, block, begin, weights);
  if (finite.ok()) return finite;
  const std::filesystem::path others = std::filesystem::path(folder).parent_path() / "step-...";
  return absl::Status(finite.code(),
                      absl::StrCat(finite.message(), ": --resume ", others.string()));
}

}  // namespace

absl::Status RestoreSegments(const std::string& folder, const JobConfig& config,
                             const BlockTable& blocks, const SegmentTable& table, Shard& shard) {
  ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(folder));
  const bool clocks = shard.own_clocks();
  if (checkpoint.has_clocks() != clocks) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, clocks ? " has no" : " has",
                     " clocks of virtual workers, but sync.policy of this job is ",
                     SyncName(config.sync()), ": resume with the sync.policy of the checkpoint"));
  }
  if (clocks) RETURN_IF_ERROR(CheckClocksFit(folder, checkpoint.manifest().config(), config));
  for (const uint32_t id : shard.held()) {
    const Segment& segment = table.segment(id);
    const BlockSpec& block = blocks.blocks(static_cast<int>(segment.block));
    const auto read = [&](char kind, std::span<float> out) {
      if (out.empty()) return absl::OkStatus();
      return checkpoint.ReadRange(block.name(), segment.begin, segment.end, kind, out);
    };
    RETURN_IF_ERROR(read('w', shard.weights(id)));
    RETURN_IF_ERROR(CheckWeights(folder, block, segment.begin, shard.weights(id)));
    RETURN_IF_ERROR(read('m', shard.m(id)));
    RETURN_IF_ERROR(read('v', shard.v(id)));
    if (!clocks) continue;
    ASSIGN_OR_RETURN(const std::vector<uint64_t> of_segment,
                     checkpoint.ReadClocks(block.name(), segment.begin, segment.end));
    if (of_segment.size() != 1 + size_t{config.cluster().virtual_workers()}) {
      return absl::DataLossError(absl::StrCat(folder, " has clocks of ", of_segment.size() - 1,
                                              " virtual workers in block ", block.name(),
                                              "; use another checkpoint"));
    }
    shard.SetClocks(id, of_segment);
  }
  return absl::OkStatus();
}

}  // namespace tug
