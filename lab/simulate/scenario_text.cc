// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compression/codecs/codecs.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "lab/simulate/scenario.h"

namespace tug {
namespace {

const char* CodecName(const JobConfig& job) {
  const CodecRow* const row = FindCodec(job.comm().push_codec().codec_case());
  return row == nullptr ? "none" : row->name;
}

std::string ReductionText(const JobConfig& job) {
  if (!AllReduces(job)) return "";
  return absl::StrCat(", ALL_REDUCE by ",
                      CollectiveConfig::Algorithm_Name(job.collective().algorithm()), " in ",
                      CollectiveConfig::Format_Name(job.collective().format()));
}

}  // namespace

std::string Scenario::Text() const {
  const JobConfig& job = options.config;
  const ClusterConfig& cluster = job.cluster();
  std::string text = absl::StrCat(
      SyncModeOf(job.sync().policy()).name, ReductionText(job), ", ", cluster.workers(),
      job.model().external() ? " external workers for " : " workers for ",
      cluster.virtual_workers(), " virtual workers, ", cluster.servers(), " servers of ",
      cluster.lanes_per_server(), " lanes, ", cluster.spare_servers(), " spare, replicas ",
      job.sync().replicas(), ", on_worker_loss ",
      FaultConfig::WorkerLoss_Name(job.fault().on_worker_loss()), ", clip ",
      OptimizerConfig::Clip_Name(job.optimizer().clip()), ", pulls ",
      CommConfig::Format_Name(job.comm().pull_format()), ", codec ", CodecName(job),
      job.comm().push_codec().error_feedback() ? " with error feedback" : "",
      "; messages take up to ", absl::FormatDuration(options.network.max_delay), ", ",
      options.network.drop_probability * 100, "% are lost, ",
      options.network.repeat_probability * 100, "% are duplicated");
  absl::StrAppend(&text, "; resends after ", job.comm().resend_ms(), " ms, lanes buffer ",
                  options.parking_bytes, " bytes");
  if (options.faults.empty()) absl::StrAppend(&text, "; no faults");
  for (const FaultEvent& fault : options.faults) {
    absl::StrAppend(&text, "\n  ", absl::FormatDuration(fault.at), ": ", FaultName(fault.kind));
    if (fault.kind == FaultKind::kLoseKind) {
      absl::StrAppend(&text, " (", static_cast<int>(fault.loses), ")");
    }
    if (fault.kind == FaultKind::kStop || fault.kind == FaultKind::kKillJob ||
        fault.kind == FaultKind::kLeaveWorker || fault.kind == FaultKind::kLeaveServer) {
      continue;
    }
    if (fault.lasts == absl::InfiniteDuration()) {
      absl::StrAppend(&text, ", permanently");
    } else if (fault.kind != FaultKind::kJoinWorker && fault.kind != FaultKind::kJoinServer) {
      const bool replaced =
          fault.kind == FaultKind::kKillWorker || fault.kind == FaultKind::kKillServer ||
          fault.kind == FaultKind::kKillCoordinator || fault.kind == FaultKind::kDrainServer ||
          fault.kind == FaultKind::kDrainWorker;
      absl::StrAppend(&text, replaced ? ", replaced after " : ", for ",
                      absl::FormatDuration(fault.lasts));
      if (fault.times_more > 0) {
        absl::StrAppend(&text, ", killed ", fault.times_more, " more times, each after ",
                        absl::FormatDuration(fault.up));
      }
    }
  }
  return text;
}

}  // namespace tug
