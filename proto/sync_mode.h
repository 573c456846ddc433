#ifndef TUG_PROTO_SYNC_MODE_H_
#define TUG_PROTO_SYNC_MODE_H_

// What sync.policy means to everybody but the lanes: they alone decide who waits for whom
// (server/sync_policy.h). One row a policy.
//
//   A push says `clock`, the step of its virtual worker, and `version`, that of the weights it is a
//   gradient of. A pull says `version` c: its sender wants to begin clock c, all its pushes before
//   c are on their way, and `virtual_worker`, `virtual_worker_count` whose they are: of those that
//   it carries and that are to begin c, the first contiguous run.
//
//            an update is made of       a pull at c is answered when              with version
//   BSP      all pushes of a clock      the pushes of c - 1 are in                c
//   BACKUP   the first S - k of them    S - k pushes of c - 1 are in               the newest, >= c
//   SSP      a push                     the slowest virtual worker has clock      the newest
//                                       c - s, the sender's own ones c
//   ASP      a push                     the same with s = kMostLead               the newest
//
// A pull that wants kExact is answered once all pushes before clock c are in, where the last
// evaluation begins; under BACKUP once clock c - 1 has closed, which is without k of them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/job.pb.h"

namespace tug {

// Steps that a virtual worker can be ahead of the slowest one, under any policy. Bounds what the
// coordinator keeps of steps that are not complete.
inline constexpr uint64_t kMostLead = 65535;

struct SyncMode {
  SyncConfig::Policy policy;
  const char* name;
  // Every push is an update of its own: versions count pushes, virtual workers end at clocks of
  // their own, and the job's step is the number of pushes divided by that of virtual workers.
  bool update_per_push;
  // Weights may come that are of a later step than was asked for: the worker skips what lies
  // between.
  bool skips_steps;
  // The weights of version c stay as they are until all pushes of clock c are in, so that they may
  // be read where the lane has them.
  bool in_place;

  // The version of weights that contain exactly the pushes of all clocks before this one. None
  // where versions count pushes.
  constexpr std::optional<uint64_t> VersionAt(uint64_t clock) const {
    if (update_per_push) return std::nullopt;
    return clock;
  }
  // Pulls are answered with the newest weights, not with those of one version.
  constexpr bool pulls_newest() const { return update_per_push || skips_steps; }
};

inline constexpr SyncMode kSyncModes[] = {
    {SyncConfig::BSP, "bsp", false, false, true},
    {SyncConfig::SSP, "ssp", true, false, false},
    {SyncConfig::ASP, "asp", true, false, false},
    {SyncConfig::BACKUP, "backup", false, true, false},
};

// REQUIRES: a policy of the table.
constexpr const SyncMode& SyncModeOf(SyncConfig::Policy policy) {
  for (const SyncMode& mode : kSyncModes) {
    if (mode.policy == policy) return mode;
  }
  return kSyncModes[0];
}

// Clocks that a lane counts for each segment, and that a checkpoint has: one for each virtual
// worker where every push is an update. Else none: a version is the clock of all.
inline uint32_t CountedClocks(const JobConfig& job) {
  return SyncModeOf(job.sync().policy()).update_per_push ? job.cluster().virtual_workers() : 0;
}

// Versions of weights that a step of the job makes, and the step that a version belongs to.
inline uint64_t VersionsPerStep(const JobConfig& job) {
  return std::max<uint64_t>(CountedClocks(job), 1);
}
inline uint64_t StepOfVersion(const JobConfig& job, uint64_t version) {
  return version / VersionsPerStep(job);
}

// s of the table above; none where an update takes the pushes of one clock, so that no virtual
// worker leads.
inline std::optional<uint64_t> StalenessBound(const SyncConfig& sync) {
  if (sync.policy() == SyncConfig::SSP) return sync.staleness();
  if (sync.policy() == SyncConfig::ASP) return kMostLead;
  return std::nullopt;
}

// Whether a job goes on when a node is lost, or leaves. Programs of their own (model.external)
// cannot take steps of others. Where steps are skipped (BACKUP), who takes over may wait for
// weights that do not come. An all-reduce lacks a rank then.
inline bool GoesOnWithoutANode(const JobConfig& job) {
  return !job.model().external() && !SyncModeOf(job.sync().policy()).skips_steps &&
         job.exchange() != JobConfig::ALL_REDUCE;
}

// Whether checkpoints have what virtual workers' pushes left out (comm.push_codec with error
// feedback): workers write it, but no programs of their own.
inline bool KeepsResiduals(const JobConfig& job) {
  const PushCodecConfig& codec = job.comm().push_codec();
  return codec.codec_case() != PushCodecConfig::CODEC_NOT_SET && codec.error_feedback() &&
         !job.model().external();
}

// "bsp", "ssp(4)", "asp", "backup(1)", "bsp, 16 local steps".
std::string SyncName(const SyncConfig& sync);

}  // namespace tug

#endif  // TUG_PROTO_SYNC_MODE_H_
