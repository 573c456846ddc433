// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONFIG_SYNC_MODE_H_
#define TUG_CONFIG_SYNC_MODE_H_

// Properties of sync.policy for everything except lanes, which decide about waiting themselves
// (server/sync/sync_policy.h). One row per policy.
//
//   A push has `clock`, the step of its virtual worker, and `version`, that of the weights its
//   gradient is computed from. A pull has `clock` c: its sender wants to begin clock c and has sent
//   all its pushes before c. Its `virtual_worker`, `virtual_worker_count` are the first contiguous
//   run of the sender's virtual workers that will begin c.
//
//            an update contains         a pull at c is answered when              with version
//   BSP      all pushes of a clock      the pushes of c - 1 have arrived          c
//   BACKUP   the first S - k of them    S - k pushes of c - 1 have arrived        the newest, >= c
//   SSP      one push                   the slowest virtual worker has clock      the newest
//                                       c - s, the sender's own ones c
//   ASP      one push                   as SSP with s = kMaxLead                 the newest
//
// A kExact pull, sent where the last evaluation begins, is answered once all pushes before clock c
// have arrived; under BACKUP once clock c - 1 has closed, without k of its pushes.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/job.pb.h"

namespace tug {

// Steps that a virtual worker may be ahead of the slowest one, under any policy. Bounds the
// incomplete steps that the coordinator keeps.
inline constexpr uint64_t kMaxLead = 65535;

struct SyncMode {
  SyncConfig::Policy policy;
  const char* name;
  // Every push is a separate update: versions count pushes, each virtual worker ends at its own
  // clock, and the job's step is the number of pushes divided by the number of virtual workers.
  bool update_per_push;
  // Pulled weights may belong to a later step than requested; the worker then skips the steps in
  // between.
  bool skips_steps;
  // The slowest virtual worker sets the pace of all: at once, or when it is s steps behind.
  bool waits_for_slowest;
  // The weights of version c stay unchanged until all pushes of clock c have arrived, so workers
  // may read them in the lane's memory.
  bool in_place;

  // Version of weights that contain exactly the pushes of all clocks before this one; nothing if
  // versions count pushes.
  constexpr std::optional<uint64_t> VersionAt(uint64_t clock) const {
    if (update_per_push) return std::nullopt;
    return clock;
  }
  // Pulls return the newest weights instead of one particular version.
  constexpr bool pulls_newest() const { return update_per_push || skips_steps; }
};

inline constexpr SyncMode kSyncModes[] = {
    {SyncConfig::BSP, "bsp", false, false, true, true},
    {SyncConfig::SSP, "ssp", true, false, true, false},
    {SyncConfig::ASP, "asp", true, false, false, false},
    {SyncConfig::BACKUP, "backup", false, true, false, false},
};

// REQUIRES: a policy of the table.
constexpr const SyncMode& SyncModeOf(SyncConfig::Policy policy) {
  for (const SyncMode& mode : kSyncModes) {
    if (mode.policy == policy) return mode;
  }
  return kSyncModes[0];
}

// Clocks that a lane counts per segment, and stores in checkpoints: one per virtual worker if every
// push is an update, else 0: the version is the clock of all.
inline uint32_t CountedClocks(const JobConfig& job) {
  return SyncModeOf(job.sync().policy()).update_per_push ? job.cluster().virtual_workers() : 0;
}

// Versions of weights per step of the job, and the step that a version belongs to.
inline uint64_t VersionsPerStep(const JobConfig& job) {
  return std::max<uint64_t>(CountedClocks(job), 1);
}
inline uint64_t StepOfVersion(const JobConfig& job, uint64_t version) {
  return version / VersionsPerStep(job);
}

// s in the table above; nothing if an update takes the pushes of one clock, so that no virtual
// worker is ahead.
inline std::optional<uint64_t> StalenessBound(const SyncConfig& sync) {
  if (sync.policy() == SyncConfig::SSP) return sync.staleness();
  if (sync.policy() == SyncConfig::ASP) return kMaxLead;
  return std::nullopt;
}

// Pushes of a clock, one per virtual worker, that an update does not wait for: k in the table
// above.
inline uint64_t OmittedPushes(const SyncConfig& sync) {
  return SyncModeOf(sync.policy()).skips_steps ? sync.backups() : 0;
}

// Whether a job continues when a node is lost or leaves. External programs (model.external) cannot
// take over steps of others. If steps are skipped (BACKUP), a successor might wait for weights that
// never arrive. An all-reduce would miss a rank.
inline bool ContinuesWithoutNode(const JobConfig& job) {
  return !job.model().external() && !SyncModeOf(job.sync().policy()).skips_steps &&
         job.exchange() != JobConfig::ALL_REDUCE;
}

// Whether checkpoints contain error-feedback residuals of virtual workers (comm.push_codec):
// workers write them, external programs do not.
inline bool KeepsResiduals(const JobConfig& job) {
  const PushCodecConfig& codec = job.comm().push_codec();
  return codec.codec_case() != PushCodecConfig::CODEC_NOT_SET && codec.error_feedback() &&
         !job.model().external();
}

// "bsp", "ssp(4)", "asp", "backup(1)", "bsp, 16 local steps".
std::string SyncName(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_CONFIG_SYNC_MODE_H_
